internal import CMedia

/// The settings of a video encoder of libavcodec: the part in which encoders and formats differ.
protocol EncoderSettings: Sendable {
    /// The encoder's name in libavcodec.
    static var encoder: String { get }
    /// The error if libavcodec lacks the encoder.
    static var missing: TranscodeError { get }
    /// Whether frames may leave the encoder in an order other than display order.
    var reordersFrames: Bool { get }
    /// Units of the encoder's time base from one frame to the next. Frames are counted, not timed, so that neither rate control
    /// nor arithmetic within an encoder depends on the delays.
    static var unitsPerFrame: Int64 { get }

    /// The content of the frames.
    var plane: EncodedPlane { get }
    /// Whether a first pass examines all frames before they are encoded.
    var hasTwoPasses: Bool { get }

    /// Sets the encoder's own options. Size, pixel format and colours are already set.
    ///
    /// - Parameter highestRate: The highest frame rate, in frames per second; the level may depend on it.
    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, highestRate: AVRational)

    /// Opens the encoder. Returns an AVERROR, or 0.
    func open(_ context: UnsafeMutablePointer<AVCodecContext>, _ codec: UnsafePointer<AVCodec>) -> Int32
}

extension EncoderSettings {
    static var unitsPerFrame: Int64 { 1 }
    var hasTwoPasses: Bool { false }

    func open(_ context: UnsafeMutablePointer<AVCodecContext>, _ codec: UnsafePointer<AVCodec>) -> Int32 {
        avcodec_open2(context, codec, nil)
    }
}

/// The settings of an encoder whose video becomes an MP4.
protocol MP4EncoderSettings: EncoderSettings {
    static var codec: VideoCodec { get }

    /// Whether the codec needs even sides in 4:2:0. An odd side then gets one more pixel, a copy of its edge.
    static var needsEvenSides: Bool { get }

    /// The number of steps by which a picture is quantized more coarsely if all of it is a mean of pictures with different
    /// dither (``TemporalFilter``). 0 if libavcodec passes no offsets to the encoder.
    static var temporalMeanOffset: Double { get }

    /// The settings for another attempt at a file that is larger than its source by the factor `excess`; nil for none.
    func coarser(excess: Double) -> Self?
}

extension MP4EncoderSettings {
    static var encoder: String { codec.traits.encoder }
    static var missing: TranscodeError { .codecMissing(codec) }
}

/// The content of a video's frames.
enum EncodedPlane: Equatable {
    /// BT.709 primaries and matrix, sRGB transfer, limited range. In 4:2:0, chroma is at the centre of its four pixels.
    case color(ChromaFormat)
    /// Full-range 8-bit luma with neutral chroma.
    case alpha
    /// Full-range 8-bit luma without chroma.
    case monochromeAlpha

    var chroma: ChromaFormat { if case .color(let chroma) = self { chroma } else { .half } }

    var format: AVPixelFormat {
        switch self {
        case .color(.full): AV_PIX_FMT_YUV444P
        case .color(.half), .alpha: AV_PIX_FMT_YUV420P
        case .monochromeAlpha: AV_PIX_FMT_GRAY8
        }
    }

    func tag(_ context: UnsafeMutablePointer<AVCodecContext>) {
        guard case .color(let chroma) = self else {
            context.pointee.color_range = AVCOL_RANGE_JPEG
            return
        }
        context.pointee.color_range = AVCOL_RANGE_MPEG
        context.pointee.colorspace = AVCOL_SPC_BT709
        context.pointee.color_primaries = AVCOL_PRI_BT709
        context.pointee.color_trc = AVCOL_TRC_IEC61966_2_1
        if chroma == .half { context.pointee.chroma_sample_location = AVCHROMA_LOC_CENTER }
    }
}
