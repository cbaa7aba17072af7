package import Digests
internal import SystemIO

/// The 32 bytes of a SHA-256, stored as four words. Equality compares all four; hashing uses only the first.
///
/// The value of every name in the cache. The names are distinct types (``SourceDigest``, ``ObjectID``, ``AliasKey``,
/// ``ContentDigest``), so that the compiler distinguishes them.
package struct Digest256: Hashable, Sendable {
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// The digest of everything that was hashed.
    package init(_ hash: SHA256) {
        self = hash.finalize().withUnsafeBytes { Digest256(checked: $0) }
    }

    /// The digest in `bytes`; nil unless there are exactly 32.
    package init?(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count == 32 else { return nil }
        self = bytes.withUnsafeBytes { Digest256(checked: $0) }
    }

    private init(checked bytes: UnsafeRawBufferPointer) {
        func word(_ index: Int) -> UInt64 {
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
        }
        words = (word(0), word(1), word(2), word(3))
    }

    package var bytes: [UInt8] {
        [words.0, words.1, words.2, words.3].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) }
        }
    }

    /// The first eight bytes as a number. It is evenly distributed and selects a shard.
    package var prefix: UInt64 { words.0 }

    package static func == (left: Digest256, right: Digest256) -> Bool {
        left.words == right.words
    }

    /// One word is enough: the bytes of a SHA-256 are evenly distributed.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
    }
}

/// A name that is a SHA-256: 32 bytes in memory and in the database, 64 lower-case hexadecimal digits in text.
package protocol DigestName: Hashable, Sendable, CustomStringConvertible {
    var digest: Digest256 { get }
    init(digest: Digest256)
}

extension DigestName {
    /// Reads 64 lower-case hexadecimal digits; nil for anything else, so that each name has one spelling.
    package init?(hex: some StringProtocol) {
        guard let bytes = Hex.decode(hex.utf8) else { return nil }
        self.init(bytes: bytes)
    }

    /// Creates a name from 32 bytes; nil for any other count.
    package init?(bytes: some Collection<UInt8>) {
        guard let digest = Digest256(bytes) else { return nil }
        self.init(digest: digest)
    }

    package var bytes: [UInt8] { digest.bytes }

    package var description: String { Hex.encode(bytes) }
}
