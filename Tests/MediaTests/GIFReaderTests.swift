@testable import Media
import TestSupport
import Testing

@Suite("The reader follows GIF89a and the quirks of browsers")
struct GIFReaderTests {
    private let white = Composing.color(1)
    private let red = Composing.color(2)

    private func twoFrames() -> GIFBuilder {
        var builder = GIFBuilder(width: 4, height: 4)
        builder.add(color: 1, delay: 7)
        builder.add(color: 2, delay: 9)
        return builder
    }

    @Test func readsSizeDelaysAndLoop() throws {
        var builder = GIFBuilder(width: 5, height: 3)
        builder.addLoop(0)
        builder.add(color: 1, delay: 3)
        builder.add(color: 2, delay: 65535)
        let summary = try Composing.summary(builder.finish(), limits: MediaLimits(duration: 100_000))
        #expect(summary.width == 5 && summary.height == 3)
        #expect(summary.delays == [3, 65535])
        #expect(summary.loopCount == 0)
        #expect(summary.ending == .complete)
    }

    @Test func withoutLoopingExtensionItPlaysOnce() throws {
        #expect(try Composing.summary(twoFrames().finish()).loopCount == nil)
    }

    @Test func anOldNameOfTheLoopingExtensionCounts() throws {
        var builder = twoFrames()
        builder.addLoop(4, application: "ANIMEXTS1.0")
        #expect(try Composing.summary(builder.finish()).loopCount == 4)
    }

    @Test func theLastOfSeveralLoopingExtensionsCounts() throws {
        var builder = GIFBuilder(width: 1, height: 1)
        builder.addLoop(3)
        builder.add(color: 1)
        builder.addLoop(5)
        #expect(try Composing.summary(builder.finish()).loopCount == 5)
    }

    @Test func otherApplicationsAndCommentsAreSkipped() throws {
        var builder = GIFBuilder(width: 1, height: 1)
        builder.addExtension(0xfe, Array("a comment, \(String(repeating: "long ", count: 200))".utf8))
        builder.addRaw([0x21, 0xff, 11] + Array("XMP DataXMP".utf8) + [3, 1, 2, 0, 0])
        builder.addRaw([0x21, 0x77, 1, 1, 0])
        builder.add(color: 2)
        let summary = try Composing.summary(builder.finish())
        #expect(summary.delays == [10] && summary.loopCount == nil)
    }

    @Test func plainTextLeavesTheControlBlockToTheNextImage() throws {
        var builder = GIFBuilder(width: 2, height: 1)
        builder.add(color: 1)
        // Disposal 2, half a second, index 2 is transparent.
        builder.addRaw([0x21, 0xf9, 4, 2 << 2 | 1, 50, 0, 2, 0])
        builder.addExtension(0x01, [UInt8](repeating: 0, count: 12))
        builder.add(GIFBuilder.Frame(width: 2, height: 1, pixels: [3, 2])) { $0.delay = nil }
        builder.add(GIFBuilder.Frame(width: 1, height: 1, color: 1)) { $0.delay = nil }
        #expect(try Composing.summary(builder.finish()).delays == [10, 50, 0])
        let green = Composing.color(3)
        #expect(try Composing.frames(builder.finish()) == [[white, white], [green, white], [white, Composing.clear]])
    }

    @Test func anImageWithoutControlBlockHasNoDelay() throws {
        var builder = GIFBuilder(width: 1, height: 1)
        builder.add(color: 1, delay: 8)
        builder.add(color: 2, delay: nil)
        #expect(try Composing.summary(builder.finish()).delays == [8, 0])
    }

    @Test func version87aMayHaveSeveralImages() throws {
        var builder = GIFBuilder(width: 1, height: 1, version: "87a")
        builder.add(color: 1, delay: nil)
        builder.add(color: 2, delay: nil)
        #expect(try Composing.frames(builder.finish()) == [[white], [red]])
    }

    @Test func aMissingTrailerLosesNothing() throws {
        let gif = twoFrames().bytes
        #expect(try Composing.frames(gif).count == 2)
        #expect(try Composing.summary(gif).ending == .unmarked)
    }

    @Test func aGIFThatEndsBetweenAControlBlockAndItsImageIsBrokenOff() throws {
        var builder = twoFrames()
        builder.addExtension(0xf9, [0, 7, 0, 0])
        #expect(try Composing.summary(builder.bytes).ending == .brokenOff)
        #expect(try Composing.frames(builder.bytes).count == 2)
    }

    @Test func bytesAfterTheTrailerAreIgnored() throws {
        #expect(try Composing.frames(twoFrames().finish() + [1, 2, 3, 0x2c]).count == 2)
    }

    @Test func aByteThatBeginsNoRecordEndsTheGIF() throws {
        let gif = twoFrames().bytes + [0x99] + twoFrames().finish()
        #expect(try Composing.frames(gif).count == 2)
        #expect(try Composing.summary(gif).ending == .unmarked)
    }

    @Test func aBrokenOffGIFKeepsItsWholeFrames() throws {
        var builder = GIFBuilder(width: 32, height: 32)
        builder.add(color: 1)
        let whole = builder.bytes.count
        builder.add(GIFBuilder.Frame(width: 32, height: 32, pixels: (0..<1024).map { UInt8($0 * 7 % 8) }))
        let gif = builder.bytes
        for end in whole..<(gif.count - 8) {
            let cut = Array(gif[..<end])
            #expect(try Composing.frames(cut).count == 1, "cut at \(end) of \(gif.count)")
            let ending: AnimationEnding = end == whole ? .unmarked : .brokenOff
            #expect(try Composing.summary(cut).ending == ending, "cut at \(end) of \(gif.count)")
        }
    }

    @Test func aFrameThatLacksOnlyItsEndIsWhole() throws {
        var builder = GIFBuilder(width: 4, height: 4)
        builder.add(GIFBuilder.Frame(width: 4, height: 4, color: 2)) { ($0.usesEndCode, $0.isTerminated) = (false, false) }
        #expect(try Composing.frames(builder.bytes) == [Array(repeating: red, count: 16)])
    }

    @Test func dataThatEndsEarlyLeavesTheRestAsItWas() throws {
        var builder = GIFBuilder(width: 2, height: 2)
        builder.add(color: 1)
        builder.add(GIFBuilder.Frame(width: 2, height: 2, pixels: [2, 2, 2]))
        #expect(try Composing.frames(builder.finish())[1] == [red, red, red, white])
    }

    @Test func anImageWhoseCodesAreTooLongDrawsNothingAndKeepsItsTime() throws {
        var builder = GIFBuilder(width: 2, height: 1)
        builder.add(color: 1, delay: 7)
        builder.addDelay(9)
        // The literal 2, twice, in codes of 13 bits.
        builder.addCoded(width: 2, height: 1, minimumCodeSize: 12, [2, 0x40, 0, 0])
        builder.add(color: 2, delay: 5)
        let gif = builder.finish()
        #expect(try Composing.summary(gif).delays == [7, 9, 5])
        #expect(try Composing.frames(gif) == [[white, white], [white, white], [red, red]])
    }

    @Test func surplusPixelsAreDropped() throws {
        var builder = GIFBuilder(width: 2, height: 1)
        builder.add(GIFBuilder.Frame(width: 2, height: 1, pixels: Array(repeating: 2, count: 500)))
        builder.add(color: 1)
        #expect(try Composing.frames(builder.finish()) == [[red, red], [white, white]])
    }

    @Test func aScreenWithoutSizeTakesTheFirstFrames() throws {
        var builder = GIFBuilder(width: 0, height: 0)
        builder.add(GIFBuilder.Frame(width: 3, height: 2, color: 2))
        let summary = try Composing.summary(builder.finish())
        #expect(summary.width == 3 && summary.height == 2)
    }

    @Test(arguments: ["87a", "89a"]) func aFirstFrameThatIsLargerThanTheScreenEnlargesIt(_ version: String) throws {
        var builder = GIFBuilder(width: 2, height: 3, version: version)
        builder.add(GIFBuilder.Frame(width: 2, height: 1, color: 2)) { $0.x = 1 }
        builder.add(GIFBuilder.Frame(width: 9, height: 9, color: 1))
        let clear = Composing.clear
        let first = [clear, red, red, clear, clear, clear, clear, clear, clear]
        #expect(try Composing.frames(builder.finish()) == [first, Array(repeating: white, count: 9)])
        let video = try Converted(builder.finish(), as: .facts) { _ in }
        #expect(video.result.sourceWidth == 3 && video.result.sourceHeight == 3)
    }

    @Test func theLimitsHoldForAScreenThatTheFirstFrameEnlarges() throws {
        var builder = GIFBuilder(width: 2, height: 3)
        builder.add(GIFBuilder.Frame(width: 1, height: 1, color: 2)) { $0.x = 5000 }
        #expect(throws: TranscodeError.tooLarge(.side, value: 5001, maximum: 4096)) { try Composing.summary(builder.finish()) }
        #expect(throws: TranscodeError.tooLarge(.side, value: 5001, maximum: 4096)) {
            try Converted(builder.finish(), as: .png) { _ in }
        }
    }

    @Test func aFirstFrameThatBreaksOffShowsThePixelsItHas() throws {
        var builder = GIFBuilder(width: 16, height: 16)
        var numbers = SeededNumbers(seed: 5)
        let pixels = (0..<256).map { _ in UInt8.random(in: 0...7, using: &numbers) }
        builder.add(GIFBuilder.Frame(width: 16, height: 16, pixels: pixels))
        let whole = try Composing.frames(builder.finish())[0]
        let gif = Array(builder.bytes.prefix(builder.bytes.count - 60))
        let part = try Composing.frames(gif)
        let count = try #require(part.first?.firstIndex(of: Composing.clear))
        #expect(part.count == 1 && count > 64 && part[0].prefix(count) == whole.prefix(count))
        #expect(part[0].dropFirst(count).allSatisfy { $0 == Composing.clear })
        for output in [OutputFormat.mp4, .png, .facts] {
            let result = try Converted(gif, as: output) { _ in }.result
            #expect(result.frames == 1 && result.isBrokenOff, "\(output)")
        }
        // Without a pixel, there is nothing to show.
        let head = Array(gif.prefix(GIFBuilder(width: 16, height: 16).bytes.count + 8 + 11))
        #expect(throws: TranscodeError.incomplete(.gif)) { try Converted(head, as: .png) { _ in } }
    }

    @Test func whatIsNoGIFIsTold() {
        for bytes in [[], Array("GIF8".utf8), Array("GIF90a….".utf8), [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]] {
            #expect(throws: TranscodeError.notAnAnimation) { try Composing.summary(bytes) }
        }
    }

    @Test func aFileWithoutAWholeFrameIsIncomplete() {
        for gif in [
            Array("GIF89a".utf8), GIFBuilder(width: 4, height: 4).bytes, GIFBuilder(width: 4, height: 4).bytes + [0x2c, 0],
        ] {
            #expect(throws: TranscodeError.incomplete(.gif)) { try Composing.summary(gif) }
        }
    }

    @Test func aFileWithoutFramesIsCorrupt() {
        #expect(throws: TranscodeError.corrupt(.gif, .noFrames)) {
            try Composing.summary(GIFBuilder(width: 4, height: 4).finish())
        }
    }

    @Test func bytesThatBeginNoRecordInPlaceOfTheFirstFrameAreDamage() {
        let head = GIFBuilder(width: 4, height: 4).bytes
        for gif in [head + [0x99, 0], head + twoFrames().bytes] {
            #expect(throws: TranscodeError.corrupt(.gif, .noFrames)) { try Composing.summary(gif) }
            #expect(throws: TranscodeError.corrupt(.gif, .noFrames)) { try Converted(gif, as: .png) { _ in } }
        }
    }

    @Test func everyLimitNamesItselfAndTheValue() throws {
        let gif = GIFBuilder.animation(frames: 4, width: 40, height: 20, delay: 50)
        let cases: [(MediaLimits, TranscodeError)] = [
            (MediaLimits(side: 39), .tooLarge(.side, value: 40, maximum: 39)),
            (MediaLimits(canvasPixels: 799), .tooLarge(.canvasPixels, value: 800, maximum: 799)),
            (MediaLimits(totalPixels: 2000), .tooLarge(.totalPixels, value: 2400, maximum: 2000)),
            (MediaLimits(frames: 3), .tooLarge(.frames, value: 4, maximum: 3)),
            (MediaLimits(duration: 120), .tooLarge(.duration, value: 150, maximum: 120)),
        ]
        for (limits, error) in cases {
            #expect(throws: error) { try Composing.summary(gif, limits: limits) }
            #expect(error.description.contains { $0.isNumber })
        }
        #expect(
            try Composing.summary(
                gif, limits: MediaLimits(side: 40, canvasPixels: 800, totalPixels: 3200, frames: 4, duration: 200)
            ).delays.count == 4)
    }

    @Test func aFrameOverTheLimitIsRefusedBeforeItIsDecoded() throws {
        var builder = GIFBuilder(width: 1, height: 1)
        builder.addRaw([0x2c, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 2, 1, 0, 0])
        #expect(throws: TranscodeError.tooLarge(.canvasPixels, value: 65535 * 65535, maximum: 8_300_000)) {
            try Composing.summary(builder.finish())
        }
    }
}
