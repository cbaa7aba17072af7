internal import Crypto

/// A SHA-256 over several fields, each with its length before it, so that no two lists of fields give the same bytes.
struct FramedHash {
    private var hash = SHA256()

    /// - Parameter purpose: Set first, so that names of different kinds made from the same fields differ.
    init(purpose: String) {
        append(purpose)
    }

    mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    mutating func append(_ digest: Digest256) {
        digest.bytes.withUnsafeBytes { append($0) }
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        withUnsafeBytes(of: UInt64(bytes.count).bigEndian) { hash.update(bufferPointer: $0) }
        hash.update(bufferPointer: bytes)
    }

    func finish() -> Digest256 {
        Digest256(hash.finalize())
    }
}
