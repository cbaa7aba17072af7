/// A name that is a SHA-256: 32 bytes in memory and in the index, 64 lower-case hexadecimal digits in text.
package protocol DigestName: Hashable, Sendable, CustomStringConvertible {
    var digest: Digest256 { get }
    init(digest: Digest256)
}

extension DigestName {
    /// Reads 64 lower-case hexadecimal digits; nil for anything else.
    package init?(hex: some StringProtocol) {
        guard let digest = Digest256(hex: hex) else { return nil }
        self.init(digest: digest)
    }

    /// Takes 32 bytes; nil for any other count.
    package init?(bytes: some Collection<UInt8>) {
        guard let digest = Digest256(bytes) else { return nil }
        self.init(digest: digest)
    }

    /// The 32 bytes.
    package var bytes: [UInt8] { digest.bytes }

    /// 64 lower-case hexadecimal digits.
    package var description: String { digest.hex }
}
