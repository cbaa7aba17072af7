internal import CAV

/// The settings of libaom for image sequences. `docs/benchmarks.md` has the measurements behind them.
struct AVIFSettings: EncoderSettings {
    static let encoder = "libaom-av1"
    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "avif-1"
    /// Pictures between two from which a reader can start.
    private static let keyInterval: Int32 = 250
    static let missing = TranscodeError.encoderMissing(.avif)
    static let reordersFrames = false

    let plane: EncodedPlane
    let quality: Int
    let hasAlpha: Bool

    /// The constant quality level for `quality` 1…100: two straight lines that meet at the default, 60 ↦ 38. Lower is better and
    /// larger: 100 ↦ 12, 1 ↦ 61.
    static func level(quality: Int) -> Int {
        quality >= 60 ? 38 - (quality - 60) * 13 / 20 : 38 + (60 - quality) * 2 / 5
    }

    /// Alpha of GIFs has two values and sharp edges, for which the tools for screen content halve the bytes. GIFs with transparent
    /// pixels are drawings, whose colours these tools save a tenth of.
    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, shortestFrame: Int) {
        context.pointee.time_base = AVRational(num: 1, den: 30)
        context.pointee.framerate = AVRational(num: 30, den: 1)
        context.pointee.bit_rate = 0
        // Equal bounds keep the encoder from choosing: both planes then have the same key pictures.
        context.pointee.gop_size = Self.keyInterval
        context.pointee.keyint_min = Self.keyInterval
        context.pointee.thread_count = 1
        let pixels = Int(context.pointee.width) * Int(context.pointee.height)
        av_opt_set(context.pointee.priv_data, "usage", "good", 0)
        av_opt_set_int(context.pointee.priv_data, "cpu-used", 6, 0)
        av_opt_set_int(context.pointee.priv_data, "crf", Int64(Self.level(quality: quality)), 0)
        av_opt_set_int(context.pointee.priv_data, "row-mt", 0, 0)
        av_opt_set(context.pointee.priv_data, "tiles", "1x1", 0)
        av_opt_set_int(context.pointee.priv_data, "lag-in-frames", Int64(Self.lookahead(pixels: pixels)), 0)
        if hasAlpha { av_opt_set(context.pointee.priv_data, "aom-params", "tune-content=screen", 0) }
    }

    /// Pictures that the encoder sees ahead, so that a job with alpha stays within its memory. It follows from the size alone: the
    /// load of the machine must not affect the bytes.
    static func lookahead(pixels: Int) -> Int {
        min(19, max(0, 12_000_000 / pixels))
    }
}
