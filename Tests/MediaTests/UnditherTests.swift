import TestSupport
import Testing

@testable import Media

@Suite("Undithering takes out the dither of a palette and nothing else") struct UnditherTests {
    private typealias Dither = DitheredFilm.Dither

    private static let width = DitheredFilm.width
    private static let height = DitheredFilm.height
    private static let greys = DitheredFilm.greys

    /// The picture of a film: a gradient with a bright disc that moves.
    private static func film(_ frame: Int) -> [Double] {
        (0..<width * height).map { index in
            let (x, y) = (Double(index % width), Double(index / width))
            let distance = ((x - 20 - Double(frame) * 3) * (x - 20 - Double(frame) * 3) + (y - 30) * (y - 30)).squareRoot()
            return distance < 12 ? 200 - distance * 3 : 40 + x * 0.9 + y * 0.5
        }
    }

    /// Colours whose chroma differs as their lightness does.
    private static let tinted: [GIFBuilder.Color] = greys.map { ($0.0, UInt8(Int($0.1) * 2 / 3), 252 - $0.2) }

    private static func gif(_ dither: Dither?, frames: Int = 4) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height, palette: greys)
        for frame in 0..<frames {
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: DitheredFilm.reduced(film(frame), dither))) {
                $0.minimumCodeSize = 5
            }
        }
        return builder.finish()
    }

    private func content(
        _ gif: [UInt8], tune: TranscodeOptions.Tune = .automatic, undithers: Bool = true
    ) throws -> PictureContent {
        var options = TranscodeOptions()
        (options.tune, options.undither) = (tune, undithers ? .always : .never)
        return try PictureContent(of: gif, options)
    }

    @Test(arguments: Dither.allCases) func theEncoderKnowsAFilmWithoutItsDither(_ dither: DitheredFilm.Dither) throws {
        let film = Self.gif(dither, frames: 1)
        let found = try content(film)
        let undithered = PictureContent(
            isDrawing: false, losesDither: true, isUndithered: true, detail: found.detail, isSmall: true)
        #expect(found == undithered && found.detail > 0)
        #expect(try content(film, tune: .film) == undithered)
        #expect(try content(film, tune: .screen) == PictureContent(isDrawing: true, losesDither: true, isSmall: true))
        #expect(try !content(film, undithers: false).isUndithered)
    }

    @Test func aFilmThatHadNoDitherIsNoneWithoutIt() throws {
        let film = Self.gif(nil, frames: 1)
        let (with, without) = try (content(film), content(film, undithers: false))
        #expect(!with.isUndithered && with.isDrawing == without.isDrawing && with.changedShare == without.changedShare)
    }

    /// The last picture, undithered, as red, green, blue and alpha.
    private func undithered(_ gif: [UInt8], format: PixelFormat) throws -> (words: [UInt32], original: [UInt32]) {
        try gif.withUnsafeBytes { bytes in
            var decoder = try GIFReader(bytes, limits: MediaLimits())
            var canvas: Canvas?
            var undither: Undither?
            var words: [UInt32] = []
            var original: [UInt32] = []
            while try decoder.next(), let pixels = try decoder.readPixels() {
                let size = decoder.canvasSize
                if canvas == nil {
                    canvas = try Canvas(width: size.width, height: size.height, format: format)
                    undither = try Undither(width: size.width, height: size.height, format: format)
                }
                let area = try canvas?.draw(decoder, pixels)
                undither?.enter(decoder)
                guard let area, let undither, let copy = canvas.take() else { break }
                _ = undither.update(copy, area)
                words = (0..<size.width * size.height).map { undither.output.pixels[$0] }
                original = (0..<size.width * size.height).map { copy.pixels[$0] }
                canvas = consume copy
            }
            return (words, original)
        }
    }

    private func error(_ words: [UInt32], against film: [Double]) -> Double {
        zip(words, film).reduce(0) { sum, pair in
            let difference = Double(pair.0 & 255) - pair.1
            return sum + difference * difference
        } / Double(words.count)
    }

    @Test(arguments: [Dither.diffused, .ordered]) private func aDitheredFilmComesCloserToTheFilm(_ dither: Dither) throws {
        let (words, original) = try undithered(Self.gif(dither), format: .rgba)
        let film = Self.film(3)
        let before = error(original, against: film)
        let after = error(words, against: film)
        #expect(after < 0.4 * before, "\(dither): \(before) to \(after)")
        // No pixel moves further than the mean distance to the three nearest greys: 12, 12 and 24 levels.
        #expect(zip(words, original).allSatisfy { abs(Int($0 & 255) - Int($1 & 255)) <= 16 })
    }

    @Test func theNoiseOfAFilmStaysWhereTheMatrixIsTakenOut() throws {
        var random = SeededNumbers(seed: 7)
        // The sum of four numbers has a deviation of 0.58.
        let film = Self.film(0).map { level in
            level + (0..<4).reduce(0) { sum, _ in sum + Double.random(in: -0.5...0.5, using: &random) } * 14
        }
        var builder = GIFBuilder(width: Self.width, height: Self.height, palette: Self.greys)
        builder.add(GIFBuilder.Frame(width: Self.width, height: Self.height, pixels: DitheredFilm.reduced(film, .ordered))) {
            $0.minimumCodeSize = 5
        }
        let (words, original) = try undithered(builder.finish(), format: .rgba)
        #expect(words != original)
        #expect(error(words, against: film) < error(original, against: film))
    }

    @Test(arguments: [Dither.diffused, .ordered]) private func theVideoIsSmallerAndDeterministic(_ dither: Dither) throws {
        let gif = Self.gif(dither)
        let plain = try Converted(gif) { $0.undither = .never }
        let first = try Converted(gif) { $0.undither = .always }
        let second = try Converted(gif) { $0.undither = .always }
        #expect(first.bytes.count < plain.bytes.count * 3 / 4, "\(plain.bytes.count) to \(first.bytes.count)")
        #expect(first.bytes == second.bytes)
        #expect(first.result.samples == plain.result.samples && first.result.duration == plain.result.duration)
    }

    @Test func gradientsDoNotBecomeBands() throws {
        var builder = GIFBuilder(width: Self.width, height: Self.height, palette: Self.greys)
        let film = (0..<Self.width * Self.height).map { 60 + Double($0 % Self.width) * 0.5 }
        builder.add(GIFBuilder.Frame(width: Self.width, height: Self.height, pixels: DitheredFilm.reduced(film, .diffused))) {
            $0.minimumCodeSize = 5
        }
        let (words, _) = try undithered(builder.finish(), format: .rgba)
        // In the middle rows, the mean of eight columns is within a level and a half of the film.
        for left in 4..<Self.width - 12 {
            let mean =
                (16..<48).reduce(0.0) { sum, y in
                    (left..<left + 8).reduce(sum) { $0 + Double(words[y * Self.width + $1] & 255) }
                } / 256
            let expected = (left..<left + 8).reduce(0.0) { $0 + film[$1] } / 8
            #expect(abs(mean - expected) < 1.5, "columns from \(left): \(mean) instead of \(expected)")
        }
    }

    @Test func withoutDitherNothingChanges() throws {
        let gif = Self.gif(nil)
        #expect(try Converted(gif).bytes == Converted(gif) { $0.undither = .always }.bytes)
        for format in [PixelFormat.rgba, .yuv(background: .white)] {
            let (words, original) = try undithered(gif, format: format)
            #expect(words == original)
        }
    }

    /// A screen: lines of text-like strokes in two colours, and boxes.
    private static func screen() -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height, palette: greys)
        for frame in 0..<3 {
            let pixels = (0..<width * height).map { index -> UInt8 in
                let (x, y) = (index % width, index / width)
                if y % 10 < 6 && (x * 7 + y / 10 * 5) % 11 < 4 && x < 40 + 20 * frame { return 1 }
                return x > 70 && y > 40 ? 9 : 20
            }
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels)) { $0.minimumCodeSize = 5 }
        }
        return builder.finish()
    }

    @Test(arguments: [OutputFormat.mp4, .png, .jpg, .webp]) func screensStayAsTheyAreInAllFormats(_ output: OutputFormat) throws
    {
        let gif = Self.screen()
        #expect(try Converted(gif, as: output) { _ in }.bytes == Converted(gif, as: output) { $0.undither = .always }.bytes)
    }

    @Test func pixelArtStaysAsItIs() throws {
        // Colours far apart, alternating pixel by pixel as artists dither.
        var builder = GIFBuilder(width: 32, height: 32)
        let pixels = (0..<1024).map { index -> UInt8 in
            let isEven = (index % 32 + index / 32) % 2 == 0
            return isEven ? 2 : UInt8(3 + index / 512)
        }
        builder.add(GIFBuilder.Frame(width: 32, height: 32, pixels: pixels))
        let gif = builder.finish()
        #expect(try Converted(gif).bytes == Converted(gif) { $0.undither = .always }.bytes)
    }

    @Test(arguments: [4, 8, 16, 24, 36]) func patternsOfNearColoursStayAsTheyAre(_ distance: Int) throws {
        let near = [UInt8(100), UInt8(100 + distance), 200, 0].map { ($0, $0, $0) }
        for pattern in [{ ($0 + $1) & 1 }, { x, _ in x & 1 }, { x, y in x & y & 1 }] as [(Int, Int) -> Int] {
            var builder = GIFBuilder(width: 64, height: 64, palette: near)
            let pixels = (0..<64 * 64).map { index in
                let (x, y) = (index % 64, index / 64)
                return UInt8(x < 40 ? pattern(x, y) : 2 + (x / 8 + y / 8) % 2)
            }
            for _ in 0..<3 { builder.add(GIFBuilder.Frame(width: 64, height: 64, pixels: pixels)) }
            for format in [PixelFormat.rgba, .yuv(background: .white)] {
                let (words, original) = try undithered(builder.finish(), format: format)
                #expect(words == original)
            }
        }
    }

    @Test func aPosterShowsTheFilmToo() throws {
        let gif = Self.gif(.diffused)
        let plain = try Converted(gif, as: .png) { $0.frame = .number(2) }.picture()
        let poster = try Converted(gif, as: .png) {
            $0.frame = .number(2)
            $0.undither = .always
        }.picture()
        let film = Self.film(2)
        #expect(error(poster, against: film) < 0.4 * error(plain, against: film))
    }

    @Test func transparentPixelsStayTransparent() throws {
        var builder = GIFBuilder(width: Self.width, height: Self.height, palette: Self.greys)
        let pixels = DitheredFilm.reduced(Self.film(0), .diffused).enumerated().map { $0 % Self.width < 30 ? 21 : min($1, 20) }
        builder.add(GIFBuilder.Frame(width: Self.width, height: Self.height, pixels: pixels)) {
            $0.minimumCodeSize = 5
            $0.transparent = 21
        }
        let (words, original) = try undithered(builder.finish(), format: .rgba)
        #expect(words != original)
        #expect(zip(words, original).allSatisfy { $0 >> 24 == $1 >> 24 && ($1 >> 24 == 255 || $0 == 0) })
    }

    @Test(arguments: [(41, 25), (50, 64), (101, 67), (129, 130)])
    private func picturesOfAnySizeAreFiltered(_ width: Int, _ height: Int) throws {
        var builder = GIFBuilder(width: width, height: height, palette: Self.tinted)
        // A level between two colours, mixed by a checkerboard, which becomes lighter from left to right.
        let pixels = (0..<width * height).map { UInt8(4 + ($0 % width) / 16 + ($0 % width + $0 / width) % 2) }
        builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels)) { $0.minimumCodeSize = 5 }
        for format in [PixelFormat.rgba, .yuv(background: .white)] {
            let (words, original) = try undithered(builder.finish(), format: format)
            let moved = zip(words, original).count { $0 != $1 }
            // Blocks at edges between levels keep some of their pixels.
            #expect(moved > width * height / 2, "\(moved) of \(width * height)")
        }
    }

    /// A part of the canvas that changes is filtered as if all of it were.
    @Test(arguments: [greys, tinted]) private func changesOfAPartGiveTheSamePictureAsTheWhole(
        _ palette: [GIFBuilder.Color]
    ) throws {
        let film = DitheredFilm.reduced(Self.film(0), .diffused)
        let next = DitheredFilm.reduced(Self.film(1), .diffused)
        var whole = GIFBuilder(width: Self.width, height: Self.height, palette: palette)
        var part = whole
        func add(_ builder: inout GIFBuilder, _ frame: GIFBuilder.Frame, _ x: Int, _ y: Int) {
            builder.add(frame) { ($0.x, $0.y, $0.minimumCodeSize) = (x, y, 5) }
        }
        let first = GIFBuilder.Frame(width: Self.width, height: Self.height, pixels: film)
        add(&whole, first, 0, 0)
        add(&part, first, 0, 0)
        let (left, top, side) = (35, 21, 20)
        let inside = (0..<side * side).map { next[(top + $0 / side) * Self.width + left + $0 % side] }
        var merged = film
        for index in inside.indices { merged[(top + index / side) * Self.width + left + index % side] = inside[index] }
        add(&whole, GIFBuilder.Frame(width: Self.width, height: Self.height, pixels: merged), 0, 0)
        add(&part, GIFBuilder.Frame(width: side, height: side, pixels: inside), left, top)
        for format in [PixelFormat.rgba, .yuv(background: .white)] {
            let one = try undithered(whole.finish(), format: format)
            let other = try undithered(part.finish(), format: format)
            #expect(one.original == other.original)
            let different = one.words.indices.filter { one.words[$0] != other.words[$0] }
            #expect(different.isEmpty, "\(different.map { ($0 % Self.width, $0 / Self.width) })")
        }
    }
}

@Suite("The reach of a colour") struct PaletteReachTests {
    /// Sets have another order in each process, and the result must be the same.
    @Test func colorsThatShareACellHaveTheLargestReach() throws {
        // Eight cells with two levels each, whose distances to the next cell alternate: 10 and 26 levels.
        let first = (0..<8).map { $0 / 2 * 48 + $0 % 2 * 16 }
        let levels = first.flatMap { [UInt8($0), UInt8($0 + 6)] }
        var builder = GIFBuilder(width: 4, height: 4, palette: levels.map { ($0, $0, $0) })
        builder.add(GIFBuilder.Frame(width: 4, height: 4, pixels: Array(0..<16))) { $0.minimumCodeSize = 4 }
        try builder.finish().withUnsafeBytes { bytes in
            var decoder = try GIFReader(bytes, limits: MediaLimits())
            #expect(try decoder.next())
            var reach = try PaletteReach(.rgba)
            reach.enter(decoder)
            // One level of each cell has neighbours at 6, 10 and 16 levels, the other at 6, 16 and 22.
            for level in levels {
                #expect(reach.lookUp(0xff00_0000 | 0x10101 * UInt32(level)) == Int32((6 + 16 + 22) * PaletteReach.unit / 3))
            }
        }
    }
}

@Suite("The transform of undithering") struct BlockTransformTests {
    @Test func thereAndBackAgainIsTheSame() {
        var numbers = SeededNumbers(seed: 5)
        for _ in 0..<100 {
            let samples = (0..<64).map { _ in Int16.random(in: -20...20, using: &numbers) }
            var block = samples.withUnsafeBufferPointer { TransformBlock($0.baseAddress!, stride: 8) }
            block.forward()
            let weights = DitherStrength.weights
            block.rows = (
                block.rows.0 &* weights[0], block.rows.1 &* weights[1], block.rows.2 &* weights[2], block.rows.3 &* weights[3],
                block.rows.4 &* weights[4], block.rows.5 &* weights[5], block.rows.6 &* weights[6], block.rows.7 &* weights[7]
            )
            block.inverse()
            let rows = [
                block.rows.0, block.rows.1, block.rows.2, block.rows.3, block.rows.4, block.rows.5, block.rows.6, block.rows.7,
            ]
            for index in 0..<64 {
                // Thirty-two units are one; the weights are whole numbers, and so a few per cent off.
                #expect(abs(Int(rows[index / 8][index % 8]) - 32 * Int(samples[index])) <= 48)
            }
        }
    }

    @Test func aCheckerboardIsTheHighestFrequency() {
        let samples = (0..<64).map { Int16(($0 / 8 + $0 % 8) % 2 == 0 ? 10 : -10) }
        var block = samples.withUnsafeBufferPointer { TransformBlock($0.baseAddress!, stride: 8) }
        block.forward()
        let last = block.rows.7
        #expect((0..<7).allSatisfy { abs(last[$0]) < abs(last[7]) })
    }
}
