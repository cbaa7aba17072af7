import Testing

@testable import Media

@Suite("The search of libaom follows from what a source shows and how large it is") struct AV1ToolsTests {
    private let drawing = PictureContent(isDrawing: true)
    private let film = PictureContent(isDrawing: false)

    private func tools(_ content: PictureContent, pixels: Int = 1000, changedPixels: Int = 1000, frames: Int = 20) -> AV1Tools {
        AV1Tools(content, AV1Tools.Work(frames: frames, pixels: pixels, changedPixels: changedPixels))
    }

    @Test func theSearchIsThoroughUnlessThereIsTooMuchToEncode() {
        for content in [drawing, film] {
            #expect(tools(content, pixels: 400_000_000, changedPixels: 40_000_000).effort == .thorough)
            #expect(tools(content, pixels: 400_000_001).effort == .quick)
            #expect(tools(content, changedPixels: 40_000_001).effort == .quick)
        }
    }

    @Test func aSmallDrawingIsSearchedMoreThoroughlyStill() {
        #expect(tools(drawing, changedPixels: 4_000_000) != tools(drawing, changedPixels: 4_000_001))
        #expect(tools(film, changedPixels: 4_000_000) == tools(film, changedPixels: 4_000_001))
    }

    @Test func onlyLongerAnimationsAreWorthALookAhead() {
        #expect(tools(film, frames: 8) == tools(film, frames: 300))
        #expect(tools(film, frames: 7) == tools(film, frames: 1))
        #expect(tools(film, frames: 7) != tools(film, frames: 8))
    }

    @Test func alphaIsADrawing() {
        for tools in [tools(film), tools(film, pixels: 1 << 30)] {
            #expect(!tools.isDrawing && tools.forAlpha.isDrawing && tools.forAlpha.effort == .thorough)
        }
    }

    @Test func theAlphaOfALargeImageSequenceIsCoarser() {
        let small = tools(drawing).forAlpha
        let large = tools(drawing, pixels: 1 << 30).forAlpha
        #expect(small.quantizer(quality: 60) < large.quantizer(quality: 60))
    }

    @Test func qualityGoesFromEightToFiftyEight() {
        for tools in [tools(drawing), tools(film), tools(drawing, pixels: 1 << 30)] {
            #expect(tools.quantizer(quality: 100) == 8 && tools.quantizer(quality: 1) == 58)
            let steps = (1...100).map { tools.quantizer(quality: $0) }
            #expect(steps == steps.sorted(by: >))
        }
    }

    @Test func lookaheadIsShorterTheLargerThePictureIs() {
        #expect(AV1Tools.lookahead(pixels: 100_000) == 19)
        #expect(AV1Tools.lookahead(pixels: 2_000_000) == 5)
        #expect(AV1Tools.lookahead(pixels: 8_300_000) == 0)
    }

    @Test func theSpeedOfVP9FollowsFromTheContentAndTheSize() {
        #expect(VP9Settings.Speed(drawing, pixels: 10_000_000) == .good(0))
        #expect(VP9Settings.Speed(drawing, pixels: 10_000_001) == .good(1))
        #expect(VP9Settings.Speed(film, pixels: 1000) == .good(2))
        #expect(VP9Settings.Speed(drawing, pixels: 100_000_001) == .good(2))
        #expect(VP9Settings.Speed(film, pixels: 300_000_001) == .realtime)
    }
}
