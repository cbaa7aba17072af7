internal import CMedia

/// The settings of a video encoder of libavcodec: the part in which encoders and formats differ.
protocol EncoderSettings: Sendable {
    /// The encoder's name in libavcodec.
    static var encoder: String { get }
    /// The error where libavcodec lacks the encoder.
    static var missing: TranscodeError { get }
    /// Whether frames may leave the encoder in another order than the one in which they are shown.
    static var reordersFrames: Bool { get }
    /// Units of the encoder's time base from one frame to the next. Frames are counted, not timed, so that neither rate control nor
    /// arithmetic within an encoder depends on the delays.
    static var unitsPerFrame: Int64 { get }

    /// What the frames contain.
    var plane: EncodedPlane { get }
    /// Whether the encoder sees all frames once before it encodes them.
    var hasTwoPasses: Bool { get }

    /// Sets everything that is the encoder's own. Size, pixel format and colours are set already.
    ///
    /// - Parameter highestRate: Frames per second where they follow each other fastest; the level may follow from it.
    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, highestRate: AVRational)
}

extension EncoderSettings {
    static var unitsPerFrame: Int64 { 1 }
    var hasTwoPasses: Bool { false }
}

/// The settings of an encoder whose video becomes an MP4.
protocol MP4EncoderSettings: EncoderSettings {
    static var codec: VideoCodec { get }

    /// Whether the codec has only even sides in 4:2:0. An odd one then gets one more pixel, a copy of its edge.
    static var needsEvenSides: Bool { get }

    /// The number of steps by which a picture is quantized more coarsely if all of it is a mean of pictures with different dither
    /// (``TemporalFilter``). 0 where libavcodec passes the encoder no offsets.
    static var temporalMeanOffset: Double { get }

    /// The settings for another attempt at a file that is larger than its source by the factor `excess`; nil for none.
    func coarser(excess: Double) -> Self?
}

extension MP4EncoderSettings {
    static var encoder: String { codec.traits.encoder }
    static var missing: TranscodeError { .codecMissing(codec) }
}

/// What the frames of a video contain.
enum EncodedPlane: Equatable {
    /// BT.709's primaries and matrix, sRGB's transfer, limited range. In 4:2:0, chroma is in the middle of its four pixels.
    case color(ChromaFormat)
    /// The full range of 8 bits as luma, with chroma that says nothing.
    case alpha
    /// The same without chroma.
    case monochromeAlpha

    /// The resolution of chroma beside the samples.
    var chroma: ChromaFormat { if case .color(let chroma) = self { chroma } else { .half } }

    /// libavcodec's pixel format.
    var format: AVPixelFormat {
        switch self {
        case .color(.full): AV_PIX_FMT_YUV444P
        case .color(.half), .alpha: AV_PIX_FMT_YUV420P
        case .monochromeAlpha: AV_PIX_FMT_GRAY8
        }
    }

    /// Tags a stream.
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
