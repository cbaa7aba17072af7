import Media
import Renditions
import Testing

@Suite("Defaults of options") struct RenditionDefaultsTests {
    private let undithering = RenditionDefaults(undithers: true)

    @Test func withoutSettingsARenditionIsThatOfTheInterface() {
        for format in Rendition.Format.allCases {
            #expect(RenditionDefaults().rendition(format) == Rendition(format: format))
            #expect(RenditionDefaults().options(of: Rendition(format: format)).isEmpty)
        }
    }

    @Test func theSettingAppliesToEveryFormatThatTakesDitherOut() {
        for format in Rendition.Format.allCases {
            // What has no loss keeps dither in any case.
            let takesIt = RenditionOption.undither.applies(to: format) && !format.isLosslessByDefault
            #expect(undithering.rendition(format).options.undither == (takesIt ? .automatic : .never), "\(format)")
            // Its key differs from that of the rendition without dither.
            #expect((undithering.rendition(format).canonicalText == Rendition(format: format).canonicalText) == !takesIt)
        }
        #expect(RenditionOption.undither.applies(to: .mp4) && !RenditionOption.undither.applies(to: .json))
    }

    @Test func addressesNameOnlyWhatDiffersFromTheDefaults() {
        let plain = Rendition(format: .mp4)
        #expect(undithering.options(of: undithering.rendition(.mp4)).isEmpty)
        #expect(undithering.options(of: plain).map { [$0.name, $0.value] } == [["undither", "0"]])
        #expect(undithering.options(of: Rendition(format: .gif)).isEmpty)
        #expect(
            RenditionDefaults().options(of: undithering.rendition(.mp4)).map { [$0.name, $0.value] } == [["undither", "auto"]])
    }

    @Test func addressesSortTheirOptions() throws {
        var rendition = Rendition(format: .mp4)
        try rendition.set("width", to: "100")
        try rendition.set("quality", to: "80")
        #expect(undithering.options(of: rendition).map(\.name) == ["quality", "undither", "width"])
    }
}
