package import Crypto

/// The 32 bytes of a SHA-256, kept as four words: equal by four comparisons, hashed by one.
///
/// The value under every name of the cache. The names themselves are types of their own (``SourceDigest``, ``ObjectID``,
/// ``AliasKey``, ``ContentDigest``), so that one is never passed where another belongs.
package struct Digest256: Hashable, Sendable {
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// Takes over the digest's bytes.
    package init(_ digest: SHA256.Digest) {
        self = digest.withUnsafeBytes { Digest256(checked: $0) }
    }

    /// The digest in `bytes`; nil when there are not exactly 32.
    package init?(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count == 32 else { return nil }
        self = bytes.withUnsafeBytes { Digest256(checked: $0) }
    }

    /// Reads 64 hexadecimal digits, lower case only, so that each digest has one spelling.
    package init?(hex: some StringProtocol) {
        guard let bytes = Hex.decode(hex.utf8), let digest = Digest256(bytes) else { return nil }
        self = digest
    }

    private init(checked bytes: UnsafeRawBufferPointer) {
        func word(_ index: Int) -> UInt64 {
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
        }
        words = (word(0), word(1), word(2), word(3))
    }

    /// The 32 bytes in order.
    package var bytes: [UInt8] {
        [words.0, words.1, words.2, words.3].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) }
        }
    }

    /// 64 lower-case hexadecimal digits.
    package var hex: String { Hex.encode(bytes) }

    /// The first eight bytes as a number: evenly spread, so it picks a shard or stands for the digest in a small set.
    package var prefix: UInt64 { words.0 }

    package static func == (left: Digest256, right: Digest256) -> Bool {
        left.words == right.words
    }

    /// One word is enough: the bytes of a SHA-256 are spread evenly as they are.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
    }
}
