internal import CAV

/// Encodes pictures by an encoder of libavcodec whose packets come out in the order of showing: VP9 or AV1.
///
/// The encoder knows pictures by their numbers, not by their times, so nothing that it computes from times can be wrong or overflow.
/// Not thread-safe.
final class PlaneEncoder {
    /// What an encoder encodes.
    struct Stream {
        /// The encoder's name in libavcodec.
        var encoder: String
        /// The format that an error names.
        var output: OutputFormat
        /// In pixels; may be odd.
        var width: Int
        var height: Int
        var plane: Plane
        /// Of the colours.
        var transfer = Transfer.bt709
        /// Pictures per second at most, from which an encoder may conclude a level.
        var rate: Int
        /// Pictures between two from which decoders can start.
        var keyInterval: Int
        /// Options of the encoder by the names that libavcodec gives them.
        var options: [(name: String, value: String)]
    }

    enum Transfer {
        case bt709
        case sRGB
    }

    enum Plane {
        /// 4:2:0, BT.709, limited range.
        case color
        /// The full range of 8 bits as luma, with chroma that says nothing.
        case alpha
        /// The same without chroma.
        case monochromeAlpha
    }

    private let stream: Stream
    private var context: UnsafeMutablePointer<AVCodecContext>?
    private var frame: UnsafeMutablePointer<AVFrame>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    private var count: Int64 = 0

    /// Opens the encoder.
    ///
    /// - Throws: ``TranscodeError/encoderMissing(_:)``, ``TranscodeError/failed(_:code:)`` or `outOfMemory`.
    init(_ stream: Stream) throws(TranscodeError) {
        self.stream = stream
        guard let codec = avcodec_find_encoder_by_name(stream.encoder) else { throw .encoderMissing(stream.output) }
        context = avcodec_alloc_context3(codec)
        frame = av_frame_alloc()
        packet = av_packet_alloc()
        guard let context, let frame, packet != nil else { throw .outOfMemory }
        describe(context)
        let opened = avcodec_open2(context, codec, nil)
        guard opened >= 0 else { throw .library(.openEncoder, code: opened) }
        frame.pointee.format = context.pointee.pix_fmt.rawValue
        frame.pointee.width = context.pointee.width
        frame.pointee.height = context.pointee.height
        frame.pointee.color_range = context.pointee.color_range
        frame.pointee.colorspace = context.pointee.colorspace
        // Rows and columns are allocated to multiples of 32 or more: the even-sized planes of an odd-sized picture have room.
        guard av_frame_get_buffer(frame, 0) >= 0 else { throw .outOfMemory }
        if stream.plane == .alpha { fillChroma(frame) }
    }

    deinit {
        av_packet_free(&packet)
        av_frame_free(&frame)
        avcodec_free_context(&context)
    }

    private func describe(_ context: UnsafeMutablePointer<AVCodecContext>) {
        context.pointee.width = Int32(stream.width)
        context.pointee.height = Int32(stream.height)
        context.pointee.pix_fmt = stream.plane == .monochromeAlpha ? AV_PIX_FMT_GRAY8 : AV_PIX_FMT_YUV420P
        context.pointee.time_base = AVRational(num: 1, den: Int32(stream.rate))
        context.pointee.framerate = AVRational(num: Int32(stream.rate), den: 1)
        context.pointee.sample_aspect_ratio = AVRational(num: 1, den: 1)
        if stream.plane == .color {
            context.pointee.color_range = AVCOL_RANGE_MPEG
            context.pointee.colorspace = AVCOL_SPC_BT709
            context.pointee.color_primaries = AVCOL_PRI_BT709
            context.pointee.color_trc = stream.transfer == .sRGB ? AVCOL_TRC_IEC61966_2_1 : AVCOL_TRC_BT709
        } else {
            context.pointee.color_range = AVCOL_RANGE_JPEG
        }
        context.pointee.bit_rate = 0
        // Equal bounds keep the encoder from choosing: both planes then have the same key pictures.
        context.pointee.gop_size = Int32(stream.keyInterval)
        context.pointee.keyint_min = Int32(stream.keyInterval)
        context.pointee.thread_count = 1
        for option in stream.options {
            av_opt_set(context, option.name, option.value, AV_OPT_SEARCH_CHILDREN)
        }
    }

    private func fillChroma(_ frame: UnsafeMutablePointer<AVFrame>) {
        let rows = (stream.height + 1) / 2
        frame.pointee.data.1?.update(repeating: 128, count: rows * Int(frame.pointee.linesize.1))
        frame.pointee.data.2?.update(repeating: 128, count: rows * Int(frame.pointee.linesize.2))
    }

    /// The planes for the next picture. They hold the picture before.
    func planes() throws(TranscodeError) -> PixelConverter.Planes {
        // An encoder may hold a reference to its input; this then makes a copy.
        guard let frame, av_frame_make_writable(frame) >= 0, let luma = frame.pointee.data.0, let cb = frame.pointee.data.1,
            let cr = frame.pointee.data.2
        else { throw .outOfMemory }
        return PixelConverter.Planes(
            luma: luma, cb: cb, cr: cr, lumaStride: Int(frame.pointee.linesize.0),
            cbStride: Int(frame.pointee.linesize.1), crStride: Int(frame.pointee.linesize.2))
    }

    /// The plane for the alpha of the next picture. It holds that of the picture before.
    func alphaPlane() throws(TranscodeError) -> PixelConverter.AlphaPlane {
        guard let frame, av_frame_make_writable(frame) >= 0, let samples = frame.pointee.data.0 else { throw .outOfMemory }
        return PixelConverter.AlphaPlane(samples: samples, stride: Int(frame.pointee.linesize.0))
    }

    /// Encodes the planes as the next picture, and passes finished packets to `sink`.
    func encode(_ sink: (borrowing EncodedPacket) throws(TranscodeError) -> Void) throws(TranscodeError) {
        frame?.pointee.pts = count
        count += 1
        try send(frame, sink)
    }

    /// Ends the stream, and passes the remaining packets to `sink`.
    func finish(_ sink: (borrowing EncodedPacket) throws(TranscodeError) -> Void) throws(TranscodeError) {
        try send(nil, sink)
    }

    private func send(
        _ frame: UnsafeMutablePointer<AVFrame>?, _ sink: (borrowing EncodedPacket) throws(TranscodeError) -> Void
    ) throws(TranscodeError) {
        let sent = avcodec_send_frame(context, frame)
        guard sent >= 0 else { throw .library(.encode, code: sent) }
        while let packet {
            let received = avcodec_receive_packet(context, packet)
            if received == gifreel_averror_again || received == gifreel_averror_eof { return }
            guard received >= 0 else { throw .library(.encode, code: received) }
            defer { av_packet_unref(packet) }
            try sink(
                EncodedPacket(
                    bytes: UnsafeRawBufferPointer(start: packet.pointee.data, count: Int(packet.pointee.size)),
                    isKey: packet.pointee.flags & AV_PKT_FLAG_KEY != 0))
        }
    }
}

/// A packet of an encoder. The bytes are valid until the next call of the encoder.
struct EncodedPacket: ~Copyable {
    var bytes: UnsafeRawBufferPointer
    var isKey: Bool
}
