internal import SystemIO

/// An http or https URL, parsed once: the same value is the cache key, is checked, and is fetched.
package struct WebAddress: Sendable {
    package enum Scheme: String, Sendable {
        case http, https

        /// 80 or 443.
        var defaultPort: Int { self == .http ? 80 : 443 }
    }

    /// `scheme://host[:port]/path[?query]`: scheme and host in lower case, no default port, no dot segments, no fragment, no
    /// empty query, an international name as `xn--…`, an address in its canonical form, percent-encoding in upper case.
    let canonical: String
    let scheme: Scheme
    let hostName: HostName
    /// The port to connect to: the given one or the scheme's default.
    let port: Int
    /// The path with normalized percent-encoding; it begins with a slash.
    let path: String
    /// The query without its question mark. Only bytes that a URL must not contain are encoded; all others are as given.
    let query: String?
    /// The URL to fetch: ``canonical`` with the query as given, because some origins sign its exact text.
    let requestText: String
    /// The path in the form that rules compare.
    let comparable: SourcePath

    /// The host in lower case; an IPv6 address without brackets.
    var host: String { hostName.text }

    /// Parses `text` and converts it to canonical form.
    ///
    /// - Throws: ``SourceURLError`` for other schemes, credentials, control characters, hosts with a space or an ambiguous
    ///   spelling (`%31`, `1.2.3.08`), and URLs over ``SourceURL/maxLength``.
    init(_ text: String) throws(SourceURLError) {
        try SourceURL.checkText(text)
        let parts = text.utf8.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map { Substring($0) }
        let parsed = try CurlURL(try Self.decodingHost(of: parts.joined(separator: "%20")))
        guard let scheme = parsed.scheme().flatMap({ Scheme(rawValue: $0.lowercased()) }) else { throw .unsupportedScheme }
        guard parsed.zone() == nil, let host = parsed.host().flatMap(HostName.init) else { throw .badHost }
        guard let port = parsed.port().flatMap({ Int($0) }), (1...65535).contains(port) else { throw .badPort }
        try self.init(
            scheme, host, port, path: URLNormalization.normalizedPath(parsed.path() ?? "/"),
            query: parsed.query().flatMap { $0.isEmpty ? nil : URLNormalization.encodingForbiddenBytes($0.utf8) })
        // libcurl fetches this text, so libcurl must parse it to the same URL.
        guard try CurlURL(requestText).text() == requestText else { throw .malformed }
    }

    private init(_ scheme: Scheme, _ host: HostName, _ port: Int, path: String, query: String?) throws(SourceURLError) {
        let authority = port == scheme.defaultPort ? host.inURL : "\(host.inURL):\(port)"
        let start = "\(scheme.rawValue)://\(authority)\(path)"
        requestText = start + (query.map { "?\($0)" } ?? "")
        canonical = query.map { "\(start)?\(URLNormalization.withUpperCaseTriplets($0))" } ?? requestText
        self.scheme = scheme
        hostName = host
        self.port = port
        self.path = path
        self.query = query
        comparable = SourcePath(path)
        guard canonical.utf8.count <= SourceURL.maxLength else { throw .tooLong(limit: SourceURL.maxLength) }
    }

    /// Returns the URL with `text` appended to its path. The text must be normalized and contain no dot segments.
    func appending(_ text: String) throws(SourceURLError) -> WebAddress {
        try WebAddress(scheme, hostName, port, path: path + text, query: nil)
    }

    /// Whether both have the same scheme, host and port.
    func isSameOrigin(as other: WebAddress) -> Bool {
        scheme == other.scheme && port == other.port && hostName.text == other.hostName.text
    }

    /// Returns the URL to which a `Location` field in the response for this URL refers (RFC 9110 section 10.2.2).
    ///
    /// Spaces and bytes outside ASCII, which real origins send, are percent-encoded first.
    func following(location: [UInt8]) throws(SourceURLError) -> WebAddress {
        guard location.count <= SourceURL.maxLength else { throw .tooLong(limit: SourceURL.maxLength) }
        guard location.allSatisfy({ $0 >= 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "\\") }) else { throw .badCharacter }
        let reference = location.prefix { $0 != UInt8(ascii: "#") }.flatMap { byte in
            byte == 0x20 || byte >= 0x80 ? Array(URLNormalization.encodingForbiddenBytes([byte]).utf8) : [byte]
        }
        // RFC 3986 section 4.4. libcurl would resolve it to the folder.
        if reference.isEmpty { return self }
        var url = try CurlURL(canonical)
        try url.resolve(String(decoding: reference, as: UTF8.self))
        guard let text = url.text() else { throw .malformed }
        return try WebAddress(text)
    }

    /// Refuses URLs that libcurl would accept: one or three slashes after the scheme, or percent-encoded ASCII in the host.
    ///
    /// - Returns: The URL with non-ASCII bytes of its host decoded: browsers encode an international name in a path.
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
