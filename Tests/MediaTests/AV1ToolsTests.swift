import Testing

@testable import Media

@Suite("The search of libaom follows from what a source shows and how large it is") struct AV1ToolsTests {
    private let drawing = PictureContent(isScreen: true)
    private let film = PictureContent(isScreen: false)

    private func work(_ pixels: Int, _ changedPixels: Int = 1000) -> AV1Tools.Work {
        AV1Tools.Work(pixels: pixels, changedPixels: changedPixels)
    }

    @Test func aVideoIsSearchedThoroughlyIfItIsASmallDrawing() {
        #expect(AV1Tools.video(drawing, work(1_500_000, 600_000)).effort == .thorough)
        #expect(AV1Tools.video(drawing, work(1_500_001)).effort == .quick)
        #expect(AV1Tools.video(drawing, work(1000, 600_001)).effort == .quick)
        #expect(AV1Tools.video(film, work(1000)).effort == .quick)
    }

    @Test func aSmallDrawingThatChangesLittleIsFiner() {
        #expect(AV1Tools.video(drawing, work(1000, 300_000)).quantizer(quality: 60) == 37)
        #expect(AV1Tools.video(drawing, work(1000, 300_001)).quantizer(quality: 60) == 40)
    }

    @Test func anImageSequenceIsSearchedThoroughlyUnlessItIsLarge() {
        #expect(AV1Tools.image(film, work(40_000_000, 10_000_000)).effort == .thorough)
        #expect(AV1Tools.image(drawing, work(40_000_001)).effort == .quick)
    }

    @Test func aSmallImageSequenceOfADrawingIsSearchedMoreThoroughlyStill() {
        #expect(AV1Tools.image(drawing, work(20_000_000)) != AV1Tools.image(drawing, work(20_000_001)))
        #expect(AV1Tools.image(film, work(20_000_000)) == AV1Tools.image(film, work(20_000_001)))
    }

    @Test func alphaIsADrawing() {
        for tools in [AV1Tools.image(film, work(1000)), AV1Tools.image(film, work(1 << 30))] {
            #expect(!tools.isScreen && tools.forAlpha.isScreen && tools.forAlpha.effort == .thorough)
        }
    }

    @Test func theAlphaOfALargeImageSequenceIsCoarser() {
        let small = AV1Tools.image(drawing, work(1000)).forAlpha
        let large = AV1Tools.image(drawing, work(1 << 30)).forAlpha
        #expect(small.quantizer(quality: 60) < large.quantizer(quality: 60))
    }

    @Test func qualityGoesFromEightToFiftyEight() {
        for tools in [
            AV1Tools.video(drawing, work(1)), .video(film, work(1)), .video(drawing, work(1 << 30)), .image(film, work(1)),
        ] {
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
