import Foundation
import TestSupport
import Testing

@testable import Media

@Suite("A ThumbHash has the bytes of the reference implementation") struct ThumbHashTests {
    /// A picture made of a canvas.
    private func hash(_ width: Int, _ height: Int, _ pixel: (Int, Int) -> (Int, Int, Int, Int)) throws -> ThumbHash {
        let canvas = try Canvas(width: width, height: height, format: .rgba)
        for y in 0..<height {
            for x in 0..<width {
                let (red, green, blue, alpha) = pixel(x, y)
                canvas.pixels[y * width + x] = UInt32(red | green << 8 | blue << 16 | alpha << 24)
            }
        }
        let geometry = PictureGeometry(width: width, height: height, options: SizeOptions())
        return ThumbHash(try StillPicture(canvas, geometry, background: nil))
    }

    private func slope(_ x: Int, _ y: Int) -> (Int, Int, Int, Int) {
        ((x * 7 + y * 3) % 256, (x * x + y * 5) % 256, (y * y * 2 + x) % 256, 255)
    }

    /// The hashes that version 1.0.1 of the Python package thumbhash-python computes for the same pixels.
    @Test(arguments: [
        (60, 40, "XwgGHYKFYHhiY3l0h1h3hph4Hy9/"), (64, 5, "FgoKIYIhgFd1h4iHCXtWwHs="),
        (1, 1, "AAgCBwAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    ])
    func ofSlopes(_ width: Int, _ height: Int, _ expected: String) throws {
        #expect(Data(try hash(width, height, slope).bytes).base64EncodedString() == expected)
    }

    @Test(arguments: [(64, 36, "GZYFJJKQiHeId4eJd3crd/BzJw=="), (30, 64, "F3gCayaRePd0h4hnaXeQdgc=")])
    func ofShapes(_ width: Int, _ height: Int, _ expected: String) throws {
        let hash = try hash(width, height) { x, y in
            let (across, down) = (x - width / 3, y - height / 2)
            return across * across + down * down < (height / 3) * (height / 3)
                ? (200, 30, 40, 255) : (20, 90 + x % 64, 160, 255)
        }
        #expect(Data(hash.bytes).base64EncodedString() == expected)
    }

    @Test(arguments: [(48, 48, "4hiGFQo4w4mDirBod/FzMt30MYZfdpOYlw=="), (64, 20, "m3eGEog4OF+Tt5AJmZ2wxzGGX3aTiJc=")])
    func ofTransparentPictures(_ width: Int, _ height: Int, _ expected: String) throws {
        let hash = try hash(width, height) { x, y in
            x > width / 4 && y < height * 5 / 7 ? (x * 5 % 256, (y * 7 + 30) % 256, x * y % 256, 255) : (0, 0, 0, 0)
        }
        #expect(Data(hash.bytes).base64EncodedString() == expected && hash.hasAlpha)
    }

    @Test func anEvenPictureHasNoCoefficients() throws {
        let grey = try hash(50, 50) { _, _ in (119, 119, 119, 255) }
        #expect(grey.bytes == [0x1d, 0x08, 0x02, 0x07, 0] + [UInt8](repeating: 0, count: 19))
        #expect(grey.painted(width: 3, height: 3).allSatisfy { (110...125).contains($0) || $0 == 255 })
        let clear = try hash(9, 9) { _, _ in (0, 0, 0, 0) }
        #expect(Data(clear.bytes).base64EncodedString() == "AAiCBQAAAAAAAAAAAAAAAAAAAAAAAAAAAA==")
        #expect(stride(from: 3, to: 100, by: 4).allSatisfy { clear.painted(width: 5, height: 5)[$0] == 0 })
    }

    @Test func theBlurLooksLikeThePicture() throws {
        // Red on the left and blue on the right, the lower half darker.
        let hash = try hash(60, 40) { x, y in
            let light = y < 20 ? 220 : 110
            return x < 30 ? (light, 20, 20, 255) : (20, 20, light, 255)
        }
        let pixels = hash.painted(width: 16, height: 10)
        #expect(pixels.count == 640)
        func pixel(_ x: Int, _ y: Int) -> [Int] { pixels[4 * (16 * y + x)..<4 * (16 * y + x) + 4].map(Int.init) }
        #expect(pixel(2, 1)[0] > 150 && pixel(2, 1)[2] < 110 && pixel(13, 1)[2] > 150 && pixel(13, 1)[0] < 110)
        #expect(pixel(2, 8)[0] + 40 < pixel(2, 1)[0] && pixel(13, 8)[2] + 40 < pixel(13, 1)[2])
        #expect((0..<160).allSatisfy { pixels[4 * $0 + 3] == 255 })
    }

    @Test func otherBytesAreNoHash() throws {
        let bytes = try hash(60, 40, slope).bytes
        #expect(ThumbHash(bytes)?.bytes == bytes)
        #expect(ThumbHash([]) == nil && ThumbHash(Array(bytes.dropLast())) == nil && ThumbHash(bytes + [0]) == nil)
        #expect(ThumbHash([UInt8](repeating: 0xff, count: 29)) == nil)
        // Any bytes of a valid length can be painted.
        var numbers = SeededNumbers(seed: 5)
        var painted = 0
        for _ in 0..<2000 {
            let random = (0..<Int.random(in: 0...30, using: &numbers)).map { _ in UInt8.random(in: 0...255, using: &numbers) }
            guard let hash = ThumbHash(random) else { continue }
            painted += 1
            #expect(hash.painted(width: 3, height: 2).count == 24)
        }
        #expect(painted > 20)
    }
}

@Suite("A placeholder describes the first frame") struct PlaceholderTests {
    private func placeholder(_ build: (inout GIFBuilder) -> Void) throws -> Placeholder {
        var builder = GIFBuilder(width: 30, height: 20)
        build(&builder)
        let facts = try Converted(builder.finish(), as: .facts) { _ in }
        return try #require(Placeholder(facts.bytes.suffix(Placeholder.byteCount)))
    }

    @Test func theDominantColourIsTheMostFrequent() throws {
        var pixels = [UInt8](repeating: 2, count: 600)
        for index in 0..<250 { pixels[index] = 4 }
        for index in 250..<280 { pixels[index] = 1 }
        let placeholder = try placeholder {
            $0.add(GIFBuilder.Frame(width: 30, height: 20, pixels: pixels))
            $0.add(color: 3)
        }
        #expect(placeholder.dominantColor == RGB(red: 255, green: 0, blue: 0) && !placeholder.thumbHash.hasAlpha)
    }

    @Test func similarColoursCountTogether() throws {
        let palette: [GIFBuilder.Color] = [(0, 0, 0), (100, 150, 200), (102, 152, 202), (98, 148, 198), (250, 0, 0)]
        let pixels = (0..<600).map { UInt8($0 < 240 ? 4 : $0 < 360 ? 1 : $0 < 480 ? 2 : 3) }
        let placeholder = try placeholder {
            $0.add(GIFBuilder.Frame(width: 30, height: 20, pixels: pixels), localPalette: palette)
        }
        #expect(placeholder.dominantColor == RGB(red: 100, green: 150, blue: 200))
    }

    @Test func whatCannotBeSeenHasNoColour() throws {
        let clear = try placeholder { $0.add(GIFBuilder.Frame(width: 30, height: 20, color: 2)) { $0.transparent = 2 } }
        #expect(clear.dominantColor == .white && clear.thumbHash.hasAlpha)
        let part = try placeholder { $0.add(GIFBuilder.Frame(width: 4, height: 4, color: 4)) }
        #expect(part.dominantColor == RGB(red: 0, green: 0, blue: 255) && part.thumbHash.hasAlpha)
    }

    @Test(arguments: [(1, 1), (4000, 2), (2, 4000), (640, 480)])
    func everySizeHasOne(_ width: Int, _ height: Int) throws {
        let facts = try Converted(GIFBuilder.animation(frames: 1, width: width, height: height), as: .facts) { _ in }
        #expect(
            Placeholder(facts.bytes.suffix(Placeholder.byteCount)) != nil
                && facts.bytes.count == FactsOutput.delayLength + Placeholder.byteCount)
    }

    @Test func aDamagedOneIsRefused() throws {
        let bytes = try placeholder { $0.add(color: 2) }.bytes
        #expect(bytes.count == Placeholder.byteCount && Placeholder(bytes[...]) != nil)
        for (index, value) in [(3, 0), (3, 200), (3, 5), (31, 1)] as [(Int, UInt8)] {
            var damaged = bytes
            damaged[index] = value
            #expect(Placeholder(damaged[...]) == nil, "\(index)")
        }
        #expect(Placeholder(bytes.dropLast()) == nil)
    }
}
