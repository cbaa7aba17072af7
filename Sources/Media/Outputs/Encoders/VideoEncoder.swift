internal import CAV

/// The settings of a video encoder of libavcodec: the part in which codecs differ.
protocol EncoderSettings: Sendable {
    static var codec: VideoCodec { get }
    /// Whether frames may leave the encoder in another order than the one in which they are shown.
    static var reordersFrames: Bool { get }

    /// Encoder threads at most.
    var threads: Int { get }
    /// Units a second of the times that frames are given.
    var timescale: Int { get set }

    /// Sets everything that is the codec's own. Size, pixel format and colours are set already.
    ///
    /// - Parameter shortestFrame: The shortest time a frame is shown, in units of ``timescale``; the level follows from it.
    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, shortestFrame: Int)

    /// The settings for another attempt at a file that is larger than its source by the factor `excess`; nil for none.
    func coarser(excess: Double) -> Self?
}

/// Encodes 4:2:0 frames of 8 bits at exact times by an encoder of libavcodec. Packets come out in decoding order.
///
/// The planes of ``planes()`` persist from frame to frame, so only what changed needs to be written.
/// Not thread-safe; the encoder starts threads of its own where `threads` is above 1.
struct VideoEncoder<Settings: EncoderSettings>: ~Copyable {
    private let context: UnsafeMutablePointer<AVCodecContext>
    private let frame: UnsafeMutablePointer<AVFrame>
    private let packet: UnsafeMutablePointer<AVPacket>
    /// The number of frames so far.
    private var index: Int64 = 0

    /// Opens the encoder.
    ///
    /// - Parameters:
    ///   - width: Even, in pixels.
    ///   - height: Even, in pixels.
    ///   - shortestFrame: The shortest time a frame is shown, in units of the settings' timescale; the level follows from it.
    /// - Throws: ``TranscodeError/codecMissing(_:)``, ``TranscodeError/failed(_:code:)`` or `outOfMemory`.
    init(width: Int, height: Int, shortestFrame: Int, settings: Settings) throws(TranscodeError) {
        guard let codec = avcodec_find_encoder_by_name(Settings.codec.traits.encoder) else {
            throw .codecMissing(Settings.codec)
        }
        let parts = EncoderParts(codec)
        do {
            try parts.open(codec, width: width, height: height) {
                settings.configure($0, shortestFrame: shortestFrame)
            }
        } catch {
            parts.free()
            throw error
        }
        guard let context = parts.context, let frame = parts.frame, let packet = parts.packet else {
            parts.free()
            throw .outOfMemory
        }
        self.context = context
        self.frame = frame
        self.packet = packet
    }

    deinit {
        EncoderParts(context: context, frame: frame, packet: packet).free()
    }

    /// The planes for the next frame. They hold the frame before.
    mutating func planes() throws(TranscodeError) -> PixelConverter.Planes {
        // The encoder copies its input; should it hold a reference nevertheless, this makes a copy.
        guard av_frame_make_writable(frame) >= 0,
            let luma = frame.pointee.data.0, let cb = frame.pointee.data.1, let cr = frame.pointee.data.2
        else { throw .outOfMemory }
        return PixelConverter.Planes(
            luma: luma, cb: cb, cr: cr, lumaStride: Int(frame.pointee.linesize.0),
            cbStride: Int(frame.pointee.linesize.1), crStride: Int(frame.pointee.linesize.2))
    }

    /// Encodes the planes as the frame shown at `time`, and passes finished packets to `sink`.
    mutating func encode(at time: Int, _ sink: (UnsafeMutablePointer<AVPacket>) throws(TranscodeError) -> Void)
        throws(TranscodeError)
    {
        frame.pointee.pts = Settings.reordersFrames ? Int64(time) : index
        index += 1
        frame.pointee.pict_type = time == 0 ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE
        let sent = avcodec_send_frame(context, frame)
        guard sent >= 0 else { throw .library(.encode, code: sent) }
        try drain(sink)
    }

    /// Ends the stream, and passes the remaining packets to `sink`.
    mutating func finish(_ sink: (UnsafeMutablePointer<AVPacket>) throws(TranscodeError) -> Void)
        throws(TranscodeError)
    {
        let sent = avcodec_send_frame(context, nil)
        guard sent >= 0 else { throw .library(.encode, code: sent) }
        try drain(sink)
    }

    private func drain(_ sink: (UnsafeMutablePointer<AVPacket>) throws(TranscodeError) -> Void) throws(TranscodeError) {
        while true {
            let received = avcodec_receive_packet(context, packet)
            if received == gifreel_averror_again || received == gifreel_averror_eof { return }
            guard received >= 0 else { throw .library(.encode, code: received) }
            defer { av_packet_unref(packet) }
            try sink(packet)
        }
    }

    /// Copies the stream's parameters for the container.
    func describe(_ parameters: UnsafeMutablePointer<AVCodecParameters>) throws(TranscodeError) {
        let copied = avcodec_parameters_from_context(parameters, context)
        guard copied >= 0 else { throw .library(.openMuxer, code: copied) }
    }
}

/// The parts of an encoder while it is being opened.
private struct EncoderParts {
    var context: UnsafeMutablePointer<AVCodecContext>?
    var frame: UnsafeMutablePointer<AVFrame>?
    var packet: UnsafeMutablePointer<AVPacket>?

    init(
        context: UnsafeMutablePointer<AVCodecContext>?, frame: UnsafeMutablePointer<AVFrame>?,
        packet: UnsafeMutablePointer<AVPacket>?
    ) {
        self.context = context
        self.frame = frame
        self.packet = packet
    }

    init(_ codec: UnsafePointer<AVCodec>) {
        context = avcodec_alloc_context3(codec)
        frame = av_frame_alloc()
        packet = av_packet_alloc()
    }

    func open(
        _ codec: UnsafePointer<AVCodec>, width: Int, height: Int, configure: (UnsafeMutablePointer<AVCodecContext>) -> Void
    ) throws(TranscodeError) {
        guard let context, let frame else { throw .outOfMemory }
        context.pointee.width = Int32(width)
        context.pointee.height = Int32(height)
        context.pointee.pix_fmt = AV_PIX_FMT_YUV420P
        context.pointee.sample_aspect_ratio = AVRational(num: 1, den: 1)
        context.pointee.color_range = AVCOL_RANGE_MPEG
        context.pointee.colorspace = AVCOL_SPC_BT709
        context.pointee.color_primaries = AVCOL_PRI_BT709
        context.pointee.color_trc = AVCOL_TRC_BT709
        context.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
        configure(context)
        let opened = avcodec_open2(context, codec, nil)
        guard opened >= 0 else { throw .library(.openEncoder, code: opened) }

        frame.pointee.format = AV_PIX_FMT_YUV420P.rawValue
        frame.pointee.width = Int32(width)
        frame.pointee.height = Int32(height)
        frame.pointee.color_range = AVCOL_RANGE_MPEG
        frame.pointee.colorspace = AVCOL_SPC_BT709
        guard av_frame_get_buffer(frame, 0) >= 0 else { throw .outOfMemory }
    }

    func free() {
        var context = context
        var frame = frame
        var packet = packet
        av_packet_free(&packet)
        av_frame_free(&frame)
        avcodec_free_context(&context)
    }
}
