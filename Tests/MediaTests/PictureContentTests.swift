import TestSupport
import Testing

@testable import Media

extension PictureContent {
    /// The content of a part of a GIF.
    init(of gif: [UInt8], _ options: TranscodeOptions = TranscodeOptions()) throws {
        self = try gif.withUnsafeBytes { bytes in
            try ContentProbe.content(of: ScannedSource<GIFReader>(Transcoder(options: options), bytes))
        }
    }
}

@Suite("What is shown decides which tools the encoder uses") struct PictureContentTests {
    /// Greys two levels apart.
    private static let greys: [GIFBuilder.Color] = (0..<128).map { number in
        let level = UInt8(number * 2)
        return (level, level, level)
    }

    private typealias Picture = (_ x: Int, _ y: Int) -> Int

    /// A GIF of whole frames.
    private func gif(
        _ pictures: [Picture], _ width: Int = 64, _ height: Int = 64, palette: [GIFBuilder.Color] = greys
    ) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height, palette: palette)
        for picture in pictures {
            let pixels = (0..<width * height).map { UInt8(picture($0 % width, $0 / width)) }
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels)) {
                ($0.minimumCodeSize, $0.delay) = (palette.count.trailingZeroBitCount, 10)
            }
        }
        return builder.finish()
    }

    private func isDrawing(
        _ width: Int = 64, _ height: Int = 64, palette: [GIFBuilder.Color] = GIFBuilder.palette,
        tune: TranscodeOptions.Tune = .automatic, _ picture: Picture
    ) throws -> Bool {
        try withoutActuallyEscaping(picture) { picture in
            var options = TranscodeOptions()
            options.tune = tune
            return try PictureContent(of: gif([picture], width, height, palette: palette), options).isDrawing
        }
    }

    // MARK: One picture

    @Test func flatAndDrawnPicturesAreScreens() throws {
        #expect(try isDrawing { _, _ in 1 })
        #expect(try isDrawing { x, y in (x / 8 + y / 8) % 2 })
        #expect(try isDrawing(33, 17) { x, _ in x / 5 % 3 })
        #expect(try isDrawing(1, 1) { _, _ in 0 })
    }

    @Test func ditheredPicturesAreNot() throws {
        #expect(try !isDrawing { x, y in (x + y) % 2 })
        #expect(try !isDrawing { x, y in (x * 7 + y * 13) % 4 })
    }

    /// Gradients as a palette without dither shows them, and with a diffused error here and there.
    @Test func smoothAreasAreOfNeither() throws {
        func smooth(_ x: Int, _ y: Int) -> Int { 30 + x / 6 + y / 6 }
        func isDrawing(_ corner: @escaping Picture) throws -> Bool {
            try self.isDrawing(palette: Self.greys) { x, y in x < 16 && y < 16 ? corner(x, y) : smooth(x, y) }
        }
        #expect(try !isDrawing(smooth))
        #expect(try !isDrawing { x, y in smooth(x, y) + ((x + 2 * y) % 8 == 0 ? 1 : 0) })
        // One block with edges, or with details, decides for all.
        #expect(try isDrawing { x, _ in x / 8 * 100 })
        #expect(try isDrawing { _, _ in 0 })
        #expect(try !isDrawing { x, y in (x * 7 + y * 13) % 128 })
    }

    @Test func halfOfTheBlocksDecide() throws {
        #expect(try isDrawing { x, y in y < 32 ? 0 : (x + y) % 2 })
        #expect(try !isDrawing { x, y in y < 16 ? 0 : (x + y) % 2 })
    }

    @Test func aStatedContentReplacesTheLook() throws {
        #expect(try !isDrawing(tune: .film) { _, _ in 1 })
        #expect(try isDrawing(tune: .screen) { x, y in (x + y) % 2 })
        #expect(try isDrawing(tune: .pixel) { x, y in (x + y) % 2 })
    }

    // MARK: Several pictures

    /// Pictures of a film.
    private static func film(_ number: Int) -> Picture { { x, y in (x * 7 + y * 13 + number * 29) % 128 } }
    /// A bar that moves over a plain picture.
    private static func drawing(_ number: Int) -> Picture { { x, _ in x / 16 == number % 4 ? 100 : 20 } }
    private static func black(_ x: Int, _ y: Int) -> Int { 0 }

    @Test(arguments: [1, 5, 30]) func aFilmThatBeginsWithBlackIsAFilm(_ blank: Int) throws {
        let pictures = Array(repeating: Self.black as Picture, count: blank) + (0..<30).map(Self.film)
        #expect(try !PictureContent(of: gif(pictures)).isDrawing)
        #expect(try !PictureContent(of: cropped(pictures)).isDrawing)
    }

    @Test func aPhotographOnWhichLittleIsDrawnIsAFilm() throws {
        let pictures = (0..<8).map { number -> Picture in
            { x, y in x < 16 && y < 16 ? number % 2 * 100 : Self.film(0)(x, y) }
        }
        #expect(try !PictureContent(of: gif(pictures)).isDrawing)
    }

    @Test func onlyTheRequestedPartIsLookedAt() throws {
        let gif = gif((0..<20).map(Self.drawing) + (0..<20).map(Self.film))
        var options = TranscodeOptions()
        options.time.end = 200
        #expect(try PictureContent(of: gif, options).isDrawing)
        options.time = TimeOptions(start: 200)
        #expect(try !PictureContent(of: gif, options).isDrawing)
    }

    @Test func framesThatTheRateDropsDoNotCount() throws {
        let pictures = (0..<40).map { $0 % 4 == 0 ? Self.drawing($0 / 4) : Self.film($0) }
        var options = TranscodeOptions()
        options.time.ceiling = 2500
        #expect(try PictureContent(of: gif(pictures), options).isDrawing)
        #expect(try !PictureContent(of: gif(pictures)).isDrawing)
    }

    /// A GIF whose frames are the rectangles that change.
    private func cropped(_ pictures: [Picture], side: Int = 64) -> [UInt8] {
        var builder = GIFBuilder(width: side, height: side, palette: Self.greys)
        var last: [UInt8] = []
        for picture in pictures {
            let pixels = (0..<side * side).map { UInt8(picture($0 % side, $0 / side)) }
            let changes = last.isEmpty ? Array(pixels.indices) : pixels.indices.filter { pixels[$0] != last[$0] }
            let (left, right) = (changes.map { $0 % side }.min() ?? 0, changes.map { $0 % side }.max() ?? 0)
            let (top, bottom) = (changes.map { $0 / side }.min() ?? 0, changes.map { $0 / side }.max() ?? 0)
            let part = (top...bottom).flatMap { y in (left...right).map { pixels[y * side + $0] } }
            builder.add(GIFBuilder.Frame(width: right - left + 1, height: bottom - top + 1, pixels: part)) {
                ($0.x, $0.y, $0.minimumCodeSize, $0.delay) = (left, top, 7, 10)
            }
            last = pixels
        }
        return builder.finish()
    }

    /// A square of 16 pixels that moves in steps of its side.
    private static func square(_ number: Int) -> Picture {
        { x, y in x / 16 == number % 4 && y / 16 == number / 4 % 4 ? 90 : 10 }
    }

    @Test(arguments: [2, 5, 17, 60]) func theChangedShareIsThatOfTheBlocksThatDiffer(_ count: Int) throws {
        let pictures = (0..<count).map(Self.square)
        // A square leaves one block and enters another.
        #expect(try PictureContent(of: gif(pictures)).changedShare == 0.125)
        // Where only the beginning is composed, the bytes of the other frames change the estimate a little.
        #expect(try abs(PictureContent(of: cropped(pictures)).changedShare - 0.125) < 0.02)
        #expect(try PictureContent(of: gif([Self.black])).changedShare == 0)
    }

    /// Only the beginning of cropped frames is composed.
    @Test func theChangedShareIsThatOfThePart() throws {
        let pictures =
            (0..<40).map(Self.film)
            + Array(repeating: Self.film(39), count: 160).enumerated().map { number, film in
                { x, y in x == 0 && y == 0 ? number % 2 : film(x, y) } as Picture
            }
        let share = try PictureContent(of: cropped(pictures)).changedShare
        #expect(share > 0.1 && share < 0.35)
    }

    @Test(arguments: [2, 12, 40]) func theBytesDoNotDependOnHowTheFramesAreCoded(_ count: Int) throws {
        let pictures = (0..<count).map(Self.square)
        #expect(try Converted(gif(pictures)).bytes == Converted(cropped(pictures)).bytes)
    }

    @Test(arguments: [OutputFormat.mp4, .webm, .avif])
    func aPartTakesNoMoreThanAFileOfItsFrames(_ format: OutputFormat) throws {
        let drawn = (0..<5).map(Self.drawing)
        let all = gif((0..<30).map(Self.film) + drawn + (0..<30).map(Self.film))
        let part = try Converted(all, as: format) { $0.time = TimeOptions(start: 300, end: 350) }
        let alone = try Converted(gif(drawn), as: format) { _ in }
        #expect(part.result.samples == 5 && alone.result.samples == 5)
        #expect(part.bytes.count == alone.bytes.count)
    }
}
