import TestSupport
import Testing

@testable import Media

@Suite("The progress of a conversion counts the frames that are encoded") struct FrameMeterTests {
    private final class Reports {
        var all: [FrameProgress] = []
    }

    @Test func aFrameIsDoneWhenItsPictureHasComeOut() {
        let reports = Reports()
        let meter = FrameMeter { reports.all.append($0) }
        meter.begin(total: 10)
        // The frames 2 to 4 look the same and are one picture.
        for frame in [1, 2, 5] { meter.enter(frame: frame) }
        #expect(reports.all.isEmpty)
        for _ in 0..<3 { meter.leave() }
        #expect(reports.all.map(\.done) == [1, 2, 5])
        #expect(reports.all.allSatisfy { $0.total == 10 && $0.isInRange })
        // More pictures than went in are not counted.
        meter.leave()
        #expect(reports.all.count == 3)
    }

    @Test func twoPassesOverASourceCountHalfEach() {
        let reports = Reports()
        let meter = FrameMeter { reports.all.append($0) }
        meter.begin(total: 2, passes: 2)
        for pass in 0..<2 {
            if pass == 1 { meter.beginNextPass() }
            for frame in 1...2 {
                meter.enter(frame: frame)
                meter.leave()
            }
        }
        #expect(reports.all.map(\.done) == [0, 1, 1, 2])
    }

    @Test(
        .enabled(if: LinkedLibraries.has(.av1)),
        arguments: [
            (OutputFormat.mp4, VideoCodec.h264, 1), (.mp4, .h264, 2), (.mp4, .av1, 1), (.webm, .h264, 1), (.avif, .h264, 2),
        ])
    func theProgressOfEveryVideoRisesToAllFrames(_ output: OutputFormat, _ codec: VideoCodec, _ threads: Int) throws {
        let gif = GIFBuilder.animation(frames: 70, width: 64, height: 48)
        let reports = Reports()
        let options = TranscodeOptions(codec: codec)
        _ = try Converted(gif, Transcoder(output: output, options: options, threads: threads)) { reports.all.append($0) }
        #expect(reports.all.map(\.done) == reports.all.map(\.done).sorted())
        #expect(reports.all.last == FrameProgress(done: 70, total: 70))
        // VP9 sees all pictures twice.
        #expect(reports.all.count == (output == .webm ? 140 : 70))
    }
}
