internal import CMedia

/// libaom's tools, chosen by the content of the pictures and the amount of work.
///
/// The choice depends only on the source and the options, so that the bytes are the same on every machine. `docs/benchmarks.md`
/// has the measurements behind each choice.
struct AV1Tools: Equatable {
    /// How hard libaom searches.
    enum Effort: Equatable {
        /// libaom's real-time mode: each frame once, in order, with few intra modes and three references. The thorough search
        /// takes five times as long.
        case quick
        /// libaom's best mode that codes each frame once.
        case thorough
    }

    let effort: Effort
    /// Whether the picture has few colours and sharp edges: palettes and the tools for screen content pay off.
    let isDrawing: Bool
    let chroma: ChromaFormat
    /// The quantizer for the default quality, with which ``QualitySearch`` begins.
    private let middle: Double
    /// libaom's own speed setting within an effort.
    private let speed: Int64

    /// Whether libaom has lookahead, from which it predicts frames.
    private let looksAhead: Bool

    /// Pictures from one sync sample to the next.
    private let keyInterval: Int

    /// See ``forTrial``.
    private var isTrial = false

    struct Work {
        var frames: Int
        var pixels: Int
        /// The pixels that change, on which encoders spend most of their time.
        var changedPixels: Int
    }

    /// The fewest frames for which lookahead saves more than libaom's additional frames cost.
    private static let fewestFramesAhead = 8

    /// The tools for the alpha plane of these pictures, which has few values and sharp edges.
    ///
    /// The real-time mode of libaom 3.6 crashes without chroma, so the search is always thorough. The alpha of large pictures
    /// is quantized more coarsely, because it would take a third of the file.
    var forAlpha: AV1Tools {
        AV1Tools(
            effort: .thorough, isDrawing: true, chroma: .half, middle: effort == .quick ? 42 : 38, speed: 6, looksAhead: false,
            keyInterval: keyInterval)
    }

    /// The tools for trial encodes that find the quantizer of ``QualitySearch``. They skip the search for rare block shapes,
    /// which hardly changes the quality at a quantizer.
    var forTrial: AV1Tools {
        var tools = self
        tools.isTrial = true
        return tools
    }

    /// The quantizer for `quality` 1…100: two straight lines that meet at the default, 60. Lower is better and larger.
    func quantizer(quality: Int) -> Int {
        let distance = Double(quality - 60)
        let exact = distance >= 0 ? middle - distance * (middle - 8) / 40 : middle - distance * (58 - middle) / 59
        return Int(exact.rounded())
    }

    /// Finds the quantizer for a quality.
    static let search = QualitySearch(range: 1...63, decibelsPerStep: 0.4)

    /// Sets the options of an encoder whose size is set already.
    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, quantizer: Int) {
        // Main, or High; the constants' names changed with FFmpeg 6.1.
        context.pointee.profile = chroma == .half ? 0 : 1
        context.pointee.thread_count = 1
        context.pointee.bit_rate = 0
        context.pointee.gop_size = Int32(keyInterval)
        let options = context.pointee.priv_data
        av_opt_set(options, "usage", effort == .quick ? "realtime" : "good", 0)
        av_opt_set_int(options, "cpu-used", speed, 0)
        av_opt_set_int(options, "crf", Int64(quantizer), 0)
        av_opt_set_int(options, "row-mt", 0, 0)
        // Weights distortion by the activity of its surroundings, like x264. Alpha has no texture.
        if context.pointee.pix_fmt != AV_PIX_FMT_GRAY8 { av_opt_set(options, "tune", "ssim", 0) }
        av_opt_set(options, "tiles", "1x1", 0)
        let pixels = Int(context.pointee.width) * Int(context.pointee.height)
        if effort == .thorough {
            let lookahead = looksAhead ? Self.lookahead(pixels: pixels) : 0
            av_opt_set_int(options, "lag-in-frames", Int64(lookahead), 0)
            if lookahead > 0 {
                // Equal bounds keep the encoder from choosing, so that the colour and alpha streams have the same keyframes.
                // Without lookahead, it chooses none.
                context.pointee.keyint_min = Int32(keyInterval)
            } else {
                // Without lookahead, libaom would code each frame much better than requested.
                context.pointee.qmin = Int32(quantizer)
                context.pointee.qmax = Int32(quantizer)
            }
        }
        av_opt_set(options, "aom-params", parameters.joined(separator: ":"), 0)
    }

    /// Options of libaom, in its own syntax.
    private var parameters: [String] {
        // Intra block copy needs tables of 66 bytes per pixel and saves nothing.
        var list = ["enable-intrabc=0"]
        if isDrawing {
            // In drawings, rare block shapes and warped or overlapped motion hardly save bytes.
            list += [
                "tune-content=screen", "enable-ab-partitions=0", "enable-1to4-partitions=0", "enable-obmc=0",
                "enable-warped-motion=0", "enable-global-motion=0",
            ]
        }
        if isTrial { list += ["enable-ab-partitions=0", "enable-1to4-partitions=0", "enable-rect-partitions=0"] }
        // Lookahead benefits from everything below.
        if looksAhead { return list }
        // Without lookahead, these cost a third of the time and save nothing.
        list += [
            "enable-order-hint=0", "enable-ref-frame-mvs=0", "enable-warped-motion=0", "enable-obmc=0",
            "enable-global-motion=0", "enable-tpl-model=0", "enable-keyframe-filtering=0",
        ]
        // libaom uses superblocks of 128 pixels from 720p. Drawings need up to 7 % fewer bytes with 64, and look better.
        if effort == .quick {
            list += ["coeff-cost-upd-freq=3", "mode-cost-upd-freq=3", "mv-cost-upd-freq=3", "sb-size=64"]
        }
        return list
    }

    /// Returns the lookahead in frames, limited so that a job stays within its memory.
    static func lookahead(pixels: Int) -> Int {
        min(19, max(0, 12_000_000 / pixels - 1))
    }
}

extension AV1Tools {
    /// The tools for a video or an image sequence. The thorough search takes up to 0.5 µs per pixel, so the largest work takes
    /// 20 seconds.
    init(_ content: PictureContent, _ work: Work) {
        isDrawing = content.isDrawing
        chroma = content.chroma
        keyInterval =
            KeyInterval(pixels: max(1, work.pixels / max(1, work.frames)), changedShare: content.changedShare).pictures
        guard work.changedPixels <= 40_000_000, work.pixels <= 400_000_000 else {
            (effort, middle, speed, looksAhead) = (.quick, isDrawing ? 32 : 24, isDrawing ? 6 : 7, false)
            return
        }
        effort = .thorough
        looksAhead = work.frames >= Self.fewestFramesAhead
        middle = isDrawing ? 36 : 31
        // Slower speeds save bytes only in drawings.
        speed = isDrawing && work.changedPixels <= 4_000_000 ? 5 : 6
    }
}

extension AV1Tools.Work {
    /// The work of the requested part in the requested size.
    init(of content: PictureContent, _ geometry: PictureGeometry) {
        let picture = geometry.width * geometry.height
        self.init(
            frames: content.frames, pixels: picture * content.frames,
            changedPixels: Int(content.changedPixels(ofPictures: picture)))
    }
}
