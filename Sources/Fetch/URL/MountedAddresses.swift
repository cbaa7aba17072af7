internal import SystemIO

// Sources that only a mount can name, so that clients cannot get requests of their choice signed or arbitrary files read.

/// An object in S3, or a folder of objects.
package struct ObjectAddress: Sendable {
    /// `s3://bucket/key`, the key percent-encoded in the form that is signed.
    let canonical: String
    let bucket: String
    /// The URL of the bucket, which ends with a slash.
    let service: WebAddress
    /// The URL of the object.
    let address: WebAddress

    /// - Parameter text: `s3://bucket/key`, the key percent-encoded or not; a folder's key ends with a slash.
    /// - Throws: ``SourceURLError`` if the text names another bucket, or if the key contains a control character, a query, or
    ///   an empty, `.` or `..` segment, which servers would resolve.
    init(_ text: String, bucket: String, at service: WebAddress) throws(SourceURLError) {
        let start = "\(SourceURL.s3Scheme)\(bucket)/"
        let key = try Key.decode(text, after: start)
        // S3 keys are Unicode text.
        guard String(validating: key, as: UTF8.self) != nil else { throw .badCharacter }
        let encoded = PercentEncoding.encode(key, keepsSlashes: true)
        canonical = start + encoded
        self.bucket = bucket
        self.service = service
        address = try service.appending(encoded)
        guard canonical.utf8.count <= SourceURL.maxLength else { throw .tooLong(limit: SourceURL.maxLength) }
    }
}

/// A file or directory on this machine.
package struct FileAddress: Sendable {
    /// `file:///directory/path`, percent-encoded.
    let canonical: String
    /// An absolute path that ends with a slash.
    let directory: String
    /// The path below the directory, without a leading slash. The names of files need not be UTF-8.
    let path: [UInt8]
    /// The whole path in the form that rules compare.
    let comparable: SourcePath

    /// - Parameter text: `file:///directory/path`, the path percent-encoded or not.
    /// - Throws: ``SourceURLError`` if the text is not below the directory, or if the path breaks the rules for keys of S3.
    init(_ text: String, below directory: String) throws(SourceURLError) {
        let start = SourceURL.fileScheme + PercentEncoding.encode(directory, keepsSlashes: true)
        let path = try Key.decode(text, after: start)
        canonical = start + PercentEncoding.encode(path, keepsSlashes: true)
        self.directory = directory
        self.path = path
        comparable = SourcePath(String(canonical.dropFirst(SourceURL.fileScheme.count)))
        guard canonical.utf8.count <= SourceURL.maxLength else { throw .tooLong(limit: SourceURL.maxLength) }
    }

    /// The whole path, percent-encoded.
    var encodedPath: String { String(canonical.dropFirst(SourceURL.fileScheme.count)) }
}

/// The decoder of object keys and file paths.
private enum Key {
    /// Resolves the dot segments of the key that follows `start`, then decodes it.
    static func decode(_ text: String, after start: String) throws(SourceURLError) -> [UInt8] {
        guard text.utf8.starts(with: start.utf8) else { throw .unsupportedScheme }
        try SourceURL.checkText(text)
        let path = text.utf8.dropFirst(start.utf8.count).prefix { $0 != UInt8(ascii: "#") }
        guard !path.contains(UInt8(ascii: "?")) else { throw .malformed }
        let normalized = URLNormalization.normalizedPath("/\(Substring(path))")
        guard let key = PercentEncoding.decodedBytes(normalized.dropFirst()),
            !key.contains(where: { $0 < 0x20 || $0 == 0x7f })
        else { throw .badCharacter }
        let parts = key.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard (parts.last?.isEmpty == true ? parts.dropLast() : parts).allSatisfy({ !Self.unusable.contains(Array($0)) })
        else { throw .malformed }
        return key
    }

    /// Segments that servers would resolve.
    private static let unusable = [[], Array(".".utf8), Array("..".utf8)]
}
