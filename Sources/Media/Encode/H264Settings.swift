internal import Glibc

/// How frames are encoded. What was measured to choose these values stands in the README.
package struct H264Settings: Sendable, Equatable {
    /// x264's constant rate factor: lower is better and larger.
    package var rateFactor: Double
    /// Encoder threads at most; see ``EncoderBudget/threads``.
    package var threads: Int
    /// Units a second of the times that frames are given.
    package var timescale = FrameClock.timescale
    /// Makes only the first frame one from which decoding can begin. Two such frames in a row, the last of one round and the
    /// first of the next, would have to differ in their `idr_pic_id` (ITU-T H.264 §7.4.3), and rounds are copies.
    package var hasOneKeyframe = false

    package init(rateFactor: Double, threads: Int) {
        self.rateFactor = rateFactor
        self.threads = threads
    }

    /// The name by which this way of encoding goes into an object's name. To be changed with anything that changes
    /// the bytes that come out.
    package static let version = "x264-5"

    /// The named preset that the options start from.
    static let preset = "medium"

    /// Options over the preset, in x264's own words.
    ///
    /// GIFs are drawings, screens and dithered film: mode decision by rate and distortion (`subme` above 2) and 8×8
    /// transforms cost a third of the time there and save next to nothing. Frames come in a fixed pattern of B-frames
    /// (`b-adapt=0`): the search for a better one costs more than anything else and finds a worse one. Psychovisual
    /// optimisation is off: it adds grain to what has none.
    ///
    /// A flat scaling matrix that is written down changes no sample: it makes the stream one of High profile, which x264
    /// otherwise calls Main where there are no 8×8 transforms.
    static let options =
        "psy=0:weightp=0:scenecut=0:b-adapt=0:subme=2:trellis=1:8x8dct=0:"
        + "cqm4=16,16,16,16,16,16,16,16,16,16,16,16,16,16,16,16"

    /// ``options`` and what the settings add to them.
    var allOptions: String {
        hasOneKeyframe ? Self.options + ":keyint=infinite:min-keyint=1000000" : Self.options
    }

    /// The rate factor for `quality` 1…100: two straight lines that meet at the default, 60 ↦ 22.3.
    /// 100 ↦ 10.3 (no loss to be seen), 1 ↦ 45.9.
    package static func rateFactor(quality: Int) -> Double {
        let distance = Double(quality - 60)
        return distance >= 0 ? 22.3 - distance * 0.3 : 22.3 - distance * 0.4
    }

    /// How many steps of the rate factor to go coarser for a file that is too large, by the factor `excess`; nil where it is not
    /// too large, or where ``mostSteps`` do not get there.
    ///
    /// Six steps halve the bytes, roughly; one more makes up for what that misses. A file that would need more than
    /// ``mostSteps`` stays as it is: text becomes illegible before it becomes small.
    static func coarserSteps(excess: Double) -> Double? {
        guard excess > 1 else { return nil }
        let steps = 6 * log2(excess)
        return steps <= mostSteps ? min(mostSteps, steps + 1) : nil
    }

    private static let mostSteps = 4.0
}
