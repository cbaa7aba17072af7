/// The number of encoded frames, and the number of frames in the source.
package struct FrameProgress: Sendable, Equatable {
    package var done: Int
    package var total: Int

    package init(done: Int, total: Int) {
        self.done = done
        self.total = total
    }

    /// Whether both numbers are possible for a conversion.
    package var isInRange: Bool {
        total > 0 && FactRange.frames.contains(total) && (0...total).contains(done)
    }
}

/// Follows the frames of a source through an encoder and reports how many have come out.
///
/// An encoder's lookahead holds back dozens of frames, so a frame that has gone in is not done. Not thread-safe.
final class FrameMeter {
    /// A function that is called after each encoded picture.
    typealias Report = (FrameProgress) -> Void

    /// More pictures than any encoder holds back.
    private static let depth = 256

    private let report: Report?
    /// For each of the latest pictures, the frames read when it went in.
    private var frames: [Int]
    private var total = 0
    private var passes = 1
    private var pass = 0
    /// The pictures of this pass that went in, and those that came out.
    private var entered = 0
    private var left = 0
    /// The frames reported last. The number never falls: it pauses during a second attempt at a file that became too large.
    private var done = 0

    /// - Parameter report: Nil if no caller asks for the progress.
    init(_ report: Report?) {
        self.report = report
        frames = Array(repeating: 0, count: report == nil ? 0 : Self.depth)
    }

    /// Begins an encoding of a source with `total` frames, which is read `passes` times.
    func begin(total: Int, passes: Int = 1) {
        self.total = total
        self.passes = passes
        pass = 0
        (entered, left) = (0, 0)
    }

    /// Begins the next pass over the source.
    func beginNextPass() {
        pass += 1
        (entered, left) = (0, 0)
    }

    /// Records that a picture goes into the encoder.
    ///
    /// - Parameter frame: Frames read so far, including the picture's.
    func enter(frame: Int) {
        guard report != nil else { return }
        frames[entered % Self.depth] = frame
        entered += 1
    }

    /// Records that an encoded picture has come out, and reports it.
    func leave() {
        guard let report, left < entered else { return }
        let frame = min(frames[left % Self.depth], total)
        left += 1
        done = max(done, (pass * total + frame) / passes)
        report(FrameProgress(done: done, total: total))
    }
}
