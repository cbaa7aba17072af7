import Media
import Renditions
import Testing

@Suite("Defaults of options") struct RenditionDefaultsTests {
    private let undithering = RenditionDefaults(undither: true)

    @Test func withoutSettingsARenditionIsThatOfTheInterface() {
        for format in Rendition.Format.allCases {
            #expect(RenditionDefaults().rendition(format) == Rendition(format: format))
            #expect(RenditionDefaults().options(of: Rendition(format: format)).isEmpty)
        }
    }

    @Test func theSettingAppliesToEveryFormatThatTakesTheOption() {
        for format in Rendition.Format.allCases {
            let takesIt = RenditionOption.undither.applies(to: format)
            #expect(undithering.rendition(format).options.undither == takesIt, "\(format)")
            // Its key differs from that of the rendition with dither.
            #expect((undithering.rendition(format).canonicalText == Rendition(format: format).canonicalText) == !takesIt)
        }
        #expect(RenditionOption.undither.applies(to: .mp4) && !RenditionOption.undither.applies(to: .json))
    }

    @Test func addressesNameOnlyWhatDiffersFromTheDefaults() {
        let plain = Rendition(format: .mp4)
        #expect(undithering.options(of: undithering.rendition(.mp4)).isEmpty)
        #expect(undithering.options(of: plain).map { [$0.name, $0.value] } == [["undither", "0"]])
        #expect(
            RenditionDefaults().options(of: undithering.rendition(.mp4)).map { [$0.name, $0.value] } == [["undither", "1"]])
    }

    @Test func addressesSortTheirOptions() throws {
        var rendition = Rendition(format: .mp4)
        try rendition.set("width", to: "100")
        try rendition.set("quality", to: "80")
        #expect(undithering.options(of: rendition).map(\.name) == ["quality", "undither", "width"])
    }
}
