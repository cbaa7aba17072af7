import TestSupport
import Testing

@testable import Media

@Suite("How far x264 looks for the parts of a drawing") struct DrawingSearchTests {
    private func search(_ width: Int, _ height: Int, changedShare: Double) -> DrawingSearch {
        DrawingSearch(width: width, height: height, changedShare: changedShare)
    }

    @Test func aDrawingThatChangesLittleIsSearchedInMorePictures() {
        #expect(search(640, 480, changedShare: 0.3).options == ":me=umh:merange=64:ref=6")
        #expect(search(640, 480, changedShare: 0.31).options == ":me=umh:merange=64:ref=3")
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

    @Test func theShareIsThatOfTheFramesAfterTheFirst() throws {
        func share(_ rectangles: [(x: Int, y: Int, side: Int)]) throws -> Double {
            var builder = GIFBuilder(width: 40, height: 40)
            for (x, y, side) in rectangles {
                builder.add(GIFBuilder.Frame(width: side, height: side, color: 1)) { (frame: inout GIFBuilder.Frame) in
                    (frame.x, frame.y) = (x, y)
                }
            }
            let gif = builder.finish()
            return try gif.withUnsafeBytes {
                try AnimationSummary(scanning: $0, by: GIFReader.self, limits: MediaLimits()).changedShare
            }
        }
        #expect(try share([(0, 0, 40)]) == 0)
        #expect(try share([(0, 0, 40), (0, 0, 20)]) == 0.25)
        #expect(try share([(0, 0, 10), (0, 0, 40), (4, 4, 20), (9, 9, 20)]) == 0.5)
        // A frame may be larger than the canvas.
        #expect(try share([(0, 0, 40), (0, 0, 80)]) == 1)
    }
}
