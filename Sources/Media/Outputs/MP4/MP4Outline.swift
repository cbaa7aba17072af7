/// The top-level boxes of an ISO base media file, which fill it exactly (ISO/IEC 14496-12 §4.2).
struct MP4Outline {
    /// Returns the largest size of a part that is read, other than data, in bytes.
    ///
    /// An index has up to 44 bytes per sample: duration, offset and size of the sample, chunk, run and keyframe number.
    static func largestPart(samples: Int) -> Int { min(1 << 30, (64 << 10) + 64 * samples) }

    /// The parts in order.
    let parts: [(kind: String, range: Range<Int>)]
    private let bytes: OutputBytes
    private let largestPart: Int

    /// - Parameter samples: The claimed number of samples, on which the size of the index depends.
    /// - Throws: `wrongSignature` if the file does not begin with `ftyp`; `malformed` if the parts do not fill it.
    init(_ bytes: OutputBytes, samples: Int) throws(OutputFlaw) {
        var parts: [(kind: String, range: Range<Int>)] = []
        var position = 0
        while position < bytes.count {
            // At most the few expected parts, so the loop is short for any file.
            guard position + 16 <= bytes.count, parts.count < 8 else { throw .malformed }
            var head = try bytes.read(position..<position + 16)
            var size = try head.number(4)
            let kind = String(decoding: try head.take(4), as: UTF8.self)
            if parts.isEmpty && kind != "ftyp" { throw .wrongSignature }
            var begin = position + 8
            if size == 1 {
                // A 64-bit size, whose first bit would make it negative.
                guard try head.number(1) == 0 else { throw .malformed }
                size = try head.number(7)
                begin += 8
            }
            guard size >= begin - position, size <= bytes.count - position else { throw .malformed }
            parts.append((kind, begin..<position + size))
            position += size
        }
        self.parts = parts
        self.bytes = bytes
        largestPart = Self.largestPart(samples: samples)
    }

    func range(of kind: String) throws(OutputFlaw) -> Range<Int> {
        guard let part = parts.first(where: { $0.kind == kind }) else { throw .missingPart }
        return part.range
    }

    /// Reads the contents of a part into memory.
    func contents(of kind: String) throws(OutputFlaw) -> ByteReader {
        let range = try range(of: kind)
        guard range.count <= largestPart else { throw .malformed }
        return try bytes.read(range)
    }
}
