import TestSupport
import Testing

@testable import Media

/// Answers follow from the text of WCAG 2.2, “general flash and red flash thresholds”.
@Suite("Flashes are counted as the definition has them") struct FlashTests {
    private static let black: GIFBuilder.Color = (0, 0, 0)
    private static let white: GIFBuilder.Color = (255, 255, 255)
    private static let red: GIFBuilder.Color = (255, 0, 0)

    /// Two colours that alternate in a rectangle on the first one.
    ///
    /// - Parameters:
    ///   - delay: Of each picture, in hundredths of a second.
    ///   - loops: Nil for one play, 0 for endless.
    private static func alternating(
        _ first: GIFBuilder.Color, _ second: GIFBuilder.Color, delay: Int = 10, pictures: Int = 2, loops: Int? = 0,
        canvas: (Int, Int) = (148, 148), area: (Int, Int) = (148, 148), lead: Int = 0
    ) -> [UInt8] {
        var builder = GIFBuilder(width: canvas.0, height: canvas.1, palette: [first, second])
        if let loops { builder.addLoop(loops) }
        builder.add(GIFBuilder.Frame(width: canvas.0, height: canvas.1, color: 0)) { $0.delay = lead + delay }
        for index in 1..<pictures {
            builder.add(GIFBuilder.Frame(width: area.0, height: area.1, color: UInt8(index % 2))) { $0.delay = delay }
        }
        return builder.finish()
    }

    private func flashes(_ gif: [UInt8]) throws -> Flashes {
        let facts = try Converted(gif, as: .facts) { $0.facts = .flashes }
        return try #require(Flashes(FactsOutput.parts(facts.bytes, frames: facts.result.frames).requested))
    }

    /// The last picture is cut off, and with it the fifth flash.
    @Test func thoseOfAFileThatBreaksOffAreOfItsWholePictures() throws {
        let whole = Self.alternating(Self.black, Self.white, pictures: 10, loops: nil)
        #expect(try flashes(whole).general == 4)
        #expect(
            try flashes(Array(whole.dropLast(4))) == flashes(Self.alternating(Self.black, Self.white, pictures: 9, loops: nil)))
    }

    /// Half as many as pictures appear within one second.
    @Test(arguments: [(10, 5), (13, 4), (17, 3), (34, 1), (50, 1), (100, 0), (2, 25), (5, 10)])
    func theyAreTheMostWithinASecond(_ delay: Int, _ count: Int) throws {
        #expect(try flashes(Self.alternating(Self.black, Self.white, delay: delay)).general == count)
    }

    /// The luminance of grey 89 is 0.0999, of 90 0.1022, of 231 0.799 and of 232 0.807.
    @Test(arguments: [(0, 89, 0), (0, 90, 5), (231, 255, 5), (232, 255, 0), (100, 120, 0), (100, 140, 5)])
    func theirLuminanceChangesByATenthFromADarkPicture(_ first: Int, _ second: Int, _ count: Int) throws {
        let colors = [first, second].map { level in (UInt8(level), UInt8(level), UInt8(level)) }
        #expect(try flashes(Self.alternating(colors[0], colors[1])).general == count)
        #expect(try flashes(Self.alternating(colors[1], colors[0])).general == count)
    }

    /// A quarter of 341 × 256 is 21,824. A side of a square of the picture is 5 pixels, of the large one 8.
    @Test(
        arguments: [
            ((400, 300), (150, 145), 0), ((400, 300), (150, 150), 5), ((140, 150), (140, 150), 0), ((148, 148), (148, 148), 5),
            ((700, 360), (143, 143), 0), ((700, 360), (154, 154), 5), ((700, 360), (700, 8), 0),
        ] as [((Int, Int), (Int, Int), Int)])
    func theyCoverAQuarterOfTenDegrees(_ canvas: (Int, Int), _ area: (Int, Int), _ count: Int) throws {
        #expect(try flashes(Self.alternating(Self.black, Self.white, canvas: canvas, area: area)).general == count)
    }

    /// Grey 127 has the luminance of red, so that nothing else flashes.
    @Test func redFlashesAreThoseOfSaturatedRed() throws {
        let grey: GIFBuilder.Color = (127, 127, 127)
        let saturated = try flashes(Self.alternating(Self.red, grey))
        #expect(saturated.red == 5 && saturated.general == 0)
        #expect(try flashes(Self.alternating(grey, Self.red)).red == 5)
        // R / (R + G + B) is 0.76.
        #expect(try flashes(Self.alternating((255, 110, 110), (150, 150, 150))).red == 0)
        // 320 × (R − G − B) is 17 and 22.
        #expect(try flashes(Self.alternating((66, 0, 0), Self.black)).red == 0)
        #expect(try flashes(Self.alternating((74, 0, 0), Self.black)).red == 5)
        let both = try flashes(Self.alternating(Self.red, Self.white))
        #expect(both.red == 5 && both.general == 5)
    }

    @Test func anAnimationFlashesAsOftenAsItIsPlayed() throws {
        let once = Self.alternating(Self.black, Self.white, pictures: 4, loops: nil)
        #expect(try flashes(once).general == 1)
        #expect(try flashes(Self.alternating(Self.black, Self.white, pictures: 4, loops: 1)).general == 3)
        #expect(try flashes(Self.alternating(Self.black, Self.white, pictures: 4, loops: 0)).general == 5)
        // Four transitions at its end, and four at its beginning.
        var builder = GIFBuilder(width: 148, height: 148, palette: [Self.black, Self.white])
        builder.addLoop(0)
        for (index, delay) in [10, 10, 10, 10, 200, 10, 10, 10, 10].enumerated() {
            builder.add(GIFBuilder.Frame(width: 148, height: 148, color: UInt8(index % 2))) { $0.delay = delay }
        }
        #expect(try flashes(builder.finish()).general == 4)
    }

    /// The pictures of clips may be that short.
    @Test(.timeLimit(.minutes(1))) func aMillionPlaysInASecondAreCountedAsTheMost() throws {
        let white = try Canvas(width: 148, height: 148, format: .rgba)
        let black = try Canvas(width: 148, height: 148, format: .rgba)
        black.pixels.update(repeating: PixelFormat.opaque, count: 148 * 148)
        var counter = FlashCounter(width: 148, height: 148, timescale: 1_000_000, plays: nil)
        counter.show(black, nil, for: 0)
        counter.show(white, nil, for: 1)
        #expect(counter.flashes.general == 100 && counter.flashes.red == 0)
    }

    @Test func theWorstSecondBeginsWithItsFirstChange() throws {
        let calm = try flashes(Self.alternating(Self.black, Self.white, delay: 10, pictures: 12, loops: nil, lead: 300))
        #expect(calm == Flashes(general: 5, red: 0, worstSecond: 310))
    }

    /// It changes each place once.
    @Test func somethingThatMovesDoesNotFlash() throws {
        var builder = GIFBuilder(width: 240, height: 150, palette: [Self.black, Self.white])
        builder.add(GIFBuilder.Frame(width: 240, height: 150, color: 0)) { $0.delay = 5 }
        for x in stride(from: 0, to: 200, by: 10) {
            builder.add(GIFBuilder.Frame(width: 40, height: 150, color: 1)) {
                $0.x = x
                $0.delay = 5
                $0.disposal = 2
            }
        }
        #expect(try flashes(builder.finish()).general <= 1)
    }

    @Test func stillAndFinePicturesDoNotFlash() throws {
        #expect(try flashes(Self.alternating(Self.white, Self.white)) == Flashes(general: 0, red: 0, worstSecond: 0))
        var builder = GIFBuilder(width: 148, height: 148, palette: [Self.black, Self.white])
        builder.addLoop(0)
        for index in 0..<2 {
            let pixels = (0..<148 * 148).map { UInt8(($0 % 148 + $0 / 148 + index) % 2) }
            builder.add(GIFBuilder.Frame(width: 148, height: 148, pixels: pixels)) { $0.delay = 10 }
        }
        #expect(try flashes(builder.finish()).general == 0)
    }

    @Test func theFormInAFileIsReadWithinItsRanges() {
        let flashes = Flashes(general: 5, red: 100, worstSecond: 1 << 52)
        #expect(Flashes(flashes.bytes[...]) == flashes)
        #expect(Flashes(Flashes(general: 101, red: 0, worstSecond: 0).bytes[...]) == nil)
        #expect(Flashes(Flashes(general: 0, red: 0, worstSecond: 1 << 53).bytes[...]) == nil)
        #expect(Flashes(flashes.bytes.dropLast()) == nil)
    }
}
