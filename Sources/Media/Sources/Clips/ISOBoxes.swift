/// Reads the boxes of an ISO base media file (ISO/IEC 14496-12 §4.2) that libavformat does not expose.
enum ISOBoxes {
    struct Box {
        let type: String
        let body: UnsafeRawBufferPointer
        /// Whether the data around the box ends before the box does.
        let isCutOff: Bool
    }

    /// The top-level box types of files. Bytes of another type that exceed the file are not a box; they follow the last box.
    static let topLevel: Set<String> = [
        "ftyp", "moov", "mdat", "moof", "meta", "free", "skip", "wide", "uuid", "udta", "pnot", "PICT", "junk", "pdin", "styp",
        "sidx",
        "ssix", "prft", "emsg", "mfra", "imda",
    ]

    /// Calls `body` for each box until it returns false. Data that is not a box ends the loop.
    ///
    /// - Returns: The bytes after the last box.
    @discardableResult static func forEach(
        in bytes: UnsafeRawBufferPointer, _ body: (Box) -> Bool
    ) -> UnsafeRawBufferPointer {
        var rest = bytes
        while rest.count >= 8 {
            var header = 8
            var size = UInt64(number(rest, 0))
            if size == 1 {
                guard rest.count >= 16 else { break }
                header = 16
                size = wide(rest, 8)
            } else if size == 0 {
                size = UInt64(rest.count)
            }
            guard size >= UInt64(header) else { break }
            let length = Int(min(size, UInt64(rest.count)))
            let box = Box(
                type: text(rest, 4), body: UnsafeRawBufferPointer(rebasing: rest[header..<max(header, length)]),
                isCutOff: size > UInt64(rest.count))
            guard body(box) else { break }
            rest = UnsafeRawBufferPointer(rebasing: rest[length...])
        }
        return rest
    }

    /// Returns the body of the first box of a type; nil if there is none.
    static func first(_ type: String, in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var found: UnsafeRawBufferPointer?
        forEach(in: bytes) { box in
            if box.type == type { found = box.body }
            return found == nil
        }
        return found
    }

    /// Returns the body of the box at a path of types, such as `mdia.minf`; nil if there is none.
    static func first(path: String, in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        path.split(separator: ".").reduce(bytes) { found, type in found.flatMap { first(String(type), in: $0) } }
    }

    /// Returns the 32-bit number at a position; 0 past the end.
    static func number(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> UInt32 {
        guard at >= 0, at + 4 <= bytes.count else { return 0 }
        return bytes.loadUnaligned(fromByteOffset: at, as: UInt32.self).bigEndian
    }

    /// Returns the 64-bit number at a position.
    static func wide(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> UInt64 {
        UInt64(number(bytes, at)) << 32 | UInt64(number(bytes, at + 4))
    }

    /// Returns the four-character code at a position; an empty string past the end.
    static func text(_ bytes: UnsafeRawBufferPointer, _ at: Int) -> String {
        guard at >= 0, at + 4 <= bytes.count else { return "" }
        return String(decoding: bytes[at..<at + 4], as: UTF8.self)
    }
}
