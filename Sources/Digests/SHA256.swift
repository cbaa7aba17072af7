internal import CSystem

/// An incremental SHA-256 hash (FIPS 180-4), computed by OpenSSL.
///
/// A copy continues independently. Values may move between threads, but two threads must not use one value at the same time.
package struct SHA256: Sendable {
    /// The length of a digest in bytes.
    package static let byteCount = 32

    private var state: DigestState

    package init() {
        state = DigestState()
    }

    /// Returns the digest of `bytes`: ``byteCount`` bytes.
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

    /// Returns the digest of all bytes so far: ``byteCount`` bytes. More updates may follow.
    package func finalize() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.byteCount) { buffer, count in
            state.copy().finish(into: buffer)
            count = Self.byteCount
        }
    }
}

/// Owns an OpenSSL digest context. These OpenSSL calls fail only if memory is exhausted.
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

    /// Ends the process if memory is exhausted, as Swift's own allocations do.
    private static func allocate() -> OpaquePointer {
        guard let context = EVP_MD_CTX_new() else { fatalError("no memory for a digest") }
        return context
    }

    private func require(_ result: Int32) {
        precondition(result == 1, "OpenSSL cannot compute a digest")
    }
}

/// OpenSSL algorithms. Each is fetched once, because fetching takes longer than hashing a short text. Any thread.
enum OpenSSLAlgorithm {
    /// Ends the process if OpenSSL lacks SHA-256, without which no object has a name.
    nonisolated(unsafe) static let sha256: OpaquePointer = {
        guard let algorithm = EVP_MD_fetch(nil, "SHA2-256", nil) else { fatalError("this OpenSSL has no SHA-256") }
        return algorithm
    }()
}
