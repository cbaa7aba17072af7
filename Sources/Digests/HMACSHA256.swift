internal import CSystem

/// HMAC-SHA-256 message authentication codes (RFC 2104), computed by OpenSSL. Any thread.
package struct HMACSHA256: Sendable {
    private let key: [UInt8]

    /// - Parameter key: The shared secret, of any length.
    package init(key: some Sequence<UInt8>) {
        self.key = Array(key)
    }

    /// Returns the authentication code of `message`: ``SHA256/byteCount`` bytes.
    package func code(for message: some Sequence<UInt8>) -> [UInt8] {
        let message = Array(message)
        return [UInt8](unsafeUninitializedCapacity: SHA256.byteCount) { buffer, count in
            // HMAC interprets a null key pointer as the key of the previous call.
            let result = key.withUnsafeBytes { key in
                var none: UInt8 = 0
                return withUnsafePointer(to: &none) { empty in
                    HMAC(
                        OpenSSLAlgorithm.sha256, key.baseAddress ?? UnsafeRawPointer(empty), Int32(key.count), message,
                        message.count,
                        buffer.baseAddress, nil)
                }
            }
            precondition(result != nil, "OpenSSL cannot compute a code")
            count = SHA256.byteCount
        }
    }

    /// Whether `code` is the authentication code of `message`. Compares in constant time.
    package func isValid(_ code: some Sequence<UInt8>, for message: some Sequence<UInt8>) -> Bool {
        ConstantTime.areEqual(Array(code), self.code(for: message))
    }
}

/// Comparisons whose duration does not depend on the compared bytes.
package enum ConstantTime {
    /// Whether both arrays contain the same bytes. The lengths are not secret.
    package static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }
}
