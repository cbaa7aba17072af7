internal import SystemIO

/// The URL of a source, parsed once: the same value is the cache key, is checked, and is fetched.
///
/// Two values are equal if and only if their ``canonical`` forms are. Canonicalization is idempotent.
package enum SourceURL: Sendable {
    case web(WebAddress)
    indirect case object(ObjectAddress)
    case file(FileAddress)

    /// The longest accepted URL in bytes, both as given and in canonical form.
    package static let maxLength = 8192

    /// The scheme of objects in S3, with slashes.
    package static let s3Scheme = "s3://"
    /// The scheme of files on this machine, with slashes.
    package static let fileScheme = "file://"

    /// Parses a web address, the only source that a client can name.
    ///
    /// - Throws: ``SourceURLError`` for any other text; see ``WebAddress``.
    package init(_ text: String) throws(SourceURLError) {
        self = .web(try WebAddress(text))
    }

    /// Creates the URL of a folder of objects.
    ///
    /// - Parameters:
    ///   - text: `s3://bucket/prefix`, the prefix with or without percent-encoding.
    ///   - root: The URL of the bucket, which ends with a slash.
    package init(bucketFolder text: String, of bucket: String, at root: String) throws(SourceURLError) {
        self = .object(try ObjectAddress(text.hasSuffix("/") ? text : text + "/", bucket: bucket, at: WebAddress(root)))
    }

    /// Creates the URL of a directory on this machine.
    ///
    /// - Parameter path: An absolute path that ends with a slash, not encoded.
    package init(directory path: String) throws(SourceURLError) {
        self = .file(try FileAddress(Self.fileScheme + PercentEncoding.encode(path, keepsSlashes: true), below: path))
    }

    /// The form in which sources are compared and stored: the form of ``WebAddress``, `s3://bucket/key` or
    /// `file:///directory/path`.
    package var canonical: String {
        switch self {
        case .web(let address): address.canonical
        case .object(let object): object.canonical
        case .file(let file): file.canonical
        }
    }

    /// The text for URLs that clients use. It parses to an equal source, whose request is the same.
    package var text: String { if case .web(let address) = self { address.requestText } else { canonical } }

    /// The path of the request or the file, with normalized percent-encoding.
    package var path: String {
        switch self {
        case .web(let address): address.path
        case .object(let object): object.address.path
        case .file(let file): file.encodedPath
        }
    }

    /// The query in requests, without its question mark.
    package var query: String? { if case .web(let address) = self { address.query } else { nil } }

    /// The host to which requests go, in lower case and without brackets; `file` for a file.
    package var host: String { address?.host ?? "file" }

    /// The unit by which capacity is shared: the host, or the directory of a mount, since each directory may be on its own file system.
    package var origin: String { if case .file(let file) = self { file.directory } else { host } }

    /// The host and port, for which fetches are limited; `file` for a file.
    package var authority: String { address.map { "\($0.host):\($0.port)" } ?? "file" }

    /// Whether only a mount can name the source.
    package var isOfMount: Bool { if case .web = self { false } else { true } }

    /// The URL to which the request for the source goes; nil for a file.
    var address: WebAddress? {
        switch self {
        case .web(let address): address
        case .object(let object): object.address
        case .file: nil
        }
    }

    /// The path in the form that rules compare.
    var comparable: SourcePath {
        switch self {
        case .web(let address): address.comparable
        case .object(let object): object.address.comparable
        case .file(let file): file.comparable
        }
    }

    /// Returns the canonical form of a URL for purges, including URLs of S3 objects and files.
    package static func canonicalText(of text: String) throws(SourceURLError) -> String {
        func rest(after scheme: String) -> Substring? {
            let rest = Substring(text.utf8.dropFirst(scheme.utf8.count))
            return text[..<rest.startIndex].lowercased() == scheme ? rest : nil
        }
        if let rest = rest(after: fileScheme) {
            // The form does not depend on the directory.
            return try FileAddress(fileScheme + rest, below: "/").canonical
        }
        guard let rest = rest(after: s3Scheme) else { return try SourceURL(text).canonical }
        let bucket = String(Substring(rest.utf8.prefix { $0 != UInt8(ascii: "/") }))
        // The form does not depend on the service.
        return try ObjectAddress(s3Scheme + rest, bucket: bucket, at: WebAddress("http://localhost/")).canonical
    }

    /// Throws if the text is too long or contains a character that no URL contains. Spaces are permitted within it, since
    /// browsers and redirects of origins encode them.
    static func checkText(_ text: String) throws(SourceURLError) {
        guard text.utf8.count <= maxLength else { throw .tooLong(limit: maxLength) }
        guard text.utf8.first != 0x20, text.utf8.last != 0x20,
            text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "\\") })
        else { throw .badCharacter }
    }
}

extension SourceURL: Hashable, CustomStringConvertible {
    package static func == (left: SourceURL, right: SourceURL) -> Bool {
        left.canonical == right.canonical
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(canonical)
    }

    package var description: String { canonical }
}

/// The reason why a text is not the URL of a source. The description may be sent to the client that sent the text.
package enum SourceURLError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The URL is longer than `limit` bytes, as given or in canonical form.
    case tooLong(limit: Int)
    /// The URL contains a control character or a backslash, or begins or ends with a space.
    case badCharacter
    /// The URL begins with neither `http://` nor `https://`.
    case unsupportedScheme
    /// The URL contains a user name or password, even an empty one.
    case credentials
    /// The host is missing, or parsers may disagree about it.
    case badHost
    /// The port is not a number from 1 to 65535.
    case badPort
    /// The parser refuses the URL for another reason.
    case malformed

    package var description: String {
        switch self {
        case .tooLong(let limit): "The source URL is longer than \(limit) bytes."
        case .badCharacter: "The source URL contains a control character or a backslash, or begins or ends with a space."
        case .unsupportedScheme: "The source URL must begin with http:// or https://."
        case .credentials: "The source URL must not contain a user name or password."
        case .badHost: "The host of the source URL is missing or has an ambiguous form."
        case .badPort: "The port of the source URL is not a number from 1 to 65535."
        case .malformed: "The source URL cannot be parsed."
        }
    }
}
