internal import CSystem

/// The SHA-256 of bytes that arrive in pieces (FIPS 180-4), computed by OpenSSL.
///
/// A copy continues on its own. Values may move between threads, but two threads must not use one value at a time.
package struct SHA256: Sendable {
    /// Bytes of a digest.
    package static let byteCount = 32

    private var state: DigestState

    package init() {
        state = DigestState()
    }

    /// The digest of `bytes`: ``byteCount`` bytes.
    package static func hash(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finalize()
    }

    package mutating func update(_ bytes: some Sequence<UInt8>) {
        if bytes.withContiguousStorageIfAvailable({ update(UnsafeRawBufferPointer($0)) }) == nil {
            Array(bytes).withUnsafeBytes { update($0) }
        }
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        if !isKnownUniquelyReferenced(&state) { state = state.copy() }
        state.update(bytes)
    }

    /// The digest of everything so far: ``byteCount`` bytes. More may follow.
    package func finalize() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.byteCount) { buffer, count in
            state.copy().finish(into: buffer)
            count = Self.byteCount
        }
    }
}

/// Owns a context of OpenSSL. OpenSSL fails here without memory only.
private final class DigestState: @unchecked Sendable {
    private let context: OpaquePointer

    init() {
        context = Self.allocate()
        require(EVP_DigestInit_ex2(context, OpenSSLAlgorithm.sha256, nil))
    }

    private init(copying other: DigestState) {
        context = Self.allocate()
        require(EVP_MD_CTX_copy_ex(context, other.context))
    }

    deinit {
        EVP_MD_CTX_free(context)
    }

    func copy() -> DigestState { DigestState(copying: self) }

    func update(_ bytes: UnsafeRawBufferPointer) {
        require(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count))
    }

    func finish(into buffer: UnsafeMutableBufferPointer<UInt8>) {
        require(EVP_DigestFinal_ex(context, buffer.baseAddress, nil))
    }

    /// Ends the process if there is no memory, as an allocation of Swift does.
    private static func allocate() -> OpaquePointer {
        guard let context = EVP_MD_CTX_new() else { fatalError("no memory for a digest") }
        return context
    }

    private func require(_ result: Int32) {
        precondition(result == 1, "OpenSSL cannot compute a digest")
    }
}

/// Algorithms of OpenSSL, each looked up once, because a look-up takes longer than the digest of a short text. Any thread may use
/// them.
enum OpenSSLAlgorithm {
    /// Ends the process if OpenSSL lacks it: without SHA-256, no object has a name.
    nonisolated(unsafe) static let sha256: OpaquePointer = {
        guard let algorithm = EVP_MD_fetch(nil, "SHA2-256", nil) else { fatalError("this OpenSSL has no SHA-256") }
        return algorithm
    }()
}
