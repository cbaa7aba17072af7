import Foundation
import TestSupport
import Testing

@testable import Media

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
        #expect(placeholder.dominantColor == RGB(red: 255, green: 0, blue: 0))
    }

    @Test func similarColoursCountTogether() throws {
        let palette: [GIFBuilder.Color] = [(0, 0, 0), (100, 150, 200), (102, 152, 202), (98, 148, 198), (250, 0, 0)]
        let pixels = (0..<600).map { UInt8($0 < 240 ? 4 : $0 < 360 ? 1 : $0 < 480 ? 2 : 3) }
        let placeholder = try placeholder {
            $0.add(GIFBuilder.Frame(width: 30, height: 20, pixels: pixels), localPalette: palette)
        }
        #expect(placeholder.dominantColor == RGB(red: 100, green: 150, blue: 200))
    }

    /// The texts are those of PyPI's blurhash-python 1.2.2.
    @Test(arguments: [
        (30, 20, "L5K_2N~VGi_1_Nt6NIxrKlr^CFX3"), (20, 30, "T7L4cw_LOF.8osSbRYOqOG.8orSb"),
        (25, 25, "U6L4f$_1s$?b_3OrKuNfS~WBs$N3_4OrKvNg"), (30, 28, "U5L4f*~VKs_1?uoeRmt5OunmGPbX?uoeRlt5"),
    ])
    func theBlurHashIsThatOfOtherEncoders(_ width: Int, _ height: Int, _ expected: String) throws {
        var builder = GIFBuilder(width: width, height: height)
        var pixels: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width { pixels.append(UInt8((x * x / 7 + y * 3) % 8)) }
        }
        builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels))
        let facts = try Converted(builder.finish(), as: .facts) { _ in }
        let placeholder = try #require(Placeholder(facts.bytes.suffix(Placeholder.byteCount)))
        #expect(placeholder.blurHash == expected)
        #expect(
            BlurHash.isValid(expected) && !BlurHash.isValid(String(expected.dropLast())) && !BlurHash.isValid("\"" + expected))
    }

    @Test func whatCannotBeSeenHasNoColour() throws {
        let clear = try placeholder { $0.add(GIFBuilder.Frame(width: 30, height: 20, color: 2)) { $0.transparent = 2 } }
        #expect(clear.dominantColor == .white)
        let part = try placeholder { $0.add(GIFBuilder.Frame(width: 4, height: 4, color: 4)) }
        #expect(part.dominantColor == RGB(red: 0, green: 0, blue: 255))
    }

    @Test(arguments: [(1, 1), (4000, 2), (2, 4000), (640, 480)])
    func everySizeHasOne(_ width: Int, _ height: Int) throws {
        let facts = try Converted(GIFBuilder.animation(frames: 1, width: width, height: height), as: .facts) { _ in }
        #expect(
            Placeholder(facts.bytes.suffix(Placeholder.byteCount)) != nil
                && facts.bytes.count == FactsOutput.delayLength + Placeholder.byteCount)
    }

    /// The pixels of the image, as FFmpeg decodes them: bytes R, G, B, A in words.
    private func pixels(_ placeholder: Placeholder) throws -> [UInt32] {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString).webp")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(placeholder.image).write(to: file)
        return try FFmpeg.picture(file)
    }

    @Test func theImageIsThePictureInSmall() throws {
        // Blue on the left and red on the right.
        let halves = (0..<600).map { UInt8($0 % 30 < 15 ? 4 : 2) }
        let words = try pixels(placeholder { $0.add(GIFBuilder.Frame(width: 30, height: 20, pixels: halves)) })
        #expect(words.count == 16 * 11)
        let (left, right) = (words[5 * 16 + 2], words[5 * 16 + 13])
        #expect(left >> 16 & 255 > 180 && left & 255 < 90 && right & 255 > 180 && right >> 16 & 255 < 90)
        let clear = try pixels(
            placeholder { $0.add(GIFBuilder.Frame(width: 30, height: 20, color: 2)) { $0.transparent = 2 } })
        #expect(clear.count == 16 * 11 && clear.allSatisfy { $0 >> 24 == 0 })
    }

    @Test func aDamagedOneIsRefused() throws {
        let bytes = try placeholder { $0.add(color: 2) }.bytes
        #expect(bytes.count == Placeholder.byteCount && Placeholder(bytes[...]) != nil)
        for (index, value) in [(3, 0), (4, 200), (3, 5), (5, 1), (1023, 1)] as [(Int, UInt8)] {
            var damaged = bytes
            damaged[index] = value
            #expect(Placeholder(damaged[...]) == nil, "\(index)")
        }
        #expect(Placeholder(bytes.dropLast()) == nil)
    }
}
