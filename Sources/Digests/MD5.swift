internal import CSystem

/// MD5 (RFC 1321), where a protocol demands it as a checksum.
package enum MD5 {
    /// The 16 bytes of the digest of `bytes`; nil if the policy of the machine's OpenSSL forbids MD5.
    package static func hash(_ bytes: [UInt8]) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: 16)
        var count: UInt32 = 0
        guard EVP_Digest(bytes, bytes.count, &digest, &count, EVP_md5(), nil) == 1, count == 16 else { return nil }
        return digest
    }
}
