import TestSupport
import Testing

@testable import Media

@Suite("A poster of the frame auto is neither blank nor in a fade", .timeLimit(.minutes(10))) struct RepresentativeFrameTests {
    private static let width = 96
    private static let height = 64

    /// A picture of large areas: a sky, a hill and a sun.
    private static func landscape(_ x: Int, _ y: Int) -> GIFBuilder.Color {
        if (x - 70) * (x - 70) + (y - 14) * (y - 14) < 80 { return (250, 220, 60) }
        return y > 40 - x / 8 ? (40, 120, 50) : (90, 160, 230)
    }

    /// Another one: a face.
    private static func face(_ x: Int, _ y: Int) -> GIFBuilder.Color {
        let (across, down) = (x - 48, y - 32)
        if across * across + down * down > 700 { return (60, 30, 90) }
        return down < -6 && abs(abs(across) - 10) < 4 ? (20, 20, 20) : (230, 180, 150)
    }

    private static func mixed(_ a: GIFBuilder.Color, _ b: GIFBuilder.Color, _ share: Int) -> GIFBuilder.Color {
        func mix(_ a: UInt8, _ b: UInt8) -> UInt8 { UInt8((Int(a) * (100 - share) + Int(b) * share) / 100) }
        return (mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue))
    }

    /// A GIF of pictures, each with a palette of its own.
    private static func gif(_ pictures: [(Int, Int) -> GIFBuilder.Color]) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height)
        for picture in pictures {
            var palette: [GIFBuilder.Color] = []
            var known: [UInt32: UInt8] = [:]
            let pixels = (0..<width * height).map { position -> UInt8 in
                let color = picture(position % width, position / width)
                let key = UInt32(color.red) << 16 | UInt32(color.green) << 8 | UInt32(color.blue)
                if let index = known[key] { return index }
                let index = UInt8(palette.count)
                known[key] = index
                palette.append(color)
                return index
            }
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels), localPalette: palette) {
                $0.minimumCodeSize = 8
            }
        }
        return builder.finish()
    }

    private func chosen(_ gif: [UInt8]) throws -> Int {
        try gif.withUnsafeBytes { bytes in
            try RepresentativeFrame.index(in: bytes, by: GIFReader.self, limits: MediaLimits(), background: .white)
        }
    }

    @Test func blankFramesAreLeftOut() throws {
        let gif = Self.gif([
            { _, _ in (0, 0, 0) }, { _, _ in (255, 255, 255) }, Self.landscape, Self.landscape, { _, _ in (0, 0, 0) },
        ])
        #expect(try chosen(gif) == 2)
        let auto = try Converted(gif, as: .png) { $0.frame = .auto }
        #expect(auto.bytes == (try Converted(gif, as: .png) { $0.frame = .number(2) }).bytes)
        #expect(auto.bytes != (try Converted(gif, as: .png) { _ in }).bytes)
    }

    @Test(arguments: [(0, 0, 0), (255, 255, 255)] as [(UInt8, UInt8, UInt8)])
    func aFadeIsLeftOut(_ red: UInt8, _ green: UInt8, _ blue: UInt8) throws {
        let color: GIFBuilder.Color = (red, green, blue)
        let shares = Array(stride(from: 100, through: 0, by: -10)) + [0, 0] + Array(stride(from: 10, through: 100, by: 10))
        let pictures = shares.map { share in
            { (x: Int, y: Int) in Self.mixed(Self.landscape(x, y), color, share) }
        }
        #expect(try chosen(Self.gif(pictures)) == 10)
    }

    @Test func aCrossfadeIsLeftOut() throws {
        let pictures = [0, 0, 25, 50, 75, 100, 100].map { share in
            { (x: Int, y: Int) in Self.mixed(Self.landscape(x, y), Self.face(x, y), share) }
        }
        #expect([0, 5].contains(try chosen(Self.gif(pictures))))
    }

    @Test func noiseIsNoPicture() throws {
        var numbers = SeededNumbers(seed: 3)
        let noise = (0..<Self.width * Self.height).map { _ in UInt8.random(in: 0...1, using: &numbers) * 255 }
        let gif = Self.gif([
            { x, y in
                let value = noise[y * Self.width + x]
                return (value, value, value)
            }, Self.landscape,
        ])
        #expect(try chosen(gif) == 1)
    }

    @Test func theFirstOfSimilarFramesIsChosen() throws {
        let gif = Self.gif([
            { _, _ in (0, 0, 0) }, Self.landscape, { x, y in x == 3 && y == 3 ? (91, 160, 230) : Self.landscape(x, y) },
        ])
        #expect(try chosen(gif) == 1)
        #expect(try chosen(GIFBuilder.animation(frames: 1)) == 0)
        // Nothing but blank frames.
        #expect(try chosen(Self.gif([{ _, _ in (0, 0, 0) }, { _, _ in (9, 9, 9) }])) == 0)
    }

    @Test func translucentPixelsCountAsTheyAreDrawn() throws {
        var png = APNGBuilder(width: 64, height: 64)
        png.add(APNGBuilder.Frame(width: 64, height: 64, word: 0xc000_40ff))
        let words = (0..<64 * 64).map { UInt32($0 % 64 < 32 ? 0xc0ff_0000 : 0xc000_00ff) }
        png.add(APNGBuilder.Frame(width: 64, height: 64, words: words))
        let index = try png.finish().withUnsafeBytes { bytes in
            try RepresentativeFrame.index(in: bytes, by: APNGReader.self, limits: MediaLimits(), background: .white)
        }
        #expect(index == 1)
    }

    @Test func aFileThatBreaksOffHasTheBestOfItsWholeFrames() throws {
        let gif = Self.gif([{ _, _ in (0, 0, 0) }, Self.landscape, Self.face])
        #expect(try chosen(Array(gif.dropLast(300))) == 1)
        #expect(throws: TranscodeError.incomplete(.gif)) { try Converted(Array(gif.prefix(60)), as: .png) { $0.frame = .auto } }
    }

    @Test func aChangedPartIsAsGoodAsTheWholeCanvas() throws {
        var numbers = SeededNumbers(seed: 11)
        for _ in 0..<20 {
            let (width, height) = (Int.random(in: 1...90, using: &numbers), Int.random(in: 1...90, using: &numbers))
            let canvas = try Canvas(width: width, height: height, format: .rgba)
            let whole = Rectangle(x: 0, y: 0, width: width, height: height)
            var grid = ColorGrid(width: width, height: height, background: 0xffff_ffff)
            grid.update(from: canvas, in: whole)
            for _ in 0..<10 {
                let part = Rectangle(
                    x: Int.random(in: 0..<width, using: &numbers), y: Int.random(in: 0..<height, using: &numbers),
                    width: Int.random(in: 1...width, using: &numbers), height: Int.random(in: 1...height, using: &numbers)
                ).clipped(toWidth: width, height: height)
                let word = UInt32.random(in: 0...0xff_ffff, using: &numbers) | (Bool.random(using: &numbers) ? 0xff00_0000 : 0)
                for y in part.y..<part.maxY {
                    for x in part.x..<part.maxX { canvas.pixels[y * width + x] = word < 0xff00_0000 ? 0 : word }
                }
                grid.update(from: canvas, in: part)
                var fresh = ColorGrid(width: width, height: height, background: 0xffff_ffff)
                fresh.update(from: canvas, in: whole)
                #expect(grid.detail == fresh.detail)
            }
        }
    }
}
