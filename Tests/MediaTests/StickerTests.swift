import Foundation
import TestSupport
import Testing

@testable import Media

@Suite("A sticker keeps the limits of the place where it is used", .timeLimit(.minutes(10))) struct StickerTests {
    private func sticker(_ gif: [UInt8], _ change: (inout TranscodeOptions) -> Void = { _ in }) throws -> Converted {
        try Converted(gif, as: .webm) {
            change(&$0)
            $0.preset = .sticker
        }
    }

    @Test("The longer side has 512 pixels", arguments: [(64, 48, 512, 384), (20, 100, 100, 512), (700, 500, 512, 366)])
    func theLongerSideIsExact(_ width: Int, _ height: Int, _ wide: Int, _ tall: Int) throws {
        let made = try sticker(WebMTests.sprite([10, 10], width: width, height: height))
        #expect(made.result.width == wide && made.result.height == tall && made.result.isTransparent)
    }

    /// Pixel art of few colours, with a column that moves.
    private func pixelArt(_ width: Int, _ height: Int) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height)
        for frame in 0..<3 {
            let pixels = (0..<width * height).map { UInt8($0 % width == frame ? 2 : 4 + ($0 / width / 5) % 2) }
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels))
        }
        return builder.finish()
    }

    @Test(
        "Pixels of pixel art become squares of equal size",
        arguments: [(40, 30, 12, 16, 0), (64, 64, 8, 0, 0), (20, 100, 5, 0, 6)])
    func pixelArtIsEnlargedByAWholeNumber(_ width: Int, _ height: Int, _ zoom: Int, _ left: Int, _ top: Int) throws {
        let made = try sticker(pixelArt(width, height))
        let size = (max(width * zoom, width >= height ? 512 : 0), max(height * zoom, width >= height ? 0 : 512))
        #expect(made.result.width == size.0 && made.result.height == size.1 && made.result.isTransparent == (left + top > 0))
        let picture = try FFmpeg.frames(of: made.file, width: size.0, height: size.1)[0]
        /// The red of the decoded picture, which is that of the first column alone.
        func red(_ x: Int, _ y: Int) -> Int { Int(picture[(y * size.0 + x) * 3]) - Int(picture[(y * size.0 + x) * 3 + 1]) }
        let middle = size.1 / 2
        #expect(red(left + 1, middle) > 128 && red(left + zoom - 2, middle) > 128 && red(left + zoom + 1, middle) < 64)
    }

    @Test func smoothDrawingsAreScaledToTheWholeSide() throws {
        var builder = GIFBuilder(
            width: 100, height: 100, palette: (0..<128).map { (UInt8($0 * 2), UInt8($0), UInt8(255 - $0)) })
        builder.add(GIFBuilder.Frame(width: 100, height: 100, pixels: (0..<10_000).map { UInt8($0 % 100 + $0 / 1000) })) {
            $0.minimumCodeSize = 7
        }
        let made = try sticker(builder.finish())
        #expect(made.result.width == 512 && made.result.height == 512 && !made.result.isTransparent)
    }

    @Test func whatComesAfterThreeSecondsIsCutOff() throws {
        let made = try sticker(WebMTests.sprite(Array(repeating: 45, count: 12)))
        #expect(made.result.duration == 300 && made.result.samples == 7)
        #expect(abs(try FFmpeg.duration(of: made.file) - 3) < 0.000_01)
        let faster = try sticker(WebMTests.sprite(Array(repeating: 45, count: 12))) {
            $0.time.speed = 1500
            $0.time.start = 20
        }
        #expect(abs(try FFmpeg.duration(of: faster.file) - 3) < 0.000_01)
        #expect(try sticker(WebMTests.sprite([30, 20])).result.duration == 50)
    }

    @Test func noMoreThanThirtyFramesASecond() throws {
        let made = try sticker(WebMTests.sprite(Array(repeating: 2, count: 100)))
        #expect(try FFmpeg.packetTimes(of: made.file).count == 60)
    }

    @Test func qualityIsLoweredUntilTheFileIsSmallEnough() throws {
        let noise = GIFBuilder.noise(frames: 14, width: 256, height: 256)
        let made = try sticker(noise) { $0.quality = 95 }
        #expect(made.bytes.count <= StickerRules.bytes && made.bytes.count > 20_000)
        #expect(try sticker(noise) { $0.quality = 95 }.bytes == made.bytes)
    }

    @Test func framesAreHalvedOnceQualityIsLowest() {
        var options = TranscodeOptions(chosenQuality: 60)
        options.time.ceiling = 8000
        var rules = StickerRules(options, level: 32)
        #expect(!rules.adjust(after: 256_000) && rules.adjust(after: 512_000))
        #expect(rules.level == 43)
        #expect(rules.adjust(after: 10_000_000) && rules.level == 63 && rules.options.time.ceiling == 8000)
        #expect(rules.adjust(after: 300_000) && rules.options.time.ceiling == 4000)
        #expect(rules.adjust(after: 300_000) && rules.adjust(after: 300_000) && !rules.adjust(after: 300_000))
    }
}
