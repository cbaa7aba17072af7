internal import Crypto
package import SystemIO

/// The SHA-256 of a source GIF's bytes.
package struct SourceDigest: DigestName {
    package let digest: Digest256

    package init(digest: Digest256) {
        self.digest = digest
    }

    /// The digest of bytes in memory.
    package init(of bytes: UnsafeRawBufferPointer) {
        var hash = SHA256()
        hash.update(bufferPointer: bytes)
        digest = Digest256(hash.finalize())
    }

    /// The digest of a whole file. Reads it all: not for an I/O thread.
    package init(of file: SharedDescriptor) throws(SystemError) {
        digest = try ContentDigest(of: file).digest
    }
}
