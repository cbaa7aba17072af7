internal import Crypto
package import SystemIO

/// The SHA-256 of a rendition's bytes, as they lie on disk and are sent.
package struct ContentDigest: DigestName {
    package let digest: Digest256

    package init(digest: Digest256) {
        self.digest = digest
    }

    /// Reads the whole file and digests it. Not for an I/O thread.
    package init(of file: SharedDescriptor) throws(SystemError) {
        self = try Self.measure(file).digest
    }

    /// The digest and the number of bytes it was made from, which are the file's length at that moment.
    package static func measure(_ file: SharedDescriptor) throws(SystemError) -> (digest: ContentDigest, length: Int) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: readSize, alignment: 16)
        defer { buffer.deallocate() }
        var hash = SHA256()
        var length = 0
        while true {
            let count = try file.read(into: buffer, at: length)
            if count == 0 { break }
            hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            length += count
        }
        return (ContentDigest(digest: Digest256(hash.finalize())), length)
    }

    /// Bytes read at a time: large enough that the calls cost nothing beside the hashing.
    private static let readSize = 256 * 1024
}
