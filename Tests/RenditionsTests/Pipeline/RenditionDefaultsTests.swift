import Media
import Renditions
import Testing

@Suite("Defaults of options") struct RenditionDefaultsTests {
    private let keeping = RenditionDefaults(undithers: false)

    @Test func withoutSettingsARenditionIsThatOfTheInterface() {
        for format in Rendition.Format.allCases {
            #expect(RenditionDefaults().rendition(format) == Rendition(format: format))
            #expect(RenditionDefaults().options(of: Rendition(format: format)).isEmpty)
        }
    }

    @Test func theSettingKeepsTheDitherInEveryFormatThatWouldLoseIt() {
        for format in Rendition.Format.allCases {
            // What has no loss keeps dither in any case.
            let takesIt = RenditionOption.undither.applies(to: format) && !format.isLosslessByDefault
            #expect(keeping.rendition(format).options.undither == (takesIt ? .never : .automatic), "\(format)")
            // Its key differs from that of the usual rendition.
            #expect((keeping.rendition(format).canonicalText == Rendition(format: format).canonicalText) == !takesIt)
        }
        #expect(RenditionOption.undither.applies(to: .mp4) && !RenditionOption.undither.applies(to: .json))
    }

    @Test func addressesNameOnlyWhatDiffersFromTheDefaults() {
        let plain = Rendition(format: .mp4)
        #expect(keeping.options(of: keeping.rendition(.mp4)).isEmpty)
        #expect(keeping.options(of: plain).map { [$0.name, $0.value] } == [["undither", "auto"]])
        #expect(keeping.options(of: Rendition(format: .gif)).isEmpty)
        #expect(
            RenditionDefaults().options(of: keeping.rendition(.mp4)).map { [$0.name, $0.value] } == [["undither", "0"]])
    }

    @Test func addressesSortTheirOptions() throws {
        var rendition = Rendition(format: .mp4)
        try rendition.set("width", to: "100")
        try rendition.set("quality", to: "80")
        #expect(keeping.options(of: rendition).map(\.name) == ["quality", "undither", "width"])
    }
}
