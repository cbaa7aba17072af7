internal import CMedia

/// Copies the H.264 stream of a clip that needs no encoding, without its sound and with the index in front.
///
/// Every picture is decoded once, so that a copy is as valid as an encoded video, and has the same times. Colours that the
/// stream does not specify stay unspecified: players show the copy like the clip.
struct ClipCopy {
    private let bytes: UnsafeRawBufferPointer
    private let format: SourceFormat
    /// The time of each picture in units of the track, in ascending order.
    private let shown: [Int64]
    private let reordering: Int
    private let units: AVCUnits

    /// - Parameter bytes: The whole file. It must stay valid for the lifetime of the copy.
    /// - Returns: Nil for a source that has to be encoded.
    init?(_ transcoder: Transcoder, _ bytes: UnsafeRawBufferPointer) throws(TranscodeError) {
        guard Self.asksForNothing(transcoder.options, of: bytes.count), let format = ClipReader.format(of: bytes),
            format == .mp4 || format == .mov
        else { return nil }
        let container = try ClipContainer(bytes, format)
        guard let track = container.color, Self.isFitting(container, track),
            ClipOrientation(track, in: container).isIdentity, let record = track.pointee.codecpar.pointee.extradata
        else { return nil }
        let index = try ClipIndex(container, track, limits: transcoder.limits)
        (self.bytes, self.format) = (bytes, format)
        (shown, reordering) = (index.frames.map(\.time), index.reordering)
        guard reordering == 0 || transcoder.options.bframes == .automatic else { return nil }
        units = AVCUnits(lengthSize: Int(record[4] & 3) + 1)
        guard index.ending == .complete, try hasFittingSamples(), try hasFittingPictures(transcoder.limits) else { return nil }
    }

    /// Whether the options leave the video unchanged. A file within `max_bytes` only shrinks without its sound.
    private static func asksForNothing(_ options: TranscodeOptions, of bytes: Int) -> Bool {
        if let most = options.maxBytes, bytes > most { return false }
        var others = options
        others.maxBytes = nil
        // A clip has no palette, so it has no palette dither.
        others.undither = TranscodeOptions().undither
        others.bframes = TranscodeOptions().bframes
        return others == TranscodeOptions()
    }

    /// Whether a track is H.264 with sides that 4:2:0 allows, and all its samples share one description, which contains their
    /// parameter sets (`avc1`, ISO/IEC 14496-15 §5.4.2).
    private static func isFitting(_ container: ClipContainer, _ track: UnsafeMutablePointer<AVStream>) -> Bool {
        let parameters = track.pointee.codecpar.pointee
        guard parameters.codec_id == AV_CODEC_ID_H264, parameters.extradata_size >= 7, let record = parameters.extradata,
            container.boxes(of: track)?.descriptions == ["avc1"]
        else { return false }
        return record[0] == 1 && H264Profile.playable.contains(record[1]) && parameters.width % 2 == 0
            && parameters.height % 2 == 0
    }

    /// Calls `body` with the number and the data of each packet until it returns false. Returns whether all packets were read.
    private func forEachPacket(
        _ body: (Int, UnsafeMutablePointer<AVPacket>) throws(TranscodeError) -> Bool
    ) throws(TranscodeError) -> Bool {
        let container = try ClipContainer(bytes, format)
        var allocated = av_packet_alloc()
        defer { av_packet_free(&allocated) }
        guard let packet = allocated else { throw .outOfMemory }
        guard let track = container.color else { return false }
        container.select(track)
        var count = 0
        while container.read(packet, of: track) == nil {
            guard try body(count, packet) else { return false }
            count += 1
        }
        return count == shown.count
    }

    /// Whether the samples begin with an IDR picture and have no parameter sets, which could replace those of the description.
    private func hasFittingSamples() throws(TranscodeError) -> Bool {
        try forEachPacket { (number, packet) throws(TranscodeError) in
            units.isWhole(
                UnsafeMutableBufferPointer(start: packet.pointee.data, count: Int(packet.pointee.size)), isFirst: number == 0)
        }
    }

    /// Decodes all pictures, and checks that they could come from the encoder: progressive 4:2:0 with square pixels, of one
    /// size, in an encoded video's colours or unspecified ones.
    private func hasFittingPictures(_ limits: MediaLimits) throws(TranscodeError) -> Bool {
        let container = try ClipContainer(bytes, format)
        guard let track = container.color else { return false }
        let stream = try ClipStream(container, track, .colors, reordering: reordering, limits: limits)
        let size = (track.pointee.codecpar.pointee.width, track.pointee.codecpar.pointee.height)
        for time in shown {
            guard case .frame(let frame) = try stream.picture(at: time) else { return false }
            let picture = frame.pointee
            guard picture.format == AV_PIX_FMT_YUV420P.rawValue, gifreel_is_interlaced(frame) == 0,
                (picture.width, picture.height) == size, ClipColorTags(frame, track, format).areThoseOfVideo,
                ClipOrientation.aspect(track, frame, in: container) == nil
            else { return false }
        }
        return true
    }

    /// Writes the copy. Returns nil if the packets do not follow the rules of ``MP4Muxer``; the file is empty then.
    func write(
        _ summary: AnimationSummary, to descriptor: Int32, _ progress: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult? {
        if let result = try copy(summary, to: descriptor, progress) { return result }
        try FileOutput.truncate(descriptor)
        return nil
    }

    private func copy(
        _ summary: AnimationSummary, to descriptor: Int32, _ progress: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult? {
        var timeline = Timeline(TimeOptions(), of: summary)
        let container = try ClipContainer(bytes, format)
        guard let times = times(&timeline, summary), let track = container.color else { return nil }
        var muxer = try MP4Muxer(descriptor: descriptor, timescale: timeline.timescale) { parameters throws(TranscodeError) in
            guard avcodec_parameters_copy(parameters, track.pointee.codecpar) >= 0 else { throw .outOfMemory }
            // The muxer chooses its own tag.
            parameters.pointee.codec_tag = 0
        }
        for time in times { muxer.expect(time: time) }
        progress.begin(total: shown.count)
        /// The number of packets decoded before the picture that is shown last.
        var countBeforeLast = 0
        let isWhole = try forEachPacket { (count, packet) throws(TranscodeError) in
            guard packet.pointee.size > 0, let number = number(of: packet), count > 0 || (packet.pointee.isKey && number == 0),
                number >= max(count - reordering, countBeforeLast)
            else { return false }
            guard av_packet_make_writable(packet) >= 0, let data = packet.pointee.data else { throw .outOfMemory }
            if number == shown.count - 1 { countBeforeLast = count }
            let size = units.removeUserData(UnsafeMutableBufferPointer(start: data, count: Int(packet.pointee.size)))
            av_shrink_packet(packet, Int32(size))
            (packet.pointee.pts, packet.pointee.dts) = (Int64(number), Int64(count - reordering))
            progress.enter(frame: count + 1)
            try muxer.append(packet)
            progress.leave()
            return true
        }
        guard isWhole else { return nil }
        let end = timeline.length
        let length = try muxer.finish(end: end)
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: summary.width, height: summary.height,
            frames: shown.count, samples: shown.count, duration: end, timescale: timeline.timescale,
            loopCount: summary.loopCount,
            bytes: length)
    }

    /// Returns the time of each picture, in units of the timeline; nil if a picture has no time of its own.
    private func times(_ timeline: inout Timeline, _ summary: AnimationSummary) -> [Int]? {
        var times: [Int] = []
        times.reserveCapacity(shown.count)
        for delay in summary.delays {
            guard let span = timeline.advance(by: delay), span.end - span.start <= Timeline.longestSample,
                let time = timeline.admit(span)
            else { return nil }
            times.append(time)
        }
        return times.count == shown.count ? times : nil
    }

    /// Returns the number of a packet's picture in display order; nil if the picture is not shown because an edit list hides
    /// it.
    private func number(of packet: UnsafeMutablePointer<AVPacket>) -> Int? {
        guard packet.pointee.flags & AV_PKT_FLAG_DISCARD == 0 else { return nil }
        let time = packet.pointee.pts == gifreel_no_time ? packet.pointee.dts : packet.pointee.pts
        var range = shown.startIndex..<shown.endIndex
        while let middle = range.isEmpty ? nil : range.lowerBound + range.count / 2 {
            if shown[middle] == time { return middle }
            range = shown[middle] < time ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return nil
    }
}
