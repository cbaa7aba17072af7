internal import CMedia

/// Decodes the pictures of one track of a clip. Not thread-safe.
final class ClipStream {
    /// The pictures to decode.
    enum Plane {
        case colors
        /// The alpha in block additions (Matroska, block addition 1).
        case additions
    }

    private let container: ClipContainer
    let stream: UnsafeMutablePointer<AVStream>
    private let plane: Plane
    private let limits: MediaLimits
    private let unseen: Set<Int>
    private var packets = 0
    // Optional because an initialiser that fails must free what it has allocated.
    private var context: UnsafeMutablePointer<AVCodecContext>?
    private var packet: UnsafeMutablePointer<AVPacket>?
    private var frame: UnsafeMutablePointer<AVFrame>?
    /// Whether ``frame`` is later than all times requested so far.
    private var isAhead = false
    private var isDraining = false
    /// The time of the sync sample at which decoding will resume; nil once the decoder has received it.
    private var awaitedSync: Int64?
    /// The times of the latest sync sample that the decoder has received, and of the one at which decoding last resumed.
    private var newestSync = Int64.min
    private var resumedSync = Int64.min
    /// The error for a picture that exceeds a limit.
    private var excess: TranscodeError?

    /// - Parameters:
    ///   - reordering: The maximum number of frames decoded before a frame and shown after it.
    ///   - unseen: The numbers of the packets whose pictures are left out, from 1.
    init(
        _ container: ClipContainer, _ stream: UnsafeMutablePointer<AVStream>, _ plane: Plane, reordering: Int,
        unseen: Set<Int> = [], limits: MediaLimits
    ) throws(TranscodeError) {
        self.container = container
        self.stream = stream
        self.plane = plane
        self.limits = limits
        self.unseen = unseen
        container.select(stream)
        guard let codec = Self.decoder(of: stream.pointee.codecpar.pointee.codec_id) else {
            throw .unsupported(container.format, .codec)
        }
        context = avcodec_alloc_context3(codec)
        packet = av_packet_alloc()
        frame = av_frame_alloc()
        guard let context, packet != nil, frame != nil,
            avcodec_parameters_to_context(context, stream.pointee.codecpar) >= 0
        else { throw .outOfMemory }
        // This leaves frames with only the tags of the stream. The tags of the container are known.
        context.pointee.color_primaries = AVCOL_PRI_UNSPECIFIED
        context.pointee.color_trc = AVCOL_TRC_UNSPECIFIED
        context.pointee.colorspace = AVCOL_SPC_UNSPECIFIED
        context.pointee.color_range = AVCOL_RANGE_UNSPECIFIED
        context.pointee.thread_count = 1
        context.pointee.pkt_timebase = stream.pointee.time_base
        context.pointee.has_b_frames = Int32(reordering)
        context.pointee.opaque = Unmanaged.passUnretained(self).toOpaque()
        context.pointee.get_buffer2 = { context, frame, flags in
            guard let context, let frame, let opaque = context.pointee.opaque else { return gifreel_averror_invalid }
            let stream = Unmanaged<ClipStream>.fromOpaque(opaque).takeUnretainedValue()
            guard stream.admits(frame) else { return gifreel_averror_invalid }
            return avcodec_default_get_buffer2(context, frame, flags)
        }
        let status = avcodec_open2(context, codec, nil)
        guard status >= 0 else {
            try ClipContainer.checkMemory(status)
            throw .corrupt(container.format, .header)
        }
    }

    deinit {
        avcodec_free_context(&context)
        av_packet_free(&packet)
        av_frame_free(&frame)
    }

    /// Returns the decoder for a codec; nil for unsupported codecs.
    static func decoder(of codec: AVCodecID) -> UnsafePointer<AVCodec>? {
        switch codec {
        case AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_VP8, AV_CODEC_ID_VP9: avcodec_find_decoder(codec)
        // libavcodec's own decoder of AV1 needs a graphics card.
        case AV_CODEC_ID_AV1:
            avcodec_find_decoder_by_name("libaom-av1") ?? avcodec_find_decoder_by_name("libdav1d")
        default: nil
        }
    }

    /// Whether a picture is within the limits. Called before its memory is allocated.
    private func admits(_ frame: UnsafeMutablePointer<AVFrame>) -> Bool {
        do throws(TranscodeError) {
            try limits.check(width: Int(frame.pointee.width), height: Int(frame.pointee.height))
            return true
        } catch {
            excess = error
            return false
        }
    }

    /// Returns the alpha of a packet; nil if it has none.
    static func addition(of packet: UnsafeMutablePointer<AVPacket>) -> UnsafeBufferPointer<UInt8>? {
        var size = 0
        guard let data = gifreel_packet_addition(packet, &size) else { return nil }
        return UnsafeBufferPointer(start: data, count: size)
    }

    /// Skips to a sync sample without decoding the pictures before it. Does nothing if the decoder already has it.
    func skip(to sync: Int64) {
        guard sync > newestSync, !isDraining else { return }
        avcodec_flush_buffers(context)
        isAhead = false
        awaitedSync = sync
    }

    enum Picture {
        /// Valid until the next call.
        case frame(UnsafeMutablePointer<AVFrame>)
        /// The stream has no picture at that time.
        case missing
        /// The picture cannot be decoded, or the file ends before it.
        case brokenOff
    }

    /// Decodes up to the picture at a time, which must be later than the times of earlier calls.
    ///
    /// - Throws: ``TranscodeError``: `tooLarge` or `outOfMemory`.
    func picture(at time: Int64) throws(TranscodeError) -> Picture {
        guard let frame else { return .brokenOff }
        while true {
            if !isAhead {
                av_frame_unref(frame)
                let received = avcodec_receive_frame(context, frame)
                if received == gifreel_averror_again {
                    guard try feed() else { return .brokenOff }
                    continue
                }
                if received == gifreel_averror_eof { return .missing }
                if let excess { throw excess }
                if received == gifreel_averror_nomem { throw .outOfMemory }
                guard received >= 0, frame.pointee.decode_error_flags == 0 || shownTime < resumedSync else {
                    return .brokenOff
                }
                isAhead = true
            }
            let shown = shownTime
            // Pictures before a sync sample may refer to skipped pictures.
            if shown < resumedSync {
                isAhead = false
                continue
            }
            if shown > time { return .missing }
            isAhead = false
            if shown == time { return .frame(frame) }
        }
    }

    /// The display time of the last received picture.
    private var shownTime: Int64 {
        guard let frame = frame?.pointee else { return .min }
        return frame.pts == gifreel_no_time ? frame.best_effort_timestamp : frame.pts
    }

    /// Sends the decoder the next packet, or the end. Returns whether either was sent.
    private func feed() throws(TranscodeError) -> Bool {
        guard let packet, !isDraining else { return false }
        while true {
            if container.read(packet, of: stream) != nil {
                isDraining = true
                // Draining returns the remaining whole pictures, even after a break.
                return avcodec_send_packet(context, nil) >= 0
            }
            packets += 1
            // The decoder takes a packet without data for the end.
            if packet.pointee.size == 0 { continue }
            if packet.pointee.pts == gifreel_no_time { packet.pointee.pts = packet.pointee.dts }
            if unseen.contains(packets) { packet.pointee.flags |= AV_PKT_FLAG_DISCARD }
            if let awaitedSync {
                guard packet.pointee.pts == awaitedSync else { continue }
                resumedSync = awaitedSync
                self.awaitedSync = nil
            }
            if packet.pointee.isKey { newestSync = max(newestSync, packet.pointee.pts) }
            if plane == .additions, !replaceByAddition(packet) { continue }
            let sent = avcodec_send_packet(context, packet)
            if let excess { throw excess }
            if sent == gifreel_averror_nomem { throw .outOfMemory }
            return sent >= 0
        }
    }

    /// Replaces the data of a packet by its alpha. Returns false if there is none.
    private func replaceByAddition(_ packet: UnsafeMutablePointer<AVPacket>) -> Bool {
        guard let addition = Self.addition(of: packet), let base = addition.baseAddress else { return false }
        // Padded because decoders read past the end.
        let padded = Int(AV_INPUT_BUFFER_PADDING_SIZE)
        guard let buffer = av_buffer_allocz(addition.count + padded) else { return false }
        buffer.pointee.data.update(from: base, count: addition.count)
        let (time, flags) = (packet.pointee.pts, packet.pointee.flags)
        av_packet_unref(packet)
        packet.pointee.buf = buffer
        packet.pointee.data = buffer.pointee.data
        packet.pointee.size = Int32(addition.count)
        (packet.pointee.pts, packet.pointee.flags) = (time, flags)
        return true
    }
}
