internal import CAV

/// What libaom tries in order to save bytes, chosen by what a picture shows and by how much there is to encode.
///
/// It follows from the source and the options alone, so that the bytes are the same on every machine. `docs/benchmarks.md` has the
/// measurements behind each choice.
struct AV1Tools: Equatable {
    /// How hard libaom searches.
    enum Effort: Equatable {
        /// Its real-time mode: each frame once, in order, with few intra modes and three references. The thorough search takes
        /// five times as long.
        case quick
        /// Its best mode that codes each frame once.
        case thorough
    }

    let effort: Effort
    /// Whether the picture has few colours and sharp edges: palettes and the search for screen content pay off.
    let isScreen: Bool
    /// Whether the search may take what it needs, because the result is shown often and made once.
    private let isUnhurried: Bool
    /// The quantizer for the default quality.
    private let middle: Double
    /// libaom's own measure of speed within an effort.
    private let speed: Int64

    /// How much there is to encode.
    struct Work {
        /// Pixels of all frames.
        var pixels: Int
        /// Those of them that change, for which encoders take their time.
        var changedPixels: Int

        init(pixels: Int, changedPixels: Int) {
            self.pixels = pixels
            self.changedPixels = changedPixels
        }

        /// The work of the requested part in the requested size.
        init(of plan: SamplePlan, _ summary: AnimationSummary, _ content: PictureContent, _ options: TranscodeOptions) {
            let geometry = PictureGeometry(width: summary.width, height: summary.height, options: options)
            let picture = geometry.width * geometry.height
            let later = max(0, plan.count - 1)
            self.init(
                pixels: picture * plan.count,
                changedPixels: picture + Int(Double(picture * later) * content.changedShare))
        }
    }

    /// The tools for a video. The thorough search of a small drawing takes a second at most.
    static func video(_ content: PictureContent, _ work: Work) -> AV1Tools {
        guard content.isScreen else { return AV1Tools(.quick, isScreen: false, middle: 24, speed: 7) }
        guard work.pixels <= 1_500_000, work.changedPixels <= 600_000 else {
            return AV1Tools(.quick, isScreen: true, middle: 32, speed: 6)
        }
        // At one quantizer for all, the smallest GIFs have a lower SSIM than in H.264. A finer one costs them a few hundred bytes.
        return AV1Tools(.thorough, isScreen: true, middle: work.changedPixels <= 300_000 ? 37 : 40, speed: 4)
    }

    /// The tools for an image sequence. The thorough search takes up to 0.5 µs per pixel, so its largest work takes 20 seconds.
    /// Drawings of up to half as many pixels are encoded at a slower speed, which saves bytes. Films would lose quality by that.
    static func image(_ content: PictureContent, _ work: Work) -> AV1Tools {
        let isScreen = content.isScreen
        guard work.pixels <= 40_000_000 else {
            return AV1Tools(.quick, isScreen: isScreen, isUnhurried: true, middle: isScreen ? 36 : 24, speed: isScreen ? 6 : 7)
        }
        guard isScreen else { return AV1Tools(.thorough, isScreen: false, isUnhurried: true, middle: 34, speed: 6) }
        return AV1Tools(.thorough, isScreen: true, isUnhurried: true, middle: 40, speed: work.pixels <= 20_000_000 ? 5 : 6)
    }

    /// The tools for the alpha of pictures that are encoded with these: it has few values and sharp edges.
    ///
    /// The real-time mode of libaom 3.6 crashes without chroma, so that the search is always thorough. The alpha of large pictures
    /// is quantized more, because it would take a third of the file.
    var forAlpha: AV1Tools {
        let isLarge = effort == .quick
        return AV1Tools(.thorough, isScreen: true, isUnhurried: !isLarge, middle: isLarge ? 42 : 38, speed: 6)
    }

    private init(_ effort: Effort, isScreen: Bool, isUnhurried: Bool = false, middle: Double, speed: Int64) {
        self.effort = effort
        self.isScreen = isScreen
        self.isUnhurried = isUnhurried
        self.middle = middle
        self.speed = speed
    }

    /// The largest number of frames from one sync sample to the next: x264's default.
    private static let longestGroup: Int32 = 250

    /// The quantizer for `quality` 1…100: two straight lines that meet at the default, 60. Lower is better and larger.
    func quantizer(quality: Int) -> Int {
        let distance = Double(quality - 60)
        let exact = distance >= 0 ? middle - distance * (middle - 8) / 40 : middle - distance * (58 - middle) / 59
        return Int(exact.rounded())
    }

    /// Sets the options of an encoder whose size is set already.
    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, quantizer: Int) {
        context.pointee.profile = 0  // Main; the constant's name changed with FFmpeg 6.1
        context.pointee.thread_count = 1
        context.pointee.bit_rate = 0
        context.pointee.gop_size = Self.longestGroup
        let options = context.pointee.priv_data
        av_opt_set(options, "usage", effort == .quick ? "realtime" : "good", 0)
        av_opt_set_int(options, "cpu-used", speed, 0)
        av_opt_set_int(options, "crf", Int64(quantizer), 0)
        av_opt_set_int(options, "row-mt", 0, 0)
        av_opt_set(options, "tiles", "1x1", 0)
        let pixels = Int(context.pointee.width) * Int(context.pointee.height)
        if effort == .thorough {
            let lookahead = isScreen ? 0 : Self.lookahead(pixels: pixels)
            av_opt_set_int(options, "lag-in-frames", Int64(lookahead), 0)
            if lookahead > 0 {
                // Equal bounds keep the encoder from choosing: streams of colours and of alpha then have the same key pictures.
                // Without lookahead, it chooses none.
                context.pointee.keyint_min = Self.longestGroup
            } else {
                // Without frames to look at, libaom would code each frame much better than asked for.
                context.pointee.qmin = Int32(quantizer)
                context.pointee.qmax = Int32(quantizer)
            }
        }
        var list = parameters
        // The search for copies of blocks within a picture takes 66 bytes per pixel for its tables.
        if pixels > Self.mostPixelsForCopies { list.append("enable-intrabc=0") }
        av_opt_set(options, "aom-params", list.joined(separator: ":"), 0)
    }

    private static let mostPixelsForCopies = 1_000_000

    /// Options of libaom, in its own syntax.
    private var parameters: [String] {
        // Lookahead makes use of everything.
        if effort == .thorough && !isScreen { return [] }
        // These cost a third of the time and save nothing on GIFs, and neither do costs that are computed more than once per
        // frame.
        var list = [
            "enable-order-hint=0", "enable-ref-frame-mvs=0", "enable-warped-motion=0", "enable-obmc=0",
            "enable-global-motion=0",
            "enable-tpl-model=0", "enable-keyframe-filtering=0",
        ]
        if isScreen { list.append("tune-content=screen") }
        if isUnhurried && effort == .thorough { return list }
        list += ["coeff-cost-upd-freq=3", "mode-cost-upd-freq=3", "mv-cost-upd-freq=3"]
        switch effort {
        // libaom takes superblocks of 128 pixels from 720p on. Drawings need up to 7 % fewer bytes with 64, and look better.
        case .quick: list.append("sb-size=64")
        // Of the search for screen content, copies of blocks cost more than they save.
        case .thorough: list.append("enable-intrabc=0")
        }
        return list
    }

    /// Frames that the encoder sees ahead, so that a job stays within its memory.
    static func lookahead(pixels: Int) -> Int {
        min(19, max(0, 12_000_000 / pixels - 1))
    }
}
