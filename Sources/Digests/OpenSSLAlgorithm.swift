internal import COpenSSL

/// Algorithms of OpenSSL, each looked up once, because a look-up takes longer than the digest of a short text. Any thread may use
/// them.
enum OpenSSLAlgorithm {
    /// Ends the process if OpenSSL lacks it: without SHA-256, no object has a name.
    nonisolated(unsafe) static let sha256: OpaquePointer = {
        guard let algorithm = EVP_MD_fetch(nil, "SHA2-256", nil) else { fatalError("this OpenSSL has no SHA-256") }
        return algorithm
    }()
}
