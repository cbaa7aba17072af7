/// A box of an MP4 that has been read: its kind and its content (ISO/IEC 14496-12 §4.2).
struct MP4Box {
    let kind: String
    let content: ByteReader

    /// The boxes that fill `bytes` exactly.
    static func all(in bytes: ByteReader) throws(OutputFlaw) -> [MP4Box] {
        var bytes = bytes
        var boxes: [MP4Box] = []
        while !bytes.isAtEnd {
            let size = try bytes.number(4)
            let kind = String(decoding: try bytes.take(4), as: UTF8.self)
            guard size >= 8 else { throw .malformed }
            boxes.append(MP4Box(kind: kind, content: ByteReader(try bytes.take(size - 8))))
        }
        return boxes
    }

    /// The boxes inside this one.
    func children() throws(OutputFlaw) -> [MP4Box] {
        try Self.all(in: content)
    }

    /// The one box of a kind inside this one.
    func child(_ kind: String) throws(OutputFlaw) -> MP4Box {
        try Self.only(kind, in: try children())
    }

    /// The one box of a kind among some.
    static func only(_ kind: String, in boxes: [MP4Box]) throws(OutputFlaw) -> MP4Box {
        let found = boxes.filter { $0.kind == kind }
        guard found.count == 1 else { throw .missingPart }
        return found[0]
    }

    /// The content behind version and flags (§4.2, «FullBox»).
    func versioned() throws(OutputFlaw) -> (version: Int, content: ByteReader) {
        var content = content
        let version = try content.number(1)
        try content.skip(3)
        return (version, content)
    }
}
