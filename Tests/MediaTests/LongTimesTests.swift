import TestSupport
import Testing

@testable import Media

/// Times that need more than the usual bits.
@Suite("Long delays and durations are kept exactly")
struct LongTimesTests {
    private static let longest = 65_535

    private func gif(frames: Int, colors: Int) -> [UInt8] {
        var builder = GIFBuilder(width: 8, height: 8)
        for index in 0..<frames { builder.add(color: UInt8(1 + index % colors), delay: Self.longest) }
        return builder.finish()
    }

    private func transcoder(_ change: (inout TimeOptions) -> Void = { _ in }) -> Transcoder {
        var options = TranscodeOptions()
        change(&options.time)
        return Transcoder(options: options, limits: MediaLimits(duration: 1 << 40))
    }

    @Test func aLongLastFrameIsExactWithinTheDefaultLimits() throws {
        var builder = GIFBuilder(width: 8, height: 8)
        builder.add(color: 1, delay: 5)
        builder.add(color: 2, delay: Self.longest)
        #expect(try Converted(builder.finish()).boxes.durations == [5, Self.longest])
        #expect(MediaLimits().duration == 24 * 60 * 60 * 100)
    }

    @Test func asManyFramesAsMayBeEachAsLongAsMayBe() throws {
        let mp4 = try Converted(gif(frames: 5000, colors: 2), transcoder())
        #expect(mp4.boxes.durations == Array(repeating: Self.longest, count: 5000))
        #expect(mp4.boxes.duration == 5000 * Self.longest && mp4.result.duration == 5000 * Self.longest)
    }

    /// A speed of 0.101 takes a thousand units to a hundredth: more than 2³² in all.
    @Test(arguments: [1, 2, 3]) func timesOfMoreThan32BitsAreExact(_ colors: Int) throws {
        let mp4 = try Converted(gif(frames: 200, colors: colors), transcoder { $0.speed = 101 })
        let total = 200 * Self.longest * 1000
        #expect(total > 1 << 32)
        #expect(mp4.boxes.timescale == 10_100 && mp4.boxes.duration == total && mp4.result.duration == total)
        #expect(mp4.boxes.durations.reduce(0, +) == total)
        #expect(mp4.boxes.durations.allSatisfy { $0.isMultiple(of: Self.longest * 1000) && $0 < 1 << 28 })
        if colors > 1 { #expect(mp4.boxes.durations.count == 200) } else { #expect(mp4.boxes.durations.count < 200) }
    }

    /// libavformat ignores all composition offsets if one is greater than 2²⁸, as with units of 10 µs and finer.
    @Test(arguments: [6207, 1001, 1000]) func longPicturesAreReadAtTheirTimes(_ speed: Int) throws {
        let mp4 = try Converted(gif(frames: 20, colors: 5), transcoder { $0.speed = speed })
        // In the order of decoding.
        let times = try FFmpeg.packetTimes(of: mp4.file).sorted()
        let expected = (0..<20).map { Double($0 * Self.longest * 10) / Double(speed) }
        #expect(times.count == 20 && zip(times, expected).allSatisfy { abs($0 - $1) < 0.000_01 }, "\(times)")
    }

    @Test func aStillPictureIsRepeatedInSamplesThatMayLastSoLong() throws {
        let mp4 = try Converted(
            gif(frames: 1, colors: 1),
            transcoder {
                $0.speed = 101
                $0.loops = 20
            })
        #expect(mp4.boxes.durations == Array(repeating: Self.longest * 1000, count: 20))
        #expect(mp4.result.samples == 20 && mp4.boxes.duration == 20 * Self.longest * 1000)
        // IDR pictures in a row would have to differ in their numbers.
        #expect(mp4.boxes.samples.map(\.isSync) == [true] + Array(repeating: false, count: 19))
        #expect(try mp4.frames().count == 20)
        #expect(try Converted(gif(frames: 1, colors: 1), transcoder { $0.loops = 20 }).boxes.durations == [20 * Self.longest])
    }
}
