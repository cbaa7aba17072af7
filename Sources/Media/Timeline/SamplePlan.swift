/// The frames of a source that become samples of a video, judged by their times only. A video may have fewer samples, because a
/// frame that looks like the previous one becomes no sample.
struct SamplePlan: Equatable {
    private(set) var count = 0
    /// The numbers, from 1, of the first frame and the last; 0 without such a frame.
    private(set) var first = 0
    private(set) var last = 0
    /// The time of the last frame but one, in units of the video; 0 without such a frame.
    private(set) var lastButOne = 0
    /// The numbers, among these frames and from 1, of sync frames, or of the next frame if a sync frame is not among them.
    private(set) var syncs: [Int] = []
    /// The shortest time between two of the frames, in units of the video. For a single frame, its duration.
    private(set) var shortest = 0
    /// The duration of the last frame, in units of the video.
    private(set) var lastDuration = 0

    init(_ options: TimeOptions, of summary: AnimationSummary) {
        var timeline = Timeline(options, of: summary)
        var (time, end) = (0, 0)
        var isAfterSync = false
        func enter(_ distance: Int) { shortest = shortest == 0 ? distance : min(shortest, distance) }
        // The frame in which a file breaks off is rarely whole. If it is the only frame, its existing part is shown.
        let isPart = summary.ending == .brokenOff && summary.delays.count > 1
        for (index, delay) in summary.delays.dropLast(isPart ? 1 : 0).enumerated() {
            isAfterSync = isAfterSync || !summary.dependentFrames.contains(index)
            guard let span = timeline.advance(by: delay) else { continue }
            end = span.end
            guard let start = timeline.admit(span) else { continue }
            count += 1
            if isAfterSync { syncs.append(count) }
            isAfterSync = false
            if count == 1 { first = index + 1 } else { enter(start - time) }
            (time, lastButOne, last) = (start, time, index + 1)
        }
        lastDuration = end - time
        // In a file with several loops, the first frame follows the last one.
        if count == 1 || (count > 0 && options.loops > 1) { enter(end - time) }
    }
}
