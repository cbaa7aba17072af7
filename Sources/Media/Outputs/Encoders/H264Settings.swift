internal import CMedia

/// The settings of x264. `docs/benchmarks.md` has the measurements behind them.
package struct H264Settings: MP4EncoderSettings, Equatable {
    static let codec = VideoCodec.h264
    static let needsEvenSides = true
    /// Measured against films: residual dither is a larger error than this offset.
    static let temporalMeanOffset = 0.75

    /// x264's constant rate factor: lower is better and larger.
    package var rateFactor: Double
    var plane: EncodedPlane { .color(.half) }
    private let content: PictureContent
    /// Whether only the first frame is an IDR picture. Two consecutive IDR pictures, the last of one round and the first of the
    /// next, must differ in `idr_pic_id` (ITU-T H.264 §7.4.3), but rounds are copies.
    private let hasOneKeyframe: Bool
    let reordersFrames: Bool

    init(_ options: TranscodeOptions, _ content: PictureContent) {
        self.content = content
        rateFactor = Self.rateFactor(quality: options.quality, content)
        hasOneKeyframe = options.time.loops > 1
        reordersFrames = options.bframes == .automatic
    }

    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    package static let version = "x264-34"

    /// For rate control, each frame lasts 4/100 s, whatever its delay: x264 spends more on frames with longer durations, and
    /// treats this duration as neutral (`BASE_FRAME_DURATION`). So the bytes depend on the pictures alone.
    static let unitsPerFrame: Int64 = 4
    private static let unitsPerSecond: Int32 = 100

    /// The named preset that the options start from.
    static let preset = "medium"

    /// Options in addition to the preset, in x264's syntax.
    ///
    /// The pattern of B-frames is fixed (`b-adapt=0`): the search for a better pattern is the most expensive step, and its
    /// result is larger for most GIFs. Psychovisual optimisation is off: it adds grain to pictures without grain.
    static let options = "psy=0:weightp=0:scenecut=0:b-adapt=0:trellis=1"

    /// Options for drawings, in addition to those of ``MotionSearch``. 8×8 transforms make them larger.
    ///
    /// An explicit flat scaling matrix changes no sample. With it, x264 declares High profile; without 8×8 transforms, x264
    /// would otherwise declare Main.
    private static let drawingOptions =
        ":bframes=4:8x8dct=0:cqm4=16,16,16,16,16,16,16,16,16,16,16,16,16,16,16,16"

    /// Options for films that keep their dither. Frames with much motion keep more quality, because every frame of a short loop
    /// is seen often. Adaptive quantization stays at its default. A strength of 1.3, which spends more on smooth areas, is
    /// better by SSIM and much worse by VMAF.
    private static let filmOptions = ":qcomp=0.5"

    /// Options for films whose dither was removed. Its remains lie in smooth areas, on which adaptive quantization would spend
    /// most of the bytes.
    private static let unditheredOptions = ":aq-strength=0.6:ref=2"

    /// Options for drawings and small pictures. Chroma errors of flat colours show more than luma errors, and cost fewer bytes.
    private static let colorOptions = ":chroma-qp-offset=-6"

    /// The reduction of the rate factor for the thorough search. This search makes files coarser at the same factor, and each
    /// pixel of a small picture is visible.
    private static let thoroughOffset = 0.6

    /// Returns ``options`` and the options that the settings add.
    private func allOptions(_ search: MotionSearch, pixels: Int) -> String {
        var list = Self.options + search.options
        // Less deblocking keeps edges sharp.
        if content.isDrawing {
            list += Self.drawingOptions + (content.isPixelArt ? ":no-deblock=1" : ":deblock=-1,-1")
            if search.isFine { list += ":partitions=all" }
        } else {
            list += content.isUndithered ? Self.unditheredOptions : Self.filmOptions
        }
        if content.isDrawing || content.isSmall { list += Self.colorOptions }
        if pixels > EncoderBudget.mostPixelsWithBFrames {
            list += ":bframes=0:ref=1"
        } else if !reordersFrames {
            list += ":bframes=0"
        }
        if hasOneKeyframe { return list + ":keyint=infinite:min-keyint=1000000" }
        return list + ":keyint=\(KeyInterval(pixels: pixels, changedShare: content.changedShare).pictures)"
    }

    /// The rate factor for `quality` 1…100: two straight lines that meet at the default, 60 ↦ 18.3. Drawings have 20, because
    /// their options give a better picture at the same factor. 100 ↦ 7.1 (no visible loss), 1 ↦ 42.7.
    static func rateFactor(quality: Int, _ content: PictureContent) -> Double {
        let middle = content.isDrawing ? 20 : content.isUndithered ? unditheredFactor(detail: content.detail) : 18.3
        let distance = Double(quality - 60)
        return distance >= 0 ? middle - distance * (middle - 7.1) / 40 : middle - distance * (42.7 - middle) / 59
    }

    /// The rate factor of a film whose dither was removed: the more detail hides the loss, the coarser. Fitted to the coarsest
    /// factors at which eleven films, dithered in nine ways, are closer to the original by every metric than with their dither.
    private static func unditheredFactor(detail: Double) -> Double {
        let octaves = PortableMath.log2(max(1, detail) / littleDetail)
        return min(max(finestUnditheredFactor, finestUnditheredFactor + 1.15 * octaves), 20)
    }

    private static let finestUnditheredFactor = 18.1
    /// The ``FilmDetail`` up to which the factor is the finest.
    private static let littleDetail = 120.0

    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, highestRate: AVRational) {
        let (width, height) = (Int(context.pointee.width), Int(context.pointee.height))
        let budget = EncoderBudget(pixels: width * height, isDrawing: content.isDrawing)
        context.pointee.time_base = AVRational(num: 1, den: Self.unitsPerSecond)
        // x264 derives the level from this rate, not from the time base.
        context.pointee.framerate = highestRate
        context.pointee.profile = 100  // High; the constant's name changed with FFmpeg 6.1
        context.pointee.thread_count = Int32(budget.threads)
        av_opt_set(context.pointee.priv_data, "preset", Self.preset, 0)
        let search = MotionSearch(width: width, height: height, content)
        let factor = search.isThorough ? max(0, rateFactor - Self.thoroughOffset) : rateFactor
        av_opt_set_double(context.pointee.priv_data, "crf", factor, 0)
        let options =
            allOptions(search, pixels: width * height) + ":rc-lookahead=\(budget.lookahead)" + InstructionSet.option
        av_opt_set(context.pointee.priv_data, "x264-params", options, 0)
    }

    func coarser(excess: Double) -> H264Settings? {
        guard let steps = Self.coarserSteps(excess: excess) else { return nil }
        var settings = self
        settings.rateFactor = min(Self.coarsestRateFactor, rateFactor + steps)
        return settings
    }

    private static let coarsestRateFactor = 51.0

    /// Returns the steps to add to the rate factor of a file that is too large by the factor `excess`; nil if it is not too
    /// large, or if ``mostSteps`` are not enough.
    ///
    /// Six steps roughly halve the bytes; one more compensates for the inaccuracy. A file that needs more than ``mostSteps`` is
    /// not encoded again: it would be illegible before it is small enough.
    static func coarserSteps(excess: Double) -> Double? {
        guard excess > 1 else { return nil }
        let steps = 6 * PortableMath.log2(excess)
        return steps <= mostSteps ? min(mostSteps, steps + 1) : nil
    }

    private static let mostSteps = 4.0
}

/// Lookahead and threads of an encoder for a picture size. A job stays within 64 MB, or 136 MB for a drawing, plus 60 bytes per
/// pixel, or 84 if a large picture has a second thread. The references of ``MotionSearch`` may add up to 17 bytes per pixel,
/// and 34 in small pictures.
///
/// Measured with x264 0.164: 46 bytes per pixel in any case, 3 per frame of lookahead and 24 for a second thread, in addition
/// to 40 MB of libraries, tables and unused parts of large pages. A lookahead of 25 frames makes files a tenth smaller than one
/// of 5. A longer lookahead hardly saves more in films. Drawings have parts that stay unchanged for long, and 60 frames save
/// another 4 %. A second thread only shortens the wait.
///
/// The largest pictures have no B-frames, one reference and a lookahead of 2 frames. At 3840 × 2160, that takes about 240 MB
/// instead of 461 MB. A worker has about 430 MB beside canvases and libraries, and less for a clip.
struct EncoderBudget: Equatable {
    /// Frames of lookahead.
    let lookahead: Int
    /// Threads of x264, on which the bytes of some files depend.
    let threads: Int

    /// Below this range, threads cost more than they save, and the zygote, which must not start threads, converts the picture.
    /// Above it, two threads need too much memory.
    private static let pixelsWithTwoThreads = 4097...2_500_000
    /// Larger pictures take seconds: their second thread is worth its memory beyond the budget.
    private static let mostPixelsInBudget = 600_000
    /// The largest picture with B-frames and more than one reference.
    static let mostPixelsWithBFrames = 5_500_000
    private static let shared = 24_000_000
    private static let sharedOfDrawing = 96_000_000
    private static let mostLookahead = 25
    private static let mostLookaheadOfDrawing = 60
    private static let perPixel = 60 - 46
    private static let perThread = 24
    private static let perLookahead = 3

    /// - Parameter pixels: Width times height, above 0.
    init(pixels: Int, isDrawing: Bool) {
        // Both depend on the pictures alone, so an object has the same bytes regardless of a machine's processors and load.
        let allowsTwo = Self.pixelsWithTwoThreads.contains(pixels)
        let thread = allowsTwo && pixels <= Self.mostPixelsInBudget ? Self.perThread : 0
        let left = Self.perPixel - thread + (isDrawing ? Self.sharedOfDrawing : Self.shared) / pixels
        let most = isDrawing ? Self.mostLookaheadOfDrawing : Self.mostLookahead
        lookahead = pixels > Self.mostPixelsWithBFrames ? 2 : min(most, max(5, left / Self.perLookahead))
        threads = allowsTwo ? 2 : 1
    }
}

/// The instruction set that x264 uses.
enum InstructionSet {
    /// The option for x264, with a leading colon; empty if x264's own choice is right.
    ///
    /// With AVX-512, x264 (0.164) weighs macroblocks by uninitialized memory: where B-frames and macroblock trees meet, the
    /// same frames give different bytes from one process to the next (up to 1.5 % more; provoked by glibc's `MALLOC_PERTURB_`,
    /// gone with AVX2). An object is named for its content and must be the same on every machine. AVX2 is no slower: 4 % faster
    /// in the median of 26 GIFs on a processor that has both.
    static let option = isWide(flags: av_get_cpu_flags()) ? ":asm=avx2" : ""

    /// Whether x264 would use AVX-512 and AVX2 is available.
    static func isWide(flags: Int32) -> Bool {
        flags & AV_CPU_FLAG_AVX512 != 0 && flags & AV_CPU_FLAG_AVX2 != 0
    }
}
