internal import Digests
package import SystemIO

/// The name under which a request finds its rendition before anything has been fetched.
package struct AliasKey: DigestName {
    package let digest: Digest256

    package init(digest: Digest256) {
        self.digest = digest
    }

    /// SHA-256 over the source's canonical URL and the rendition's canonical text, each length-prefixed.
    package init(sourceURL: String, rendition: String) {
        var hash = FramedHash(purpose: "gifreel alias 1")
        hash.append(sourceURL)
        hash.append(rendition)
        digest = hash.finish()
    }
}

/// The id of a stored rendition: source bytes, format and options, and encoder version.
///
/// Two URLs with the same GIF have the same object. The id is part of public URLs (`/object/{id}.{ext}`).
package struct ObjectID: DigestName {
    package let digest: Digest256

    package init(digest: Digest256) {
        self.digest = digest
    }

    /// SHA-256 over the source's SHA-256, the rendition and the encoder's version, each length-prefixed.
    ///
    /// - Parameters:
    ///   - source: SHA-256 of the GIF's bytes.
    ///   - rendition: The canonical text of format and options; equal renditions must have equal texts.
    ///   - encoderVersion: Changes whenever the encoder's output may change.
    package init(source: SourceDigest, rendition: String, encoderVersion: String) {
        var hash = FramedHash(purpose: "gifreel object 1")
        hash.append(source.digest)
        hash.append(rendition)
        hash.append(encoderVersion)
        digest = hash.finish()
    }
}

/// The SHA-256 of a source GIF's bytes.
package struct SourceDigest: DigestName {
    package let digest: Digest256

    package init(digest: Digest256) {
        self.digest = digest
    }

    package init(of bytes: UnsafeRawBufferPointer) {
        var hash = SHA256()
        hash.update(bytes)
        digest = Digest256(hash)
    }

    /// Hashes the whole file. Blocks: not for an I/O thread.
    package init(of file: SharedDescriptor) throws(SystemError) {
        digest = try ContentDigest(of: file).digest
    }
}

/// The SHA-256 of a rendition's bytes, as they are stored and sent.
package struct ContentDigest: DigestName {
    package let digest: Digest256

    package init(digest: Digest256) {
        self.digest = digest
    }

    /// Hashes the whole file. Blocks: not for an I/O thread.
    package init(of file: SharedDescriptor) throws(SystemError) {
        self = try Self.measure(file).digest
    }

    /// The digest and the number of bytes that were hashed.
    package static func measure(_ file: SharedDescriptor) throws(SystemError) -> (digest: ContentDigest, length: Int) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: readSize, alignment: 16)
        defer { buffer.deallocate() }
        var hash = SHA256()
        var length = 0
        while true {
            let count = try file.read(into: buffer, at: length)
            if count == 0 { break }
            hash.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            length += count
        }
        return (ContentDigest(digest: Digest256(hash)), length)
    }

    /// Bytes per read: large enough that the system calls cost little compared with the hashing.
    private static let readSize = 256 * 1024
}

/// A SHA-256 over length-prefixed fields, so that no two lists of fields hash the same bytes.
struct FramedHash {
    private var hash = SHA256()

    /// - Parameter purpose: The first field, so that names of different kinds differ for the same fields.
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
        withUnsafeBytes(of: UInt64(bytes.count).bigEndian) { hash.update($0) }
        hash.update(bytes)
    }

    func finish() -> Digest256 {
        Digest256(hash)
    }
}
