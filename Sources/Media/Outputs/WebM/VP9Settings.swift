internal import CAV

/// The settings of libvpx's VP9 encoder. `docs/benchmarks.md` has the measurements behind them.
struct VP9Settings: EncoderSettings {
    static let encoder = "libvpx-vp9"
    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "vp9-1"
    /// Pictures between two from which a player can start.
    private static let keyInterval: Int32 = 250
    static let missing = TranscodeError.encoderMissing(.webm)
    static let reordersFrames = false

    let plane: EncodedPlane
    /// 0…63: lower is better and larger.
    let level: Int

    /// The constant quality level for `quality` 1…100: two straight lines that meet at the default, 60 ↦ 32. Lower is better and
    /// larger: 100 ↦ 12, 1 ↦ 61.
    static func level(quality: Int) -> Int {
        quality >= 60 ? 32 - (quality - 60) / 2 : 32 + (60 - quality) / 2
    }

    static let coarsestLevel = 63

    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, shortestFrame: Int) {
        context.pointee.time_base = AVRational(num: 1, den: 30)
        context.pointee.framerate = AVRational(num: 30, den: 1)
        context.pointee.bit_rate = 0
        // Equal bounds keep the encoder from choosing: both planes then have the same key pictures.
        context.pointee.gop_size = Self.keyInterval
        context.pointee.keyint_min = Self.keyInterval
        context.pointee.thread_count = 1
        let pixels = Int(context.pointee.width) * Int(context.pointee.height)
        av_opt_set(context.pointee.priv_data, "deadline", "good", 0)
        av_opt_set_int(context.pointee.priv_data, "cpu-used", 2, 0)
        av_opt_set_int(context.pointee.priv_data, "crf", Int64(level), 0)
        av_opt_set_int(context.pointee.priv_data, "auto-alt-ref", 1, 0)
        av_opt_set_int(context.pointee.priv_data, "row-mt", 0, 0)
        av_opt_set_int(context.pointee.priv_data, "tile-columns", 0, 0)
        av_opt_set_int(context.pointee.priv_data, "lag-in-frames", Int64(Self.lookahead(pixels: pixels)), 0)
    }

    /// Pictures that the encoder sees ahead, so that a job with alpha stays within its memory. It follows from the size alone: the
    /// load of the machine must not affect the bytes.
    static func lookahead(pixels: Int) -> Int {
        min(25, max(0, 12_000_000 / pixels))
    }
}
