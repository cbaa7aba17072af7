import Testing

@testable import Media

@Suite("The numbers of a worker are within the limits of its job") struct ResultLimitTests {
    private let transcoder: Transcoder = {
        var options = TranscodeOptions()
        options.time.loops = 3
        let limits = MediaLimits(side: 100, canvasPixels: 5000, frames: 7)
        return Transcoder(options: options, limits: limits)
    }()

    /// The numbers at the limits.
    private let result = TranscodeResult(
        sourceWidth: 100, sourceHeight: 50, width: 100, height: 50, frames: 7, samples: 21, duration: 70, loopCount: nil,
        bytes: 1000)

    @Test func numbersAtTheLimitsAreAllowed() {
        #expect(transcoder.allows(result))
    }

    @Test func aNumberAboveItsLimitIsNotAllowed() {
        let excesses: [(WritableKeyPath<TranscodeResult, Int>, Int)] = [
            (\.sourceWidth, 101), (\.sourceHeight, 101), (\.sourceHeight, 51), (\.frames, 8), (\.samples, 24), (\.bytes, -1),
        ]
        for (path, value) in excesses {
            var wrong = result
            wrong[keyPath: path] = value
            #expect(!transcoder.allows(wrong), "\(value)")
        }
    }

    /// A GIF shows a picture for at most 655.35 s.
    @Test func aGIFRepeatsPicturesThatAreShownForLong() {
        var (gif, mp4, long) = (transcoder, transcoder, result)
        (gif.output, mp4.output) = (.gif, .mp4)
        (gif.options.time.loops, mp4.options.time.loops) = (1, 1)
        (long.samples, long.timescale, long.duration) = (9, 100, 2 * 65_535)
        #expect(gif.allows(long) && !mp4.allows(long))
        long.samples = 10
        #expect(!gif.allows(long))
    }
}
