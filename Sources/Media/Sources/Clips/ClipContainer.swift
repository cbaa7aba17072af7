internal import CMedia
internal import Glibc

/// A clip in memory, read by libavformat, and its tracks by their roles. Not thread-safe.
///
/// It reads only these bytes: libavformat is built without protocols, and files that a clip refers to cannot be opened.
final class ClipContainer {
    /// The maximum number of tracks in a container.
    static let maximumTracks = 64
    private static let bufferSize: Int32 = 32 * 1024

    let format: SourceFormat
    /// The video track of a Matroska file; nil for other formats.
    let matroska: MatroskaFile.Video?
    /// Whether the boxes or elements show that the file ends early. Samples past its end are not checked.
    let isCutOff: Bool

    private let bytes: UnsafeRawBufferPointer
    private let tracks: [ISOTrack]
    /// The bytes of a size that libavformat is to read as unknown.
    private let hiddenSize: Range<Int>
    /// Whether libavformat ignores the edit lists.
    let ignoresEdits: Bool
    private var position = 0
    // Optional because an initialiser that fails must free what it has allocated.
    private var context: UnsafeMutablePointer<AVFormatContext>?
    private var io: UnsafeMutablePointer<AVIOContext>?

    /// Opens the container and reads its header.
    ///
    /// - Parameter bytes: The whole file. It must stay valid for the container's lifetime.
    /// - Throws: ``TranscodeError``: `incomplete`, `corrupt`, `unsupported` or `outOfMemory`.
    init(_ bytes: UnsafeRawBufferPointer, _ format: SourceFormat) throws(TranscodeError) {
        self.format = format
        if format == .webm {
            let file = MatroskaFile(bytes)
            // libavformat 61 rejects it, too.
            if let video = file.video, video.isCutAway { throw .corrupt(format, .header) }
            (self.bytes, matroska, isCutOff, tracks) = (bytes, file.video, file.isCutOff, [])
            hiddenSize = file.hiddenSize ?? 0..<0
        } else {
            // libavformat rejects a file whose last fragment is cut off in its head.
            let end = ISOFile.end(of: bytes)
            self.bytes = UnsafeRawBufferPointer(rebasing: bytes[..<end.count])
            (matroska, isCutOff, tracks) = (nil, end.isCutOff, ISOTrack.all(in: bytes))
            hiddenSize = 0..<0
        }
        // The edit list of an image sequence states how often it is played, and hides nothing (AV1 image file format §6).
        ignoresEdits = format == .avif || tracks.contains { $0.hasEditsWithoutDuration || $0.edits?.parts.isEmpty == false }
        guard let demuxer = av_find_input_format(format == .webm ? "matroska" : "mov") else {
            throw .unsupported(format, .container)
        }
        guard let buffer = av_malloc(Int(Self.bufferSize)) else { throw .outOfMemory }
        io = gifreel_avio_alloc(
            buffer.assumingMemoryBound(to: UInt8.self), Self.bufferSize, 0, Unmanaged.passUnretained(self).toOpaque(),
            { ClipContainer.from($0)?.read($1, $2) ?? gifreel_averror(EINVAL) }, nil,
            { ClipContainer.from($0)?.seek($1, $2) ?? Int64(gifreel_averror(EINVAL)) })
        guard let io else {
            av_free(buffer)
            throw .outOfMemory
        }
        io.pointee.seekable = AVIO_SEEKABLE_NORMAL
        guard let opening = avformat_alloc_context() else { throw .outOfMemory }
        opening.pointee.pb = io
        opening.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
        opening.pointee.max_streams = Int32(Self.maximumTracks)
        opening.pointee.io_open = { _, _, _, _, _ in gifreel_averror(EACCES) }
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        if ignoresEdits { av_dict_set(&options, "ignore_editlist", "1", 0) }
        // `avformat_open_input` frees the context if it fails.
        var opened: UnsafeMutablePointer<AVFormatContext>? = opening
        let status = avformat_open_input(&opened, nil, demuxer, &options)
        guard status >= 0, let opened else {
            try Self.checkMemory(status)
            // libavformat refuses files for their encryption information, too.
            if tracks.contains(where: \.isEncrypted) { throw .unsupported(format, .encryption) }
            throw isCutOff ? .incomplete(format) : .corrupt(format, .header)
        }
        context = opened
    }

    /// Throws if memory is short. libav reports this even for a table size or a number of tracks that a file only claims.
    static func checkMemory(_ status: Int32) throws(TranscodeError) {
        // More than the index of any clip within the limits needs.
        if status == gifreel_averror_nomem { try HeapBuffer.check(bytes: 64 << 20) }
    }

    deinit {
        avformat_close_input(&context)
        if let io { av_freep(&io.pointee.buffer) }
        avio_context_free(&io)
    }

    private static func from(_ opaque: UnsafeMutableRawPointer?) -> ClipContainer? {
        opaque.map { Unmanaged<ClipContainer>.fromOpaque($0).takeUnretainedValue() }
    }

    private func read(_ target: UnsafeMutablePointer<UInt8>?, _ count: Int32) -> Int32 {
        let taken = min(Int(count), bytes.count - position)
        guard let target, taken > 0, let base = bytes.baseAddress else { return gifreel_averror_eof }
        UnsafeMutableRawPointer(target).copyMemory(from: base + position, byteCount: taken)
        // All ones mean an unknown size (RFC 8794 §6.2).
        for place in hiddenSize where (position..<position + taken).contains(place) {
            target[place - position] = place == hiddenSize.lowerBound ? 0xff >> UInt8(hiddenSize.count - 1) : 0xff
        }
        position += taken
        return Int32(taken)
    }

    private func seek(_ offset: Int64, _ whence: Int32) -> Int64 {
        let start: Int64
        switch whence & ~AVSEEK_FORCE {
        case SEEK_SET: start = 0
        case SEEK_CUR: start = Int64(position)
        case SEEK_END: start = Int64(bytes.count)
        case AVSEEK_SIZE: return Int64(bytes.count)
        default: return Int64(gifreel_averror(EINVAL))
        }
        let (sum, overflow) = start.addingReportingOverflow(offset)
        guard !overflow, (0...Int64(bytes.count)).contains(sum) else { return Int64(gifreel_averror(EINVAL)) }
        position = Int(sum)
        return sum
    }

    /// The video tracks, without covers and the still pictures of an AVIF.
    private var videos: [UnsafeMutablePointer<AVStream>] {
        guard let context else { return [] }
        return (0..<Int(context.pointee.nb_streams)).compactMap { context.pointee.streams[$0] }.filter {
            $0.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_VIDEO
                && $0.pointee.disposition & AV_DISPOSITION_ATTACHED_PIC == 0 && !Self.isItem($0.pointee)
        }
    }

    /// The track to show: the first that is enabled, not auxiliary and in a supported codec. An image sequence is shown even if
    /// its track is disabled, and so is a clip whose tracks are all disabled.
    var color: UnsafeMutablePointer<AVStream>? {
        // Cameras put previews in Motion JPEG in front of the video.
        let readable = videos.filter { ClipStream.decoder(of: $0.pointee.codecpar.pointee.codec_id) != nil }
        let videos = readable.isEmpty ? videos : readable
        let primary = videos.filter { !(boxes(of: $0)?.isAuxiliary ?? false) }
        let enabled = format == .avif ? nil : primary.first { boxes(of: $0)?.isEnabled ?? true }
        return enabled ?? primary.first ?? videos.first
    }

    /// The track with the alpha of ``color`` in an image sequence (ISO/IEC 23008-12 §7.5.3); nil if there is none.
    var alpha: UnsafeMutablePointer<AVStream>? {
        guard format == .avif, let color, let shown = boxes(of: color) else { return nil }
        return videos.first { other in
            guard other != color, let boxes = boxes(of: other), boxes.auxiliaryOf.contains(shown.number) else { return false }
            // Older files do not state the type.
            return boxes.auxiliaryType.map { Self.alphaTypes.contains($0) } ?? true
        }
    }

    private static let alphaTypes = ["urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", "urn:mpeg:hevc:2015:auxid:1"]

    /// Returns the properties from a track's boxes; nil in Matroska.
    func boxes(of stream: UnsafeMutablePointer<AVStream>) -> ISOTrack? {
        tracks.first { Int($0.number) == Int(stream.pointee.id) }
    }

    /// Returns the time from which a track's duration and its edits count, in units of the track: 0 unless its fragments begin
    /// later. Nil if the duration has other units.
    func start(of stream: UnsafeMutablePointer<AVStream>) -> Int64? {
        guard let boxes = boxes(of: stream) else { return 0 }
        return boxes.start(in: bytes, timescale: stream.pointee.time_base.den)
    }

    /// Whether some samples of a track are encrypted (ISO/IEC 23001-7 §4.1, RFC 9559 §5.1.4.1.31).
    func isEncrypted(_ stream: UnsafeMutablePointer<AVStream>) -> Bool {
        matroska?.isEncrypted ?? boxes(of: stream)?.isEncrypted ?? false
    }

    /// Whether a track has no colours but those of Dolby Vision, which other decoders show in green and purple: profile 5, and the
    /// profiles 10 and 20 without a compatible base layer (Dolby Vision streams within the ISO base media file format, 2.5).
    func needsDolbyVision(_ stream: UnsafeMutablePointer<AVStream>) -> Bool {
        var size = 0
        guard let data = gifreel_stream_side_data(stream, AV_PKT_DATA_DOVI_CONF, &size),
            size >= MemoryLayout<AVDOVIDecoderConfigurationRecord>.size
        else { return false }
        let record = UnsafeRawPointer(data).loadUnaligned(as: AVDOVIDecoderConfigurationRecord.self)
        return record.dv_bl_signal_compatibility_id == 0 && [5, 10, 20].contains(record.dv_profile)
    }

    /// Whether the index lists a sample past the end of the file.
    func lacksSamples(of stream: UnsafeMutablePointer<AVStream>) -> Bool {
        // Matroska has no index of all samples.
        format != .webm && samplesInFile(of: stream) < avformat_index_get_entries_count(stream)
    }

    /// The number of pictures with complete alpha if a separate alpha track breaks off; nil otherwise.
    var picturesWithAlpha: Int? {
        guard let alpha, lacksSamples(of: alpha) else { return nil }
        return Int(samplesInFile(of: alpha))
    }

    /// Returns the number of a stream's samples before the first one that the file lacks.
    private func samplesInFile(of stream: UnsafeMutablePointer<AVStream>) -> Int32 {
        gifreel_index_whole(stream, Int64(bytes.count))
    }

    /// Whether a stream is a still picture outside the tracks. FFmpeg 7 has streams without a duration for these, too.
    private static func isItem(_ stream: AVStream) -> Bool {
        stream.time_base.num == 1 && stream.time_base.den == 1 && stream.duration == gifreel_no_time
    }

    var isOnlyTrack: Bool { context?.pointee.nb_streams == 1 }

    /// The duration that the header states, in seconds; nil if it states none.
    var duration: Double? {
        guard let duration = context?.pointee.duration, duration > 0 else { return nil }
        return Double(duration) / Double(AV_TIME_BASE)
    }

    /// Restricts reading to packets of this track.
    func select(_ stream: UnsafeMutablePointer<AVStream>) {
        guard let context else { return }
        for index in 0..<Int(context.pointee.nb_streams) {
            guard let other = context.pointee.streams[index] else { continue }
            other.pointee.discard = other == stream ? AVDISCARD_DEFAULT : AVDISCARD_ALL
        }
    }

    /// Reads the next packet of the selected track.
    ///
    /// - Returns: Nil after a packet. If no whole packet is left, `complete`, or `brokenOff` if the file ends within a packet or the
    ///   container cannot be read further.
    func read(_ packet: UnsafeMutablePointer<AVPacket>, of stream: UnsafeMutablePointer<AVStream>) -> AnimationEnding? {
        while true {
            av_packet_unref(packet)
            let status = av_read_frame(context, packet)
            guard status >= 0 else { return status == gifreel_averror_eof ? .complete : .brokenOff }
            guard packet.pointee.stream_index == stream.pointee.index else { continue }
            return packet.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 ? .brokenOff : nil
        }
    }
}
