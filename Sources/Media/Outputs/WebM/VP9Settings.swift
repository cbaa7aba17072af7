internal import CMedia

/// The settings of libvpx's VP9 encoder. `docs/benchmarks.md` has the measurements behind them.
struct VP9Settings: EncoderSettings {
    static let encoder = "libvpx-vp9"
    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "vp9-30"
    static let missing = TranscodeError.encoderMissing(.webm)
    let reordersFrames = false

    let plane: EncodedPlane
    /// 0…63: lower is better and larger.
    let level: Int
    let speed: Speed
    /// The keyframe interval of both planes.
    let keyInterval: KeyInterval

    /// libvpx's speed. It depends only on the source and the options, so that the bytes are the same on every machine.
    enum Speed: Equatable {
        /// libvpx's good mode, 0…5: lower takes longer.
        case good(Int)
        /// libvpx's real-time mode, fast enough to beat x264.
        case realtime

        /// - Parameter pixels: The pixels of all frames.
        init(_ content: PictureContent, pixels: Int) {
            // Nanoseconds per pixel: 700 at 0, 250 at 1, 150 at 2, and 15 in real-time mode. Film gains nothing below 2.
            switch pixels {
            case ...10_000_000 where content.isDrawing: self = .good(0)
            case ...100_000_000 where content.isDrawing: self = .good(1)
            case ...300_000_000: self = .good(2)
            default: self = .realtime
            }
        }

        /// Whether a first pass examines all frames. It saves a fifth of the bytes, because the encoder then knows from which
        /// pictures others can be predicted.
        var hasTwoPasses: Bool { self != .realtime }
    }

    var hasTwoPasses: Bool { speed.hasTwoPasses }

    /// The constant quality level for `quality` 1…100: two straight lines that meet at the default, 60. Lower is better.
    static func level(quality: Int, isDrawing: Bool) -> Int {
        let middle = isDrawing ? 37 : 28
        return quality >= 60 ? middle - (quality - 60) * (middle - 12) / 40 : middle + (60 - quality) * (61 - middle) / 59
    }

    static let coarsestLevel = 63
    static let search = QualitySearch(range: 2...coarsestLevel, decibelsPerStep: 0.25)

    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, highestRate: AVRational) {
        // Pictures are counted, not timed.
        context.pointee.time_base = AVRational(num: 1, den: 30)
        context.pointee.framerate = AVRational(num: 30, den: 1)
        context.pointee.bit_rate = 0
        // Equal bounds keep the encoder from choosing, so that both planes have the same keyframes.
        context.pointee.gop_size = Int32(keyInterval.pictures)
        context.pointee.keyint_min = Int32(keyInterval.pictures)
        context.pointee.thread_count = 1
        // VP9 supports 4:4:4 in profile 1.
        context.pointee.profile = plane.format == AV_PIX_FMT_YUV444P ? 1 : 0
        let options = context.pointee.priv_data
        switch speed {
        case .good(let number):
            av_opt_set(options, "deadline", "good", 0)
            av_opt_set_int(options, "cpu-used", Int64(number), 0)
        case .realtime:
            av_opt_set(options, "deadline", "realtime", 0)
            av_opt_set_int(options, "cpu-used", 6, 0)
        }
        av_opt_set_int(options, "crf", Int64(level), 0)
        // Weights distortion by the activity of its surroundings, like x264: 5 % fewer bytes at equal SSIM.
        if case .color = plane { av_opt_set(options, "tune", "ssim", 0) }
        av_opt_set_int(options, "row-mt", 0, 0)
        av_opt_set_int(options, "tile-columns", 0, 0)
        let lookahead = hasTwoPasses ? Self.lookahead(pixels: Int(context.pointee.width) * Int(context.pointee.height)) : 0
        av_opt_set_int(options, "lag-in-frames", Int64(lookahead), 0)
        // An alternate reference frame from later frames. It comes in one packet with a picture that is shown.
        av_opt_set_int(options, "auto-alt-ref", lookahead > 0 ? 1 : 0, 0)
    }

    func open(_ context: UnsafeMutablePointer<AVCodecContext>, _ codec: UnsafePointer<AVCodec>) -> Int32 {
        VP9Memory.open(context, codec)
    }

    /// Whether all coefficients of a picture in 4:4:4 have room in ``VP9Memory``, or in libvpx's own memory: then no transform of 32 × 32
    /// pixels may cross an edge of the squares of 16 × 16 pixels.
    static func hasRoomForFullChroma(width: Int, height: Int) -> Bool {
        VP9Memory.isAmple || [width, height].allSatisfy { ($0 - 1) % 32 >= 16 }
    }

    /// Returns the lookahead in frames, limited so that a job stays within its memory.
    static func lookahead(pixels: Int) -> Int {
        min(25, max(0, 25_000_000 / pixels - 1))
    }
}
