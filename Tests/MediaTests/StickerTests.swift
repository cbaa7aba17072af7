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

    @Test("The longer side has 512 pixels", arguments: [(64, 48, 512, 384), (20, 100, 102, 512), (700, 500, 512, 366)])
    func theLongerSideIsExact(_ width: Int, _ height: Int, _ wide: Int, _ tall: Int) throws {
        let made = try sticker(WebMTests.sprite([10, 10], width: width, height: height))
        #expect(made.result.width == wide && made.result.height == tall && made.result.isTransparent)
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
        let times = try FFmpeg.packetTimes(of: made.file)
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 > 1.0 / 30 - 0.000_01 } && times.count == 50)
    }

    @Test func qualityIsLoweredUntilTheFileIsSmallEnough() throws {
        let noise = GIFBuilder.noise(frames: 14, width: 256, height: 256)
        let made = try sticker(noise) { $0.quality = 95 }
        #expect(made.bytes.count <= StickerRules.bytes && made.bytes.count > 20_000)
        #expect(try sticker(noise) { $0.quality = 95 }.bytes == made.bytes)
    }

    @Test func framesAreHalvedOnceQualityIsLowest() {
        var options = TranscodeOptions(quality: 60)
        options.time.ceiling = 8000
        var rules = StickerRules(options, level: 32)
        #expect(!rules.adjust(after: 256_000) && rules.adjust(after: 512_000))
        #expect(rules.level == 43)
        #expect(rules.adjust(after: 10_000_000) && rules.level == 63 && rules.options.time.ceiling == 8000)
        #expect(rules.adjust(after: 300_000) && rules.options.time.ceiling == 4000)
        #expect(rules.adjust(after: 300_000) && rules.adjust(after: 300_000) && !rules.adjust(after: 300_000))
    }
}
