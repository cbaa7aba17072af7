internal import CMedia

/// The frames of a clip in display order, read from its container without decoding pixels.
struct ClipIndex: Sendable {
    struct Frame: Sendable {
        /// The display time, in units of the track.
        let time: Int64
        /// The number of the packet in the track, from 1.
        let packet: Int
        /// The size of the packet in bytes.
        let size: Int
        /// The time at which it is shown, by the edits.
        var shown: Int64
        /// Whether decoding can begin with this frame.
        let isSync: Bool
        /// The duration in units of ``timescale``, set once all frames are known.
        var delay = 0
    }

    private(set) var frames: [Frame] = []
    /// Units per second of the delays.
    private(set) var timescale = FrameClock.timescale
    private(set) var isRounded = false
    private(set) var ending = AnimationEnding.complete
    /// The maximum number of frames decoded before a frame and shown after it.
    private(set) var reordering = 0
    /// Whether some block carries alpha as an addition (Matroska: `AlphaMode` 1, block addition 1).
    private(set) var hasAlpha = false
    /// The numbers of the packets whose pictures are not seen, because a later one has the same time.
    private(set) var unseen: Set<Int> = []

    /// Reads all packets of a track.
    ///
    /// - Throws: ``TranscodeError``: `tooLarge` for the number of frames or the duration of a clip.
    init(
        _ container: ClipContainer, _ stream: UnsafeMutablePointer<AVStream>, limits: MediaLimits
    ) throws(TranscodeError) {
        var allocated = av_packet_alloc()
        defer { av_packet_free(&allocated) }
        guard let packet = allocated else { throw .outOfMemory }
        container.select(stream)
        let isVP8 = stream.pointee.codecpar.pointee.codec_id == AV_CODEC_ID_VP8
        var earliest = Int64.max
        var last: (time: Int64, duration: Int64) = (.min, 0)
        var end: AnimationEnding?
        var packets: Int32 = 0
        var hidden = 0
        let mayHaveAlpha = container.matroska?.hasAlpha ?? false
        while true {
            end = container.read(packet, of: stream)
            if end != nil { break }
            packets += 1
            let time = packet.pointee.pts == gifreel_no_time ? packet.pointee.dts : packet.pointee.pts
            // Hidden pictures count too, because they are decoded.
            try limits.check(.frames, Int(packets))
            // The edit list hides pictures before the first shown one.
            if packet.pointee.flags & AV_PKT_FLAG_DISCARD != 0 {
                hidden += 1
                continue
            }
            guard time != gifreel_no_time else { continue }
            // The first picture is shown from the start, even if empty samples precede it.
            earliest = min(earliest, time)
            guard packet.pointee.size > 0 else { continue }
            if isVP8, let data = packet.pointee.data, data[0] & 0x10 == 0 { continue }
            if mayHaveAlpha, ClipStream.addition(of: packet) != nil { hasAlpha = true }
            let size = Int(packet.pointee.size)
            try frames.grow(by: Frame(time: time, packet: Int(packets), size: size, shown: time, isSync: packet.pointee.isKey))
            if time >= last.time { last = (time, packet.pointee.duration) }
        }
        reordering = Self.reordering(frames)
        frames.sort { ($0.time, $0.packet) < ($1.time, $1.packet) }
        removeUnseen()
        // Matroska has no index of all samples.
        let hasAll = container.format == .webm || packets >= avformat_index_get_entries_count(stream)
        // The alpha may be stored after all colours.
        let withAlpha = container.picturesWithAlpha
        let isWhole =
            end == .complete && !container.isCutOff && hasAll && !container.lacksSamples(of: stream) && withAlpha == nil
        if let withAlpha, frames.count > withAlpha { frames.removeLast(frames.count - withAlpha) }
        ending = isWhole ? .complete : .brokenOff
        // Frames shown between the last ones but decoded after them may be missing.
        if !isWhole, reordering > 0 { frames.removeLast(min(reordering, max(0, frames.count - 1))) }
        let boxes = container.boxes(of: stream)
        // The edit list of an image sequence states how often it is played.
        let edits = container.format == .avif ? nil : boxes?.edits
        if container.ignoresEdits, let edits, !edits.parts.isEmpty {
            let length = boxes?.length ?? 0
            let end = length > 0 ? earliest &+ length : last.time &+ last.duration
            let rest = show(edits.parts, until: end)
            try setDelays(stream.pointee.time_base, from: 0, last: rest, isClip: true, limits: limits)
            return
        }
        let length = lastDuration(
            container, stream, from: earliest, length: boxes?.length ?? 0, edits, ofPacket: last.duration,
            hasHidden: hidden > 0)
        // If an edit list begins with an empty edit, players show the first picture from the start.
        let begin = edits?.beginsEmpty ?? false ? container.start(of: stream) : nil
        let start = min(begin ?? .max, earliest)
        try setDelays(
            stream.pointee.time_base, from: start, last: length, isClip: container.format.isVideo, limits: limits)
    }

    /// Removes the frames before a time, and their durations.
    mutating func removeFrames(before time: Int64) { frames.removeAll { $0.time < time } }

    /// Keeps the frames that begin within the edits. A part of the track that no edit shows lengthens the frame before.
    ///
    /// - Parameter end: The end of the track.
    /// - Returns: The duration of the last frame.
    private mutating func show(_ parts: [ISOTrack.Part], until end: Int64) -> Int64 {
        var (kept, rest) = ([Frame](), frames[...])
        var (now, last): (Int64, Int64) = (0, 0)
        for part in parts {
            if let start = part.start {
                rest = rest.drop { $0.time < start }
                for var frame in rest.prefix(while: { $0.time < start + part.length }) {
                    frame.shown = now + frame.time - start
                    kept.append(frame)
                    rest.removeFirst()
                }
                last = now + max(0, min(part.length, end &- start))
            }
            now += part.length
        }
        frames = kept
        return max(0, last - (kept.last?.shown ?? 0))
    }

    /// Returns the reorder depth: the maximum number of frames that come before a frame and are shown after it.
    private static func reordering(_ frames: [Frame]) -> Int {
        // No codec reorders by more than 16 frames.
        let deepest = 16
        var depth = 0
        for index in frames.indices {
            let before = frames[max(0, index - 2 * deepest)..<index].count { $0.time > frames[index].time }
            depth = max(depth, before)
        }
        return min(depth, deepest)
    }

    /// Keeps the last of the frames with one time, as players do.
    private mutating func removeUnseen() {
        var kept: [Frame] = []
        kept.reserveCapacity(frames.count)
        for frame in frames {
            if let last = kept.last, last.time == frame.time { unseen.insert(kept.removeLast().packet) }
            kept.append(frame)
        }
        frames = kept
    }

    /// Returns the duration of the last frame, in units of the track; 0 if unknown.
    ///
    /// - Parameters:
    ///   - earliest: The time of the first sample that is not hidden.
    ///   - length: The duration of all samples in the sample table; 0 if they are in fragments.
    ///   - ofPacket: The distance between decoding times. It differs from the frame's duration if frames are reordered.
    ///   - hasHidden: Whether the edit list hides frames.
    private func lastDuration(
        _ container: ClipContainer, _ stream: UnsafeMutablePointer<AVStream>, from earliest: Int64, length: Int64,
        _ edits: ISOTrack.EditList?, ofPacket: Int64, hasHidden: Bool
    ) -> Int64 {
        guard let last = frames.last else { return 0 }
        let (before, overflow) = last.time.subtractingReportingOverflow(earliest)
        if overflow { return 0 }
        let base = stream.pointee.time_base
        // All ones mean an unknown duration (ISO/IEC 14496-12 §8.4.2), from which libavformat computes the last packet's.
        let isUnknown = stream.pointee.duration == Int64(UInt32.max)
        if ending == .complete {
            // The durations in the headers (`mdhd`, `tkhd`) may be wrong, and players do not use them.
            if length > 0 {
                let ofTable = !hasHidden ? length - before : reordering == 0 ? ofPacket : 0
                if let rest = Self.rest(ofTable, edits, after: before, base, hasHidden: hasHidden) { return rest }
            }
            // The headers count hidden pictures, too.
            let start = container.start(of: stream)
            let isStated = !isUnknown && !hasHidden && start != nil
            let (whole, tooLarge) = stream.pointee.duration.subtractingReportingOverflow(start ?? 0)
            if isStated, !tooLarge, whole > before { return whole - before }
            // The packet's duration may be the track's default. Sound may outlast the pictures.
            if isStated, container.isOnlyTrack || ofPacket <= 0, let whole = container.duration, base.num > 0 {
                let rest = whole * Double(base.den) / Double(base.num) - Double(last.time)
                if rest >= 1, rest < 1e15 { return Int64(rest.rounded()) }
            }
        }
        if !isUnknown, ofPacket > 0 { return ofPacket }
        return frames.count > 1 ? last.time - frames[frames.count - 2].time : 0
    }

    /// Returns the last frame's duration by the sample table, or by an edit list that ends earlier; nil if neither states it.
    ///
    /// If the edit begins within a frame, that frame is hidden, and the rest of its duration is added.
    private static func rest(
        _ ofTable: Int64, _ edits: ISOTrack.EditList?, after before: Int64, _ base: AVRational, hasHidden: Bool
    ) -> Int64? {
        let table = ofTable > 0 ? ofTable : nil
        guard let edits, edits.timescale > 0, base.num > 0 else { return table }
        /// Units of the track per unit of the movie. Edit lists are rounded to units of the movie.
        let unit = Double(base.den) / Double(base.num) / Double(edits.timescale)
        let ofEdits = Double(edits.shown) * unit - Double(before)
        if let table {
            let isRest = hasHidden && ofEdits > Double(table) + unit && ofEdits < 2 * Double(table)
            if !isRest && Double(table) <= ofEdits + unit { return table }
        }
        return (1..<1e15).contains(ofEdits) ? Int64(ofEdits.rounded()) : table
    }

    /// Sets the delays. They are exact unless they need a finer unit than microseconds.
    ///
    /// - Parameter start: The time from which the first frame is shown, in units of the track.
    private mutating func setDelays(
        _ base: AVRational, from start: Int64, last: Int64, isClip: Bool, limits: MediaLimits
    ) throws(TranscodeError) {
        guard let newest = frames.last else { return }
        let (numerator, denominator) = (Int(max(1, base.num)), Int(max(1, base.den)))
        // In hundredths, rounded up. Beyond all limits, the exact number does not matter.
        let seconds = (Double(newest.shown) - Double(start) + Double(last)) * Double(numerator) / Double(denominator)
        let hundredths = Int((min(max(0, seconds), 1e9) * 100 - 1e-6).rounded(.up))
        if isClip { try limits.check(.clipDuration, hundredths) }
        try limits.check(.duration, hundredths)
        guard seconds <= 1e9 else { throw .tooLarge(.duration, value: hundredths, maximum: limits.duration) }
        func fraction(_ index: Int) -> (Int, Int) {
            let end = index + 1 < frames.count ? frames[index + 1].shown : frames[index].shown &+ last
            let ticks = end &- (index == 0 ? start : frames[index].shown)
            let (units, overflow) = Int(max(0, ticks)).multipliedReportingOverflow(by: numerator)
            if overflow || units == 0 { return (overflow ? 0 : units, 1) }
            let common = greatestCommonDivisor(units, denominator)
            return (units / common, denominator / common)
        }
        var fractions = DelayFractions()
        for index in frames.indices {
            let (units, parts) = fraction(index)
            fractions.add(units, parts)
        }
        for index in frames.indices {
            let (units, parts) = fraction(index)
            let delay = fractions.units(units, parts)
            frames[index].delay = isClip ? delay : FrameClock.shownDelay(delay, timescale: fractions.timescale)
        }
        // A clip of one frame may have no duration.
        let lastIndex = frames.count - 1
        if isClip, frames[lastIndex].delay == 0 { frames[lastIndex].delay = fractions.timescale / 10 }
        (timescale, isRounded) = (fractions.timescale, fractions.isRounded)
    }
}
