import TestSupport
import Testing

@testable import Media

@Suite("The content of the first frame decides which tools the encoder uses") struct PictureContentTests {
    /// Greys two levels apart.
    private static let greys: [GIFBuilder.Color] = (0..<128).map { number in
        let level = UInt8(number * 2)
        return (level, level, level)
    }

    private func isScreen(
        _ width: Int = 64, _ height: Int = 64, palette: [GIFBuilder.Color] = GIFBuilder.palette,
        tune: TranscodeOptions.Tune = .automatic, _ index: (_ x: Int, _ y: Int) -> Int
    ) throws -> Bool {
        var builder = GIFBuilder(width: width, height: height, palette: palette)
        let pixels = (0..<width * height).map { UInt8(index($0 % width, $0 / width)) }
        builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels)) {
            $0.minimumCodeSize = palette.count.trailingZeroBitCount
        }
        let gif = builder.finish()
        var options = TranscodeOptions()
        options.tune = tune
        return try gif.withUnsafeBytes {
            try PictureContent(ofFirstFrame: $0, by: GIFReader.self, limits: MediaLimits(), options: options).isScreen
        }
    }

    @Test func flatAndDrawnPicturesAreScreens() throws {
        #expect(try isScreen { _, _ in 1 })
        #expect(try isScreen { x, y in (x / 8 + y / 8) % 2 })
        #expect(try isScreen(33, 17) { x, _ in x / 5 % 3 })
        #expect(try isScreen(1, 1) { _, _ in 0 })
    }

    @Test func ditheredPicturesAreNot() throws {
        #expect(try !isScreen { x, y in (x + y) % 2 })
        #expect(try !isScreen { x, y in (x * 7 + y * 13) % 4 })
    }

    /// Gradients as a palette without dither shows them, and with a diffused error here and there.
    @Test func smoothAreasAreOfNeither() throws {
        func smooth(_ x: Int, _ y: Int) -> Int { 30 + x / 6 + y / 6 }
        func isScreen(_ corner: @escaping (_ x: Int, _ y: Int) -> Int) throws -> Bool {
            try self.isScreen(palette: Self.greys) { x, y in x < 16 && y < 16 ? corner(x, y) : smooth(x, y) }
        }
        #expect(try !isScreen(smooth))
        #expect(try !isScreen { x, y in smooth(x, y) + ((x + 2 * y) % 8 == 0 ? 1 : 0) })
        // One block with edges, or with details, decides for all.
        #expect(try isScreen { x, _ in x / 8 * 100 })
        #expect(try isScreen { _, _ in 0 })
        #expect(try !isScreen { x, y in (x * 7 + y * 13) % 128 })
    }

    @Test func halfOfTheBlocksDecide() throws {
        #expect(try isScreen { x, y in y < 32 ? 0 : (x + y) % 2 })
        #expect(try !isScreen { x, y in y < 16 ? 0 : (x + y) % 2 })
    }

    @Test func aStatedContentReplacesTheLook() throws {
        #expect(try !isScreen(tune: .film) { _, _ in 1 })
        #expect(try isScreen(tune: .screen) { x, y in (x + y) % 2 })
        #expect(try isScreen(tune: .pixel) { x, y in (x + y) % 2 })
    }
}
