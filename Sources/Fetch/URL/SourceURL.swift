internal import SystemIO

/// The URL of a source, parsed once: the same value is the cache key, is checked, and is fetched.
///
/// Two values are equal if and only if their ``canonical`` forms are. The canonical form of a canonical form is itself.
package struct SourceURL: Sendable {
    package enum Scheme: String, Sendable {
        case http, https

        /// 80 or 443.
        package var defaultPort: Int { self == .http ? 80 : 443 }
    }

    /// The longest accepted URL in bytes, both as given and in canonical form.
    package static let maxLength = 8192

    /// `scheme://host[:port]/path[?query]`: scheme and host in lower case, no default port, no dot segments, no fragment, no
    /// empty query, an international name as `xn--…`, an address in its canonical form, percent-encoding in upper case.
    package let canonical: String
    package let scheme: Scheme
    /// The port to connect to: the given one or the scheme's default.
    package let port: Int
    /// The path with normalized percent-encoding; it begins with a slash.
    package let path: String
    /// The query without its question mark. Only bytes that a URL must not contain are encoded; all others are as given.
    package let query: String?
    /// The bucket of an object in S3, whose canonical form is `s3://bucket/key`; nil for all other sources. Only a mount can name
    /// such a source, so that clients cannot have requests of their own signed.
    package let bucket: String?
    /// The path below the directory of a file of this machine, whose canonical form is `file:///directory/path`; nil for all other
    /// sources. Only a mount can name such a source.
    let file: FilePlace?

    /// A file below a directory.
    struct FilePlace: Sendable, Equatable {
        /// An absolute path that ends with a slash.
        let directory: String
        /// Without a slash at its beginning.
        let path: String
    }

    /// Whether only a mount can name the source.
    package var isOfMount: Bool { bucket != nil || file != nil }

    let hostName: HostName
    /// The URL to fetch: ``canonical`` with the query as given, because some origins sign its exact text. An object in S3 has the URL
    /// of its service.
    let requestText: String

    /// The text for addresses that clients use: it leads to an equal source, and is fetched as this one is.
    package var text: String { isOfMount ? canonical : requestText }

    /// The host in lower case; an IPv6 address without brackets.
    package var host: String { hostName.text }

    /// Parses `text` and brings it to canonical form.
    ///
    /// - Throws: ``SourceURLError`` for other schemes, credentials, control characters, spaces, hosts with an ambiguous
    ///   spelling (`%31`, `1.2.3.08`), and URLs over ``maxLength``.
    package init(_ text: String) throws(SourceURLError) {
        guard text.utf8.count <= Self.maxLength else { throw .tooLong(limit: Self.maxLength) }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "\\") }) else { throw .badCharacter }
        let parsed = try CurlURL(try Self.decodingHost(of: text))
        guard let scheme = parsed.scheme().flatMap({ Scheme(rawValue: $0.lowercased()) }) else { throw .unsupportedScheme }
        guard parsed.zone() == nil, let host = parsed.host().flatMap(HostName.init) else { throw .badHost }
        guard let port = parsed.port().flatMap({ Int($0) }), (1...65535).contains(port) else { throw .badPort }
        let path = URLNormalization.normalizedPath(parsed.path() ?? "/")
        let query = parsed.query().flatMap { $0.isEmpty ? nil : URLNormalization.normalizedQuery($0) }

        let authority = port == scheme.defaultPort ? host.inURL : "\(host.inURL):\(port)"
        let start = "\(scheme.rawValue)://\(authority)\(path)"
        requestText = start + (query.map { "?\($0)" } ?? "")
        canonical = query.map { "\(start)?\(URLNormalization.withUpperCaseTriplets($0))" } ?? requestText
        self.scheme = scheme
        self.hostName = host
        self.port = port
        self.path = path
        self.query = query
        bucket = nil
        file = nil
        guard canonical.utf8.count <= Self.maxLength else { throw .tooLong(limit: Self.maxLength) }
        // libcurl fetches this text, so it has to parse it to the same URL.
        guard try CurlURL(requestText).text() == requestText else { throw .malformed }
    }

    /// The scheme of objects in S3, with its slashes.
    package static let s3Scheme = "s3://"

    /// The URL of an object, or of a prefix that ends with a slash.
    ///
    /// - Parameters:
    ///   - text: `s3://bucket/key`, the key with or without percent-encoding.
    ///   - root: The URL of the bucket, which ends with a slash.
    /// - Throws: ``SourceURLError`` for another bucket's text, and for a key with a part that is empty, `.` or `..`, which servers
    ///   would resolve, with control characters, or with a query.
    package init(s3 text: String, bucket: String, at root: SourceURL) throws(SourceURLError) {
        let start = "\(Self.s3Scheme)\(bucket)/"
        guard text.hasPrefix(start) else { throw .unsupportedScheme }
        // The path is encoded as it is signed.
        let encoded = PercentEncoding.encode(try Self.key(String(text.dropFirst(start.count)), at: root), keepsSlashes: true)
        canonical = start + encoded
        requestText = root.canonical + encoded
        path = root.path + encoded
        scheme = root.scheme
        port = root.port
        hostName = root.hostName
        query = nil
        self.bucket = bucket
        file = nil
        guard max(canonical.utf8.count, requestText.utf8.count) <= Self.maxLength else { throw .tooLong(limit: Self.maxLength) }
    }

    /// The decoded path below a URL that ends with a slash.
    ///
    /// - Parameter text: With or without percent-encoding.
    private static func key(_ text: String, at root: SourceURL) throws(SourceURLError) -> String {
        let parsed = try SourceURL(root.canonical + text)
        guard parsed.query == nil, parsed.canonical.hasPrefix(root.canonical) else { throw .malformed }
        guard let key = PercentEncoding.decode(parsed.canonical.dropFirst(root.canonical.count)),
            !key.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f })
        else { throw .badCharacter }
        let parts = key.split(separator: "/", omittingEmptySubsequences: false)
        guard key.isEmpty || (parts.last == "" ? parts.dropLast() : parts[...]).allSatisfy({ !["", ".", ".."].contains($0) })
        else { throw .malformed }
        return key
    }

    /// The scheme of files of this machine, with its slashes.
    package static let fileScheme = "file://"

    /// The URL of a file, or of a directory that ends with a slash.
    ///
    /// - Parameters:
    ///   - text: `file:///directory/path`, the path with or without percent-encoding.
    ///   - directory: An absolute path that ends with a slash, not encoded.
    /// - Throws: ``SourceURLError`` for a text that is not below the directory, and for a path that no key of S3 may have either.
    package init(file text: String, below directory: String) throws(SourceURLError) {
        let start = Self.fileScheme + PercentEncoding.encode(directory, keepsSlashes: true)
        guard text.hasPrefix(start) else { throw .unsupportedScheme }
        // Its address is never connected to.
        let root = try SourceURL("http://localhost/")
        let key = try Self.key(String(text.dropFirst(start.count)), at: root)
        canonical = start + PercentEncoding.encode(key, keepsSlashes: true)
        requestText = canonical
        path = String(canonical.dropFirst(Self.fileScheme.count))
        scheme = root.scheme
        port = root.port
        hostName = root.hostName
        query = nil
        bucket = nil
        file = FilePlace(directory: directory, path: key)
        guard canonical.utf8.count <= Self.maxLength else { throw .tooLong(limit: Self.maxLength) }
    }

    /// The canonical form of a URL, also of an object in S3 or a file, for purges.
    package static func canonicalText(of text: String) throws(SourceURLError) -> String {
        if text.lowercased().hasPrefix(fileScheme) {
            // The form does not depend on the directory.
            return try SourceURL(file: fileScheme + text.dropFirst(fileScheme.count), below: "/").canonical
        }
        guard text.lowercased().hasPrefix(s3Scheme) else { return try SourceURL(text).canonical }
        let rest = text.dropFirst(s3Scheme.count)
        let bucket = String(rest.prefix { $0 != "/" })
        // The form does not depend on the service.
        return try SourceURL(s3: s3Scheme + rest, bucket: bucket, at: SourceURL("http://localhost/")).canonical
    }

    /// The URL to which a `Location` field in the response for this URL refers (RFC 9110 section 10.2.2).
    ///
    /// Spaces and bytes outside ASCII, which real origins send, are percent-encoded first.
    func following(location: [UInt8]) throws(SourceURLError) -> SourceURL {
        guard location.count <= Self.maxLength else { throw .tooLong(limit: Self.maxLength) }
        guard location.allSatisfy({ $0 >= 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "\\") }) else { throw .badCharacter }
        let reference = location.flatMap { byte in
            byte == 0x20 || byte >= 0x80 ? Array(URLNormalization.encodingForbiddenBytes([byte]).utf8) : [byte]
        }
        var url = try CurlURL(canonical)
        try url.resolve(String(decoding: reference, as: UTF8.self))
        guard let text = url.text() else { throw .malformed }
        return try SourceURL(text)
    }

    /// Refuses what libcurl would accept: one or three slashes after the scheme, and a host with percent-encoded ASCII.
    ///
    /// - Returns: The URL with the bytes outside ASCII that its host encodes: browsers encode an international name in a path.
    private static func decodingHost(of text: String) throws(SourceURLError) -> String {
        let prefixes = ["http://", "https://"]
        let start = text.prefix(8).lowercased()
        guard let prefix = prefixes.first(where: start.hasPrefix) else { throw .unsupportedScheme }
        let rest = text.utf8.dropFirst(prefix.utf8.count)
        guard rest.first != UInt8(ascii: "/") else { throw .badHost }
        let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        if authority.contains(UInt8(ascii: "@")) { throw .credentials }
        guard !authority.isEmpty else { throw .badHost }
        guard authority.contains(UInt8(ascii: "%")) else { return text }
        let escapes = authority.split(separator: UInt8(ascii: "%"), omittingEmptySubsequences: false).dropFirst()
        guard escapes.allSatisfy({ $0.first.map { "89abcdefABCDEF".utf8.contains($0) } ?? false }),
            let decoded = PercentEncoding.decode(Substring(authority))
        else { throw .badHost }
        return prefix + decoded + String(Substring(rest[authority.endIndex...]))
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
    /// The URL contains a control character, a space or a backslash.
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
        case .badCharacter: "The source URL contains a control character, a space or a backslash."
        case .unsupportedScheme: "The source URL must begin with http:// or https://."
        case .credentials: "The source URL must not contain a user name or password."
        case .badHost: "The host of the source URL is missing or has an ambiguous form."
        case .badPort: "The port of the source URL is not a number from 1 to 65535."
        case .malformed: "The source URL cannot be parsed."
        }
    }
}
