internal import CSystem

/// MD5 (RFC 1321), for protocols that require it as a checksum.
package enum MD5 {
    /// Returns the 16-byte digest of `bytes`; nil if the OpenSSL policy of this machine forbids MD5.
    package static func hash(_ bytes: [UInt8]) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: 16)
        var count: UInt32 = 0
        guard EVP_Digest(bytes, bytes.count, &digest, &count, EVP_md5(), nil) == 1, count == 16 else { return nil }
        return digest
    }
}
