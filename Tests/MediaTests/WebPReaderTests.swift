import CMedia
import TestSupport
import Testing

@testable import Media

@Suite("Animated WebPs are read as browsers read them") struct WebPReaderTests {
    private typealias Frame = WebPBuilder.Frame

    private func spread(_ word: UInt32, _ count: Int = 8) -> [UInt32] { Array(repeating: word, count: count) }

    private func full(_ word: UInt32) -> Frame { Frame(width: 4, height: 2, word: word) }

    @Test func framesAreComposed() throws {
        // B, G, R, A: browsers ignore the colour of the background.
        var webp = WebPBuilder(width: 4, height: 2, background: 0xff12_3456)
        webp.add(full(Word.red)) { $0.delay = 70 }
        webp.add(Frame(width: 2, height: 2, word: Word.halfBlue)) { ($0.x, $0.delay) = (2, 5) }
        webp.add(Frame(width: 2, height: 2, word: Word.halfBlue)) { ($0.blends, $0.disposesToBackground) = (false, true) }
        webp.add(Frame(width: 2, height: 2, word: Word.green)) { $0.x = 2 }
        let composed = try Animation.compose(webp.finish())
        let (mixed, half): (UInt32, UInt32) = (0xff7f_007e, Word.halfBlue)
        func row(_ left: UInt32, _ right: UInt32) -> [UInt32] { [left, left, right, right, left, left, right, right] }
        #expect(
            composed.canvases == [
                spread(Word.red), row(Word.red, mixed), row(half, mixed), row(Word.clear, Word.green),
            ])
        #expect(composed.changes[1] == Rectangle(x: 2, y: 0, width: 2, height: 2))
        #expect(composed.summary.timescale == 1000 && composed.summary.delays == [70, 5, 100, 100])
        #expect(composed.summary.loopCount == 0 && composed.summary.hasAlpha)
    }

    /// libwebp's own decoder of animations, which Chromium follows, is the judge: its rounding adds up from frame to frame.
    @Test func translucentFramesAddUpAsInLibwebp() throws {
        var numbers = SeededNumbers(seed: 3)
        let alphas: [UInt32] = [0, 1, 5, 20, 60, 100, 128, 200, 250, 254, 255]
        var webp = WebPBuilder(width: 16, height: 16)
        for _ in 0..<12 {
            let words = (0..<256).map { _ -> UInt32 in
                let alpha = alphas[Int.random(in: 0..<alphas.count, using: &numbers)]
                return alpha == 0 ? 0 : alpha << 24 | UInt32.random(in: 0...0xff_ffff, using: &numbers)
            }
            webp.add(Frame(width: 16, height: 16, words: words))
        }
        let file = webp.finish()
        let composed = try Animation.compose(file).canvases
        let expected = try AnimationOfLibwebp.frames(file)
        #expect(composed.count == 12 && expected.count == 12)
        for (canvas, picture) in zip(composed, expected) {
            for (word, other) in zip(canvas, picture) where word != other {
                // Over nothing, libwebp may round the colour down, which Chromium does not show.
                #expect(word >> 24 == other >> 24)
                for shift: UInt32 in [0, 8, 16] {
                    #expect(abs(Int(word >> shift & 255) - Int(other >> shift & 255)) <= 1)
                }
            }
        }
    }

    @Test(arguments: [(0, 0), (1, nil), (2, 1), (65_535, 65_534)] as [(Int, Int?)])
    func playsAreRepetitionsAndOneMore(_ plays: Int, _ repetitions: Int?) throws {
        var webp = WebPBuilder(width: 4, height: 2, loops: plays)
        webp.add(full(Word.red))
        #expect(try Animation.compose(webp.finish()).summary.loopCount == repetitions)
    }

    @Test func videosLastMilliseconds() throws {
        var webp = WebPBuilder(width: 16, height: 16)
        for (index, delay) in [33, 10, 67, 11, 16_777_215].enumerated() {
            webp.add(Frame(width: 16, height: 16, word: [Word.red, Word.green, Word.blue][index % 3])) { $0.delay = delay }
        }
        let video = try Converted(webp.finish())
        #expect(video.result.timescale == 1000 && video.boxes.durations == [33, 100, 67, 11, 16_777_215])
        #expect(video.result.sourceFormat == .webp)
        let slow = try Converted(webp.finish()) { $0.time.speed = 333 }
        // Exact times would not fit into a sample, so they are rounded: to hundredths where a sample lasts 14 hours.
        #expect(slow.result.timescale == 1000 && abs(Double(slow.result.duration) / 1000 - 16_777.426 / 0.333) < 0.002)
    }

    @Test func lossyAndLosslessFramesWithAlphaAreDecoded() throws {
        let words = (0..<32 * 32).map { UInt32(($0 % 32) * 8) << 24 | 0x00c0_8040 }
        for quality in [nil, 95] as [Float?] {
            var webp = WebPBuilder(width: 32, height: 32)
            webp.add(Frame(width: 32, height: 32, words: words)) { $0.quality = quality }
            let canvas = try #require(try Animation.compose(webp.finish()).canvases.first)
            for (index, word) in canvas.enumerated() {
                #expect(word >> 24 == words[index] >> 24, "\(index)")
                guard word >> 24 > 0 else { continue }
                for shift: UInt32 in [0, 8, 16] {
                    #expect(abs(Int(word >> shift & 255) - Int(words[index] >> shift & 255)) <= (quality == nil ? 0 : 12))
                }
            }
        }
    }

    @Test func aFileThatBreaksOffKeepsItsWholeFrames() throws {
        var webp = WebPBuilder(width: 4, height: 2)
        webp.add(full(Word.red))
        let first = webp.finish().count
        webp.add(full(Word.green))
        let whole = webp.finish()
        for count in first..<whole.count {
            let composed = try Animation.compose(Array(whole.prefix(count)))
            #expect(composed.canvases == [spread(Word.red)], "\(count)")
            #expect(composed.summary.ending == .brokenOff && composed.summary.delays == [100])
        }
        for count in [12, 20, 31, 44, first - 5] {
            #expect(throws: TranscodeError.incomplete(.webp), "\(count)") { try Animation.compose(Array(whole.prefix(count))) }
        }
    }

    @Test func aFileThatBreaksOffInItsHeaderIsIncomplete() {
        var webp = WebPBuilder(width: 4, height: 2)
        webp.add(full(Word.red))
        var still = webp.finish()
        // Without the flag of an animation.
        still[20] &= ~2
        for count in 12..<44 {
            #expect(throws: TranscodeError.incomplete(.webp), "\(count)") { try Converted(Array(webp.finish().prefix(count))) }
            let error = count < 21 ? TranscodeError.incomplete(.webp) : .still(.webp)
            #expect(throws: error, "\(count)") { try Converted(Array(still.prefix(count))) }
        }
        let plain = WebPBuilder.still(full(Word.red))
        for count in 12..<plain.count {
            let error = count < 16 ? TranscodeError.incomplete(.webp) : .still(.webp)
            #expect(throws: error, "\(count)") { try Converted(Array(plain.prefix(count))) }
        }
    }

    @Test func aDamagedFrameEndsTheAnimation() throws {
        var webp = WebPBuilder(width: 4, height: 2)
        webp.add(full(Word.red))
        // The header of a picture without its codes.
        webp.addChunks(Array("VP8L".utf8) + [6, 0, 0, 0, 0x2f, 3, 0x40, 0, 0x10, 0xff], for: full(Word.green))
        webp.add(full(Word.blue))
        #expect(try Animation.compose(webp.finish()).canvases == [spread(Word.red)])
        var broken = WebPBuilder(width: 4, height: 2)
        broken.addChunks(Array("VP8L".utf8) + [6, 0, 0, 0, 0x2f, 3, 0x40, 0, 0x10, 0xff], for: full(Word.green))
        #expect(throws: TranscodeError.corrupt(.webp, .unreadableFrame)) { try Animation.compose(broken.finish()) }
        var outside = WebPBuilder(width: 4, height: 2)
        outside.add(full(Word.red)) { $0.x = 2 }
        #expect(throws: TranscodeError.corrupt(.webp, .header)) { try Animation.compose(outside.finish()) }
    }

    @Test func aWebPWithoutAnimationIsRefused() throws {
        let still = WebPBuilder.still(full(Word.red))
        #expect(throws: TranscodeError.still(.webp)) { try Converted(still) }
        #expect(try Animation.compose(still).canvases == [spread(Word.red)])
    }

    @Test func limitsHoldBeforeAnythingIsAllocated() throws {
        var huge = WebPBuilder(width: 1 << 14, height: 1 << 14)
        huge.add(full(Word.red))
        #expect(throws: TranscodeError.tooLarge(.side, value: 16_384, maximum: 4096)) { try Animation.compose(huge.finish()) }
        var wide = WebPBuilder(width: 4000, height: 4000)
        wide.add(full(Word.red))
        #expect(throws: TranscodeError.tooLarge(.canvasPixels, value: 16_000_000, maximum: 8_300_000)) {
            try Animation.compose(wide.finish())
        }
        var webp = WebPBuilder(width: 4, height: 2)
        for _ in 0..<3 { webp.add(full(Word.red)) }
        #expect(throws: TranscodeError.tooLarge(.frames, value: 3, maximum: 2)) {
            try Animation.compose(webp.finish(), limits: MediaLimits(frames: 2))
        }
        #expect(throws: TranscodeError.tooLarge(.duration, value: 30, maximum: 29)) {
            try Animation.compose(webp.finish(), limits: MediaLimits(duration: 29))
        }
    }

    @Test func framesThatLookTheSameBecomeOneSample() throws {
        var webp = WebPBuilder(width: 16, height: 16)
        for word in [Word.red, Word.red, Word.green, Word.green] { webp.add(Frame(width: 16, height: 16, word: word)) }
        #expect(try Converted(webp.finish()).boxes.durations == [200, 200])
    }
}

/// Animated WebPs as libwebp's own decoder of animations composes them.
private enum AnimationOfLibwebp {
    static func frames(_ file: [UInt8]) throws -> [[UInt32]] {
        try file.withUnsafeBufferPointer { bytes in
            var data = WebPData(bytes: bytes.baseAddress, size: bytes.count)
            var options = WebPAnimDecoderOptions()
            _ = WebPAnimDecoderOptionsInit(&options)
            let decoder = try #require(WebPAnimDecoderNew(&data, &options))
            defer { WebPAnimDecoderDelete(decoder) }
            var information = WebPAnimInfo()
            WebPAnimDecoderGetInfo(decoder, &information)
            var frames: [[UInt32]] = []
            var picture: UnsafeMutablePointer<UInt8>?
            var time: Int32 = 0
            while WebPAnimDecoderHasMoreFrames(decoder) != 0, WebPAnimDecoderGetNext(decoder, &picture, &time) != 0 {
                let words = UnsafeRawBufferPointer(
                    start: picture, count: Int(4 * information.canvas_width * information.canvas_height))
                frames.append(Array(words.bindMemory(to: UInt32.self)))
            }
            return frames
        }
    }
}
