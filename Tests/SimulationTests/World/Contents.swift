import Glibc

@testable import Renditions
@testable import Store

/// The contents of a source: which one it is, and its version.
struct SourceContents: Sendable, Equatable {
    let group: UInt8
    let version: UInt32

    /// The source's bytes.
    var bytes: [UInt8] {
        let count = 20 + Int(version) * 37 % 900
        return Array("GIF89a".utf8) + [group] + Number.bytes(version) + [UInt8](repeating: 1 + group, count: count)
    }

    init(group: UInt8, version: UInt32) {
        self.group = group
        self.version = version
    }

    /// Nil unless these are all bytes of a source.
    init?(_ bytes: [UInt8]) {
        guard bytes.count > 11, bytes.starts(with: "GIF89a".utf8), bytes[6] < UInt8.max else { return nil }
        self.init(group: bytes[6], version: Number.read(bytes[7..<11]))
        guard areEqual(self.bytes, bytes) else { return nil }
    }

    var digest: SourceDigest { bytes.withUnsafeBytes { SourceDigest(of: $0) } }
}

/// A rendition as a simulated worker writes it: it tells what it was made from, and by which conversion.
struct RenditionContents: Sendable, Equatable {
    let source: SourceContents
    /// The number of the conversion, from 1 on.
    let conversion: UInt32
    let text: String

    var bytes: [UInt8] {
        let head = [UInt8(ascii: "R"), source.group] + Number.bytes(source.version) + Number.bytes(conversion)
        let isLarge = conversion % 8 == 0
        let count = isLarge ? 40_000 + Int(conversion) * 101 % 80_000 : Int(conversion) * 61 % 3000
        return head + [UInt8(text.utf8.count)] + Array(text.utf8)
            + [UInt8](repeating: UInt8(1 + conversion % 255), count: count)
    }

    init(source: SourceContents, conversion: UInt32, text: String) {
        self.source = source
        self.conversion = conversion
        self.text = text
    }

    /// Nil unless these are all bytes of a rendition.
    init?(_ bytes: [UInt8]) {
        guard bytes.count > 11, bytes[0] == UInt8(ascii: "R"), bytes.count >= 11 + Int(bytes[10]) else { return nil }
        self.init(
            source: SourceContents(group: bytes[1], version: Number.read(bytes[2..<6])),
            conversion: Number.read(bytes[6..<10]),
            text: String(decoding: bytes[11..<11 + Int(bytes[10])], as: UTF8.self))
        guard areEqual(self.bytes, bytes) else { return nil }
    }
}

/// Compares large arrays quickly, also without optimization.
private func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && memcmp(left, right, left.count) == 0
}

private enum Number {
    static func bytes(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    static func read(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
}
