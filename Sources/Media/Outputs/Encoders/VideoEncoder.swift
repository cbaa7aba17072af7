internal import CMedia
internal import Glibc

/// Encodes 8-bit pictures with an encoder of libavcodec. Packets come out in decoding order. Their `pts` and `dts` are frame
/// indices, and `dts` is negative for packets that are decoded before the first frame is shown.
///
/// The planes of ``planes()`` persist from frame to frame, so only what changed needs to be written.
/// Not thread-safe; the encoder may start threads of its own.
final class VideoEncoder<Settings: EncoderSettings> {
    // Optional because an initialiser that fails must free what it has allocated.
    private var context: UnsafeMutablePointer<AVCodecContext>?
    private var frame: UnsafeMutablePointer<AVFrame>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    /// The number of frames so far.
    private var index: Int64 = 0
    /// See ``EncoderSettings/reordersFrames``.
    private let reordersFrames: Bool

    /// Opens the encoder.
    ///
    /// - Parameters:
    ///   - width: In pixels; even for H.264, like the height. The planes of libavcodec's frames have room for one more column and row.
    ///   - highestRate: The highest frame rate, in frames per second; the level may depend on it.
    ///   - pass: The pass to run; see ``EncoderSettings/hasTwoPasses``.
    /// - Throws: ``EncoderSettings/missing``, ``TranscodeError/failed(_:code:)`` or `outOfMemory`.
    init(
        width: Int, height: Int, highestRate: AVRational = AVRational(num: 25, den: 1), settings: Settings,
        siting: FramePlanes.Siting = .center, pass: EncoderPass = .only
    ) throws(TranscodeError) {
        reordersFrames = settings.reordersFrames
        guard let codec = avcodec_find_encoder_by_name(Settings.encoder) else { throw Settings.missing }
        context = avcodec_alloc_context3(codec)
        frame = av_frame_alloc()
        packet = av_packet_alloc()
        guard let context, let frame, packet != nil else { throw .outOfMemory }
        context.pointee.width = Int32(width)
        context.pointee.height = Int32(height)
        context.pointee.pix_fmt = settings.plane.format
        context.pointee.sample_aspect_ratio = AVRational(num: 1, den: 1)
        context.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
        settings.plane.tag(context)
        if siting == .left, case .color = settings.plane { context.pointee.chroma_sample_location = AVCHROMA_LOC_LEFT }
        settings.configure(context, highestRate: highestRate)
        switch pass {
        case .only: break
        case .first: context.pointee.flags |= AV_CODEC_FLAG_PASS1
        case .second(let statistics):
            context.pointee.flags |= AV_CODEC_FLAG_PASS2
            context.pointee.stats_in = av_strdup(statistics)
            guard context.pointee.stats_in != nil else { throw .outOfMemory }
        }
        let opened = settings.open(context, codec)
        guard opened >= 0 else { throw .library(.openEncoder, code: opened) }

        frame.pointee.format = context.pointee.pix_fmt.rawValue
        frame.pointee.width = context.pointee.width
        frame.pointee.height = context.pointee.height
        frame.pointee.color_range = context.pointee.color_range
        frame.pointee.colorspace = context.pointee.colorspace
        guard av_frame_get_buffer(frame, 0) >= 0 else { throw .outOfMemory }
        guard case .alpha = settings.plane else { return }
        let rows = (height + 1) / 2
        frame.pointee.data.1?.update(repeating: 128, count: rows * Int(frame.pointee.linesize.1))
        frame.pointee.data.2?.update(repeating: 128, count: rows * Int(frame.pointee.linesize.2))
    }

    deinit {
        av_packet_free(&packet)
        av_frame_free(&frame)
        // libavcodec expects the caller to free the statistics.
        av_free(context?.pointee.stats_in)
        avcodec_free_context(&context)
    }

    /// Returns the colour planes for the next frame. They hold the previous frame.
    func planes() throws(TranscodeError) -> FramePlanes {
        guard let planes = FramePlanes(try writableFrame()) else { throw .outOfMemory }
        return planes
    }

    /// Returns the alpha plane for the next frame. It holds that of the previous frame.
    func alphaPlane() throws(TranscodeError) -> FramePlanes.Alpha {
        let frame = try writableFrame()
        guard let samples = frame.pointee.data.0 else { throw .outOfMemory }
        return FramePlanes.Alpha(samples: samples, stride: Int(frame.pointee.linesize.0))
    }

    private func writableFrame() throws(TranscodeError) -> UnsafeMutablePointer<AVFrame> {
        // Encoders copy their input; if an encoder still holds a reference, this makes a copy.
        guard let frame, av_frame_make_writable(frame) >= 0 else { throw .outOfMemory }
        return frame
    }

    /// Encodes the planes as the next frame, and passes finished packets to `sink`.
    ///
    /// - Parameters:
    ///   - decodedInOrder: Whether the frame is decoded before all later ones. Has no effect on the first frame.
    ///   - steps: How much coarser than usual the frame is quantized, in steps of the encoder.
    func encode(
        decodedInOrder: Bool = false, coarserBy steps: Double = 0,
        _ sink: (UnsafeMutablePointer<AVPacket>) throws(TranscodeError) -> Void
    ) throws(TranscodeError) {
        guard let frame else { throw .outOfMemory }
        frame.pointee.pts = index * Settings.unitsPerFrame
        // The first frame is always a keyframe. If it is requested, libaom without lookahead also makes the second a keyframe.
        let isPredicted = reordersFrames && decodedInOrder && index > 0
        frame.pointee.pict_type = isPredicted ? AV_PICTURE_TYPE_P : AV_PICTURE_TYPE_NONE
        index += 1
        try setQuantizer(coarserBy: steps, of: frame)
        try send(frame, sink)
    }

    /// Sets how much coarser than usual a frame is quantized: 0 for not at all.
    private func setQuantizer(coarserBy steps: Double, of frame: UnsafeMutablePointer<AVFrame>) throws(TranscodeError) {
        av_frame_remove_side_data(frame, AV_FRAME_DATA_REGIONS_OF_INTEREST)
        guard steps > 0 else { return }
        let size = MemoryLayout<AVRegionOfInterest>.size
        guard let data = av_frame_new_side_data(frame, AV_FRAME_DATA_REGIONS_OF_INTEREST, size)?.pointee.data else {
            throw .outOfMemory
        }
        // libavcodec multiplies the offset by the number of quantizer steps for 8 bits.
        let offset = AVRational(num: Int32(steps * 1000), den: 51_000)
        let region = AVRegionOfInterest(
            self_size: UInt32(size), top: 0, bottom: frame.pointee.height, left: 0, right: frame.pointee.width, qoffset: offset)
        UnsafeMutableRawPointer(data).storeBytes(of: region, as: AVRegionOfInterest.self)
    }

    /// Ends the stream, and passes the remaining packets to `sink`.
    func finish(_ sink: (UnsafeMutablePointer<AVPacket>) throws(TranscodeError) -> Void) throws(TranscodeError) {
        try send(nil, sink)
    }

    /// Ends a first pass.
    ///
    /// - Returns: The second pass, with the statistics of the first.
    func finishFirstPass() throws(TranscodeError) -> EncoderPass {
        try finish { _ in }
        guard let statistics = context?.pointee.stats_out else { throw .failed(.encode, code: 0) }
        try HeapBuffer.check(bytes: 2 * strlen(statistics))
        return .second(statistics: String(cString: statistics))
    }

    private func send(
        _ frame: UnsafeMutablePointer<AVFrame>?, _ sink: (UnsafeMutablePointer<AVPacket>) throws(TranscodeError) -> Void
    ) throws(TranscodeError) {
        let sent = avcodec_send_frame(context, frame)
        guard sent >= 0 else { throw .library(.encode, code: sent) }
        while let packet {
            let received = avcodec_receive_packet(context, packet)
            if received == gifreel_averror_again || received == gifreel_averror_eof { return }
            guard received >= 0 else { throw .library(.encode, code: received) }
            defer { av_packet_unref(packet) }
            packet.pointee.pts /= Settings.unitsPerFrame
            packet.pointee.dts /= Settings.unitsPerFrame
            try sink(packet)
        }
    }

    /// Copies the stream's parameters for the container.
    func describe(_ parameters: UnsafeMutablePointer<AVCodecParameters>) throws(TranscodeError) {
        let copied = avcodec_parameters_from_context(parameters, context)
        guard copied >= 0 else { throw .library(.openMuxer, code: copied) }
    }
}

/// A pass of an encoder over all frames.
enum EncoderPass {
    /// Frames are encoded as they come.
    case only
    /// Frames are only examined; the result is that of ``VideoEncoder/finishFirstPass()``.
    case first
    /// The same frames are encoded with the statistics of the first pass, about 300 bytes per frame.
    case second(statistics: String)
}

extension AVPacket {
    /// The bytes, valid until the next call of the encoder.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: data, count: Int(size)) }
    /// Whether a decoder can start here.
    var isKey: Bool { flags & AV_PKT_FLAG_KEY != 0 }
}
