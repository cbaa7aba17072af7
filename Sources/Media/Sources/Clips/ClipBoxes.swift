/// The parts of a clip's container that libavformat does not show: brands, the loop count of an image sequence, and whether the file
/// ends early.
enum ClipBoxes {
    /// A box of an ISO base media file (ISO/IEC 14496-12 §4.2).
    struct Box {
        let type: Substring
        let body: UnsafeRawBufferPointer
        /// Whether the file or the box around it ends before the box does.
        let isCutOff: Bool
    }

    /// Calls `body` for each box until it returns false. Data that is not a box ends the loop.
    static func forEach(in bytes: UnsafeRawBufferPointer, _ body: (Box) -> Bool) {
        var rest = bytes[...]
        while rest.count >= 8 {
            let all = UnsafeRawBufferPointer(rebasing: rest)
            var header = 8
            var size = UInt64(number(all, 0))
            if size == 1 {
                guard rest.count >= 16 else { return }
                header = 16
                size = UInt64(number(all, 8)) << 32 | UInt64(number(all, 12))
            } else if size == 0 {
                size = UInt64(rest.count)
            }
            guard size >= UInt64(header) else { return }
            let length = Int(min(size, UInt64(rest.count)))
            let type = String(decoding: all[4..<8], as: UTF8.self)
            let box = Box(
                type: type[...], body: UnsafeRawBufferPointer(rebasing: all[header..<max(header, length)]),
                isCutOff: size > UInt64(rest.count))
            guard body(box) else { return }
            rest = rest.dropFirst(length)
        }
    }

    /// The body of the first box of a type; nil without one.
    static func first(_ type: String, in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var found: UnsafeRawBufferPointer?
        forEach(in: bytes) { box in
            if box.type == type { found = box.body }
            return found == nil
        }
        return found
    }

    /// Whether a file ends before what its outermost boxes or its segment announce.
    static func isCutOff(_ bytes: UnsafeRawBufferPointer, _ format: SourceFormat) -> Bool {
        if format == .webm { return isSegmentCutOff(bytes) }
        var isCutOff = false
        var end = 0
        forEach(in: bytes) { box in
            isCutOff = box.isCutOff
            if let base = bytes.baseAddress, let start = box.body.baseAddress { end = start - base + box.body.count }
            return true
        }
        // A few bytes of another box's header.
        return isCutOff || bytes.count < 8 || (1..<8).contains(bytes.count - end)
    }

    /// Whether a Matroska file ends within its header, or before its segment (RFC 8794, RFC 9559).
    private static func isSegmentCutOff(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let header = element(bytes, at: 0), let size = header.size else { return bytes.count < 12 }
        guard size < UInt64(bytes.count) else { return true }
        guard let segment = element(bytes, at: header.start + Int(size)) else { return true }
        guard let size = segment.size else { return false }
        return size > UInt64(bytes.count - segment.start)
    }

    /// The start of an EBML element's data and its size; a size of nil is unknown. Nil if there is no element.
    private static func element(_ bytes: UnsafeRawBufferPointer, at position: Int) -> (start: Int, size: UInt64?)? {
        guard position < bytes.count else { return nil }
        let at = position + max(1, bytes[position].leadingZeroBitCount + 1)
        guard at < bytes.count, bytes[at] != 0 else { return nil }
        let length = bytes[at].leadingZeroBitCount + 1
        guard at + length <= bytes.count else { return nil }
        let value = bytes[at..<at + length].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } & (UInt64(1) << UInt64(7 * length) - 1)
        return (at + length, value == UInt64(1) << UInt64(7 * length) - 1 ? nil : value)
    }

    static func number(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> UInt32 {
        guard at >= 0, at + 4 <= bytes.count else { return 0 }
        return bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self).bigEndian
    }

    // MARK: Recognition

    /// The format of a file by its first bytes; nil if they are not those of a clip.
    static func format(of bytes: UnsafeRawBufferPointer) -> SourceFormat? {
        if bytes.starts(with: [0x1a, 0x45, 0xdf, 0xa3]) { return .webm }
        guard bytes.count >= 8 else { return nil }
        let type = String(decoding: bytes[4..<8], as: UTF8.self)
        // QuickTime files of old programs begin with other boxes.
        guard type == "ftyp" else { return ["moov", "mdat", "wide"].contains(type) ? .mov : nil }
        guard bytes.count >= 12 else { return nil }
        switch String(decoding: bytes[8..<12], as: UTF8.self) {
        case "avif", "avis": return .avif
        case "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1", "jxl ", "crx ": return nil
        case "qt  ": return .mov
        default: return .mp4
        }
    }

    /// Whether an AVIF is a sequence, or ends before that is known.
    static func isSequence(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count < 12 || bytes[8..<12].elementsEqual("avis".utf8)
    }

    // MARK: Image sequences

    /// The repetitions after the first play of an image sequence, by the edit list of its first track: nil for none, 0 for endless.
    ///
    /// A track whose edit list repeats (flag 1, ISO/IEC 14496-12 §8.6.6) lasts for all plays. Browsers repeat one without an edit
    /// list endlessly.
    static func loopCount(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard let movie = first("moov", in: bytes), let track = first("trak", in: movie), let header = first("tkhd", in: track),
            let edits = first("edts", in: track), let list = first("elst", in: edits), list.count >= 20
        else { return 0 }
        guard list[3] & 1 == 1 else { return nil }
        let length = list[0] == 1 ? wide(list, 8) : UInt64(number(list, 8))
        let isWide = header.first == 1
        let duration = isWide ? wide(header, 28) : UInt64(number(header, 20))
        if duration == (isWide ? UInt64.max : UInt64(UInt32.max)) || length == 0 { return 0 }
        let (whole, rest) = duration.quotientAndRemainder(dividingBy: length)
        let plays = whole + (rest >= length - rest ? 1 : 0)
        return plays <= 1 ? nil : Int(min(plays - 1, UInt64(FactRange.loopCount.upperBound)))
    }

    /// Whether the colours of an image sequence are multiplied by its alpha (track reference `prem`).
    static func isPremultiplied(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let movie = first("moov", in: bytes) else { return false }
        var isFound = false
        forEach(in: movie) { box in
            if box.type == "trak", let references = first("tref", in: box.body), first("prem", in: references) != nil {
                isFound = true
            }
            return !isFound
        }
        return isFound
    }

    private static func wide(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> UInt64 {
        UInt64(number(bytes, at)) << 32 | UInt64(number(bytes, at + 4))
    }
}
