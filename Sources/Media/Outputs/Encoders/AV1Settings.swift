internal import CAV
internal import Glibc

/// The settings of libaom. `docs/benchmarks.md` has the measurements behind them.
struct AV1Settings: MP4EncoderSettings, Equatable {
    static let codec = VideoCodec.av1
    /// A temporal unit ends with the frame that is shown.
    static let reordersFrames = false

    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "aom-1"

    /// 0…63: lower is better and larger.
    var quantizer: Int
    /// Whether the picture has few colours and sharp edges: palettes and copies of blocks within a frame are tried.
    var isScreen: Bool
    /// libaom itself uses one thread; above 1, the next picture is composed meanwhile.
    let threads: Int
    var timescale = FrameClock.timescale

    init(_ transcoder: Transcoder, _ content: PictureContent) {
        isScreen = content.isScreen
        quantizer = Self.quantizer(quality: transcoder.options.quality, isScreen: content.isScreen)
        threads = transcoder.threads
    }

    /// The most frames from one sync sample to the next, as x264 has it.
    private static let longestGroup: Int32 = 250

    /// Options of libaom, in its own syntax.
    ///
    /// Real-time mode codes every frame once, in order, and looks at none ahead: the better modes take seven times as long. What
    /// is off here costs a third of the time and saves nothing on GIFs. A screen is worth the search for palettes, so its speed is
    /// the slowest one of the mode that does not search twice.
    private var options: String {
        let common = "enable-order-hint=0:enable-ref-frame-mvs=0:enable-warped-motion=0:enable-obmc=0:enable-global-motion=0"
        return isScreen ? common + ":tune-content=screen" : common
    }

    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, shortestFrame: Int) {
        // Frames are counted, not timed: the level follows from the shortest one, and the bytes depend on pictures alone. libaom
        // takes no time base of more than a second.
        let unit = min(max(1, shortestFrame), timescale)
        context.pointee.time_base = AVRational(num: Int32(unit), den: Int32(timescale))
        context.pointee.profile = 0  // Main; the constant's name changed with FFmpeg 6.1
        context.pointee.thread_count = 1
        context.pointee.gop_size = Self.longestGroup
        context.pointee.bit_rate = 0
        av_opt_set(context.pointee.priv_data, "usage", "realtime", 0)
        av_opt_set_int(context.pointee.priv_data, "cpu-used", isScreen ? 6 : 7, 0)
        av_opt_set_int(context.pointee.priv_data, "crf", Int64(quantizer), 0)
        av_opt_set_int(context.pointee.priv_data, "row-mt", 0, 0)
        av_opt_set(context.pointee.priv_data, "aom-params", options, 0)
    }

    /// The quantizer for `quality` 1…100: two straight lines that meet at the default, 60.
    static func quantizer(quality: Int, isScreen: Bool) -> Int {
        let middle = isScreen ? 40.0 : 26.0
        let distance = Double(quality - 60)
        let exact = distance >= 0 ? middle - distance * (middle - 8) / 40 : middle - distance * (58 - middle) / 59
        return Int(exact.rounded())
    }

    func coarser(excess: Double) -> AV1Settings? {
        guard excess > 1, quantizer < Self.coarsest else { return nil }
        // Eight steps halve the bytes, roughly.
        let steps = 8 * log2(excess)
        guard steps <= Self.mostSteps else { return nil }
        var settings = self
        settings.quantizer = min(Self.coarsest, quantizer + Int(min(Self.mostSteps, steps + 1).rounded()))
        return settings
    }

    private static let coarsest = 63
    private static let mostSteps = 5.0
}
