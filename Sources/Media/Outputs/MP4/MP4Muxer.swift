internal import CMedia

/// Writes one video track into an MP4 whose index comes first, with libavformat and ``MP4Index``.
///
/// The first frame is decoded and shown at media time 0, so no edit list is needed, which a player could ignore, and the sample
/// durations add up to the animation's. The encoder requests that the packets before the second frame be decoded before time 0;
/// here they follow the first packet one unit apart. If the first frames last two units or less, one of them is decoded up to
/// two units late. Other packets keep the encoder's decoding times, which are not after their presentation times: VLC would
/// delay the whole video by the time that a frame is decoded late.
///
/// Only the packet of the last frame and those after it differ: each is decoded when the previous one has been shown, so that
/// the last frame's sample has the frame's own duration. Browsers end a video by this duration, and would otherwise cut the
/// last frame short. If this makes a frame late, its composition offset is negative (`ctts` version 1, ISO/IEC 14496-12
/// §8.6.1.3).
///
/// Not thread-safe.
struct MP4Muxer: ~Copyable {
    /// The amount by which decoding times are set back, so that libavformat sees none later than its composition time. It
    /// writes them relative to the first, so the amount is not in the file. Composition times differ from decoding times by
    /// less than the amount (``Timeline/longestSample``); the sum of both stays within 31 bits, as libavformat requires.
    private static let decodingLead: Int64 = 1 << 30
    /// The greatest composition offset that libavformat reads. If another is greater, it ignores all of them, and players show
    /// pictures in the order and at the times at which they are decoded.
    static let mostOffset = 1 << 28

    private let context: UnsafeMutablePointer<AVFormatContext>
    private let stream: UnsafeMutablePointer<AVStream>
    private let output: FileOutput
    private let timescale: Int
    /// The packets written so far if they will be repeated; otherwise nil.
    private var stored: [StoredPacket]?
    /// Packets that are held back, in decoding order: the last packet, and all packets from the one whose frame is shown last,
    /// because their times are known only at the end. Rarely more than four.
    private var waiting: [UnsafeMutablePointer<AVPacket>] = []
    /// The time of the last announced frame.
    private var newest: Int64 = 0
    /// The times of the announced frames, by index.
    private(set) var times = TimeWindow()
    /// The decoding time of the last appended packet, before ``decodingLead``; -1 before the first.
    private var decoding: Int64 = -1
    /// Whether the packets may not be in display order: those of H.264 with B-frames, and of another MP4.
    private let isReordered: Bool
    /// Whether packets are byte streams with start codes. Packets of another MP4 have lengths.
    private let hasStartCodes: Bool
    /// The levels that the packets allow.
    private var levels: H264Levels

    /// Opens the container in an empty, seekable file, and writes its header.
    ///
    /// - Parameter repeats: Whether ``finish(end:rounds:)`` will write several rounds.
    init(
        descriptor: Int32, timescale: Int = FrameClock.timescale, repeats: Bool = false,
        describe: (UnsafeMutablePointer<AVCodecParameters>) throws(TranscodeError) -> Void
    ) throws(TranscodeError) {
        var allocated: UnsafeMutablePointer<AVFormatContext>?
        let status = avformat_alloc_output_context2(&allocated, nil, "mp4", "")
        guard status >= 0, let context = allocated else { throw .library(.openMuxer, code: status) }
        let output = FileOutput(descriptor: descriptor)
        guard let stream = avformat_new_stream(context, nil), let io = output.makeWriter() else {
            avformat_free_context(context)
            throw .outOfMemory
        }
        context.pointee.pb = io
        context.pointee.flags |= AVFMT_FLAG_CUSTOM_IO | AVFMT_FLAG_BITEXACT
        context.pointee.avoid_negative_ts = 0
        stream.pointee.time_base = AVRational(num: 1, den: Int32(timescale))
        let (isReordered, hasStartCodes): (Bool, Bool)
        do {
            try describe(stream.pointee.codecpar)
            // Square pixels need no box.
            stream.pointee.codecpar.pointee.sample_aspect_ratio = AVRational(num: 0, den: 1)
            let isH264 = stream.pointee.codecpar.pointee.codec_id == AV_CODEC_ID_H264
            hasStartCodes = isH264 && stream.pointee.codecpar.pointee.extradata?.pointee != 1
            isReordered = isH264 && (!hasStartCodes || stream.pointee.codecpar.pointee.video_delay > 0)
            try Self.writeHeader(context, timescale)
        } catch {
            FileOutput.free(io)
            avformat_free_context(context)
            throw error
        }
        self.context = context
        self.stream = stream
        self.output = output
        self.timescale = timescale
        self.isReordered = isReordered
        self.hasStartCodes = hasStartCodes
        levels = H264Levels(timescale: timescale)
        stored = repeats ? [] : nil
    }

    deinit {
        if let io = context.pointee.pb { FileOutput.free(io) }
        avformat_free_context(context)
        for packet in waiting { Self.free(packet) }
    }

    private static func free(_ packet: UnsafeMutablePointer<AVPacket>) {
        var packet: UnsafeMutablePointer<AVPacket>? = packet
        av_packet_free(&packet)
    }

    private static func writeHeader(
        _ context: UnsafeMutablePointer<AVFormatContext>, _ timescale: Int
    ) throws(TranscodeError) {
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        av_dict_set(&options, "movflags", "negative_cts_offsets", 0)
        av_dict_set(&options, "use_editlist", "0", 0)
        av_dict_set(&options, "write_btrt", "0", 0)
        av_dict_set_int(&options, "video_track_timescale", Int64(timescale), 0)
        // The unit of the movie's own duration; the default, thousandths, cannot express a third of a second.
        if 1000 % timescale != 0 { av_dict_set_int(&options, "movie_timescale", Int64(timescale), 0) }
        let status = avformat_write_header(context, &options)
        guard status >= 0 else { throw .library(.openMuxer, code: status) }
    }

    /// Announces a frame, in display order, before its packet is appended.
    mutating func expect(time: Int) {
        newest = Int64(time)
        times.append(newest)
    }

    /// Appends the next packet in decoding order, with frame indices for times. Moves its contents away.
    mutating func append(_ packet: UnsafeMutablePointer<AVPacket>) throws(TranscodeError) {
        if decoding < 0 && hasStartCodes { dropUserData(packet) }
        guard let copy = av_packet_alloc() else { throw .outOfMemory }
        av_packet_move_ref(copy, packet)
        copy.pointee.pts = times[Int(copy.pointee.pts)]
        // The indices of the packets before the second frame are negative.
        let index = Int(copy.pointee.dts)
        decoding = index < 0 ? decoding + 1 : max(decoding + 1, times[index])
        times.removeFirst(upTo: index)
        // AV1's temporal units are decoded in display order. Without composition offsets, libavformat writes no `ctts`.
        copy.pointee.dts = isReordered ? decoding - Self.decodingLead : copy.pointee.pts
        copy.pointee.stream_index = 0
        waiting.append(copy)
        while waiting.count > 1 && waiting[0].pointee.pts < newest {
            try write(waiting.removeFirst(), duration: 0)
        }
    }

    /// Writes the last packets, the remaining rounds and the index.
    ///
    /// - Parameters:
    ///   - end: The end of the animation: the last frame's sample lasts until then, and the next round begins.
    ///   - rounds: The number of times that the file contains the animation.
    /// - Returns: The file's length in bytes.
    mutating func finish(end: Int, rounds: Int = 1) throws(TranscodeError) -> Int {
        // The track's length is the latest end of a packet. A sample's duration is the distance to the next decoding time; for
        // the last sample, it is the packet's duration. The waiting packets are those of the frames that are shown last,
        // without a gap: every frame decoded after the last one is shown after all frames decoded before it. So their durations
        // fill the time from the first of these frames to the end, in any order.
        let shown = waiting.map(\.pointee.pts).sorted() + [Int64(end)]
        var next = shown[0]
        while !waiting.isEmpty {
            let packet = waiting.removeFirst()
            let duration = (shown.first { $0 > packet.pointee.pts } ?? Int64(end)) - packet.pointee.pts
            if isReordered { packet.pointee.dts = next - Self.decodingLead }
            next += duration
            try write(packet, duration: duration)
        }
        for round in 1..<max(1, rounds) { try repeatAll(after: Int64(round) * Int64(end)) }
        let status = av_write_trailer(context)
        guard status >= 0 else { throw .library(.mux, code: status) }
        avio_flush(context.pointee.pb)
        let failure = context.pointee.pb.pointee.error
        guard failure >= 0 else { throw .library(.write, code: failure) }
        // A copied stream keeps its own level.
        let level = hasStartCodes ? levels.lowest : nil
        return try MP4Index(of: output.descriptor, length: Int(output.length)).moveToFront(level: level)
    }

    private mutating func write(_ packet: UnsafeMutablePointer<AVPacket>, duration: Int64) throws(TranscodeError) {
        defer { Self.free(packet) }
        packet.pointee.duration = duration
        let timeBase = AVRational(num: 1, den: Int32(timescale))
        av_packet_rescale_ts(packet, timeBase, stream.pointee.time_base)
        let position = avio_tell(context.pointee.pb)
        let status = av_write_frame(context, packet)
        guard status >= 0 else { throw .library(.mux, code: status) }
        let size = Int(avio_tell(context.pointee.pb) - position)
        levels.add(bytes: size, at: packet.pointee.dts)
        try stored?.grow(
            by: StoredPacket(
                position: position, size: size, presentation: packet.pointee.pts, decoding: packet.pointee.dts,
                duration: duration, flags: packet.pointee.flags))
    }

    /// Writes all packets again, with their times shifted by `time`. Reads the data from the file: memory holds one packet.
    private mutating func repeatAll(after time: Int64) throws(TranscodeError) {
        avio_flush(context.pointee.pb)
        guard let copy = av_packet_alloc() else { throw .outOfMemory }
        defer { Self.free(copy) }
        for packet in stored ?? [] {
            guard av_new_packet(copy, Int32(packet.size)) >= 0, let data = copy.pointee.data else { throw .outOfMemory }
            defer { av_packet_unref(copy) }
            let bytes = UnsafeMutableBufferPointer(start: data, count: packet.size)
            try output.read(at: packet.position, into: UnsafeMutableRawBufferPointer(bytes))
            // The H.264 track's parameters have start codes, so the muxer expects start codes.
            guard !hasStartCodes || AnnexB.replaceLengths(bytes) else { throw .failed(.mux, code: gifreel_averror(EILSEQ)) }
            copy.pointee.pts = packet.presentation + time
            copy.pointee.dts = packet.decoding + time
            copy.pointee.duration = packet.duration
            copy.pointee.flags = packet.flags
            copy.pointee.stream_index = 0
            let status = av_write_frame(context, copy)
            guard status >= 0 else { throw .library(.mux, code: status) }
            levels.add(bytes: packet.size, at: packet.decoding + time)
        }
    }

    /// Removes the encoder's description of itself (SEI, user data) from the first packet: players have no use for it.
    private func dropUserData(_ packet: UnsafeMutablePointer<AVPacket>) {
        guard let data = packet.pointee.data else { return }
        let kept = AnnexB.removeSupplementalInformation(
            UnsafeMutableBufferPointer(start: data, count: Int(packet.pointee.size)))
        av_shrink_packet(packet, Int32(kept))
    }
}

/// The position of a packet's data in the file and its times in units of the track, so that it can be written again.
struct StoredPacket {
    var position: Int64
    var size: Int
    var presentation: Int64
    var decoding: Int64
    var duration: Int64
    var flags: Int32
}

/// The times of consecutive frames by index, in a ring that grows to the largest number of frames between two removals.
struct TimeWindow {
    private var ring: [Int64] = Array(repeating: 0, count: 64)
    /// The index of the oldest frame.
    private var first = 0
    private(set) var count = 0

    mutating func append(_ time: Int64) {
        if count == ring.count {
            var larger = Array(repeating: Int64(0), count: 2 * count)
            for index in first..<first + count { larger[index % larger.count] = ring[index % count] }
            ring = larger
        }
        ring[(first + count) % ring.count] = time
        count += 1
    }

    /// The time of a frame that was appended and not removed.
    subscript(index: Int) -> Int64 {
        precondition((first..<first + count).contains(index), "a packet without a frame")
        return ring[index % ring.count]
    }

    /// Removes the frames before `index`.
    mutating func removeFirst(upTo index: Int) {
        let removed = min(count, max(0, index - first))
        first += removed
        count -= removed
    }
}
