import TestSupport
import Testing

@testable import Media

@Suite("How far x264 looks for the parts of a picture") struct MotionSearchTests {
    private func search(
        _ width: Int, _ height: Int, isDrawing: Bool = true, isPixelArt: Bool = false, farShare: Double = 0,
        changedShare: Double, frames: Int = 1000
    ) -> MotionSearch {
        MotionSearch(
            width: width, height: height,
            PictureContent(
                isDrawing: isDrawing, isPixelArt: isPixelArt, farShare: farShare, changedShare: changedShare,
                frames: frames))
    }

    @Test func aDrawingThatChangesLittleIsSearchedWideAndInMorePictures() {
        #expect(search(640, 480, changedShare: 0.3).options == ":subme=2:me=umh:merange=64:ref=6")
        #expect(search(640, 480, changedShare: 0.31).options == ":subme=6")
    }

    @Test func pixelArtIsSearchedWideHoweverMuchChanges() {
        #expect(search(640, 480, isPixelArt: true, changedShare: 0.31).options == ":subme=2:me=umh:merange=64:ref=3")
    }

    @Test func whatComesFromFarAwayIsFound() {
        #expect(search(640, 480, isDrawing: false, changedShare: 1).options == ":subme=6")
        for isDrawing in [false, true] {
            let far = search(640, 480, isDrawing: isDrawing, farShare: 0.2, changedShare: 1)
            #expect(far.options == ":subme=2:me=umh:merange=112:ref=6")
        }
    }

    @Test func whatIsSmallAndShortIsSearchedThoroughly() {
        #expect(search(64, 64, changedShare: 1, frames: 10).options == ":subme=7:trellis=1:me=umh:merange=16:ref=10")
        #expect(search(64, 64, changedShare: 0.3, frames: 20).options == ":subme=7:trellis=1:me=umh:merange=64:ref=12")
        #expect(search(64, 64, isDrawing: false, farShare: 0.2, changedShare: 1, frames: 10).range == 112)
        // What does not change costs little.
        #expect(search(200, 200, changedShare: 0.01, frames: 150).isThorough)
        #expect(!search(200, 200, changedShare: 0.01, frames: 153).isThorough)
        #expect(search(250, 400, changedShare: 1, frames: 1).isThorough)
        #expect(!search(250, 402, changedShare: 1, frames: 1).isThorough)
    }

    @Test func moreReferencesNeverTakeMoreThanLevel4() {
        // 5,460 macroblocks are the most of which six pictures fit into level 4.0.
        #expect(search(16 * 78, 16 * 70, changedShare: 0).references == 6)
        #expect(search(16 * 78, 16 * 70 + 2, changedShare: 0).references == 3)
    }

    /// 1280 × 720 needs level 3.1 for three references and 4.0 for six; 1248 × 1122 needs 4.0 for three and 4.2 for six.
    @Test(arguments: [(1280, 720, false, 40), (1280, 720, true, 31), (1248, 1122, false, 40)])
    func theLevelOfAVideoShowsItsReferences(_ width: Int, _ height: Int, changesAll: Bool, level: Int) throws {
        var builder = GIFBuilder(width: width, height: height)
        builder.add(GIFBuilder.Frame(width: width, height: height, color: 1))
        let (partWidth, partHeight) = changesAll ? (width, height) : (64, 64)
        for color in UInt8(2)...3 { builder.add(GIFBuilder.Frame(width: partWidth, height: partHeight, color: color)) }
        #expect(try Converted(builder.finish()).boxes.level == level)
    }

    // MARK: Motion that is seen

    /// A part of a large picture of noise.
    private func scrolled(_ offsets: [(x: Int, y: Int)], width: Int = 192, height: Int = 160) throws -> Double {
        let side = 1024
        var random = SeededNumbers(seed: 5)
        let noise = (0..<side * side).map { _ in UInt8.random(in: 0..<8, using: &random) }
        var builder = GIFBuilder(width: width, height: height)
        for offset in offsets {
            let pixels = (0..<width * height).map { noise[(offset.y + $0 / width) * side + offset.x + $0 % width] }
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels))
        }
        return try PictureContent(of: builder.finish()).farShare
    }

    @Test func aPageThatScrollsComesFromFarAway() throws {
        #expect(try scrolled((0..<5).map { (0, $0 * 40) }) > 0.5)
        #expect(try scrolled((0..<5).map { ($0 * 100, 500) }) > 0.3)
        #expect(try scrolled((0..<3).map { ($0 * 17, $0 * 17) }) > 0.7)
    }

    @Test func whatMovesALittleOrTooFarOrNotAtAllDoesNot() throws {
        #expect(try scrolled((0..<5).map { ($0 * 16, $0 * 10) }) == 0)
        #expect(try scrolled((0..<5).map { (0, $0 * 120) }) == 0)
        #expect(try scrolled(Array(repeating: (7, 7), count: 5)) == 0)
        #expect(try scrolled((0..<5).map { ($0 * 200, $0 * 200) }) == 0)
    }

    /// A picture that is narrower than the rows that are looked for.
    @Test func narrowPicturesHaveNoFarMotion() throws {
        #expect(try scrolled((0..<5).map { (0, $0 * 40) }, width: 9, height: 90) == 0)
    }
}
