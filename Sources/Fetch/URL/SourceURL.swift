/// The URL of a source, parsed once: this very value is the key, is checked, and is fetched.
///
/// Two values are equal exactly where their ``canonical`` forms are, and the canonical form of a canonical form is itself.
package struct SourceURL: Sendable {
    package enum Scheme: String, Sendable {
        case http, https

        /// 80 or 443.
        package var defaultPort: Int { self == .http ? 80 : 443 }
    }

    /// The longest URL taken, in bytes, both as given and in canonical form.
    package static let maxLength = 8192

    /// `scheme://host[:port]/path[?query]`: scheme and host in lower case, a port that is the scheme's own left out, dot
    /// segments resolved, no fragment, no empty query, an international name as `xn--…`, an address in its usual form.
    package let canonical: String
    package let scheme: Scheme
    /// The port to connect to, given or the scheme's own.
    package let port: Int
    /// The path with its percent-encoding normalised; begins with a slash.
    package let path: String
    /// The query without its question mark, byte for byte as it was given save for bytes that no URL may hold.
    package let query: String?

    let hostName: HostName

    /// The host in lower case; an IPv6 address without brackets.
    package var host: String { hostName.text }

    /// Parses and canonicalises `text`.
    ///
    /// - Throws: ``SourceURLError`` for other schemes, credentials, control characters and spaces, hosts in a spelling that
    ///   could be read in two ways (`%31`, `1.2.3.08`), and anything over ``maxLength``.
    package init(_ text: String) throws(SourceURLError) {
        guard text.utf8.count <= Self.maxLength else { throw .tooLong(limit: Self.maxLength) }
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "\\") }) else { throw .badCharacter }
        try Self.checkShape(text)

        let parsed = try CurlURL(text)
        guard let scheme = parsed.scheme().flatMap({ Scheme(rawValue: $0.lowercased()) }) else { throw .unsupportedScheme }
        guard parsed.zone() == nil, let host = parsed.host().flatMap(HostName.init) else { throw .badHost }
        guard let port = parsed.port().flatMap({ Int($0) }), (1...65535).contains(port) else { throw .badPort }
        let path = PercentEncoding.normalisedPath(parsed.path() ?? "/")
        let query = parsed.query().flatMap { $0.isEmpty ? nil : PercentEncoding.normalisedQuery($0) }

        let authority = port == scheme.defaultPort ? host.inURL : "\(host.inURL):\(port)"
        canonical = "\(scheme.rawValue)://\(authority)\(path)" + (query.map { "?\($0)" } ?? "")
        self.scheme = scheme
        self.hostName = host
        self.port = port
        self.path = path
        self.query = query
        guard canonical.utf8.count <= Self.maxLength else { throw .tooLong(limit: Self.maxLength) }
        // What is fetched is the canonical text: libcurl has to read it back as the very same.
        guard try CurlURL(canonical).text() == canonical else { throw .malformed }
    }

    /// The URL that a `Location` header field of this URL's answer stands for (RFC 9110 section 10.2.2).
    ///
    /// Spaces and bytes outside ASCII, which real origins send, are percent-encoded first.
    func following(location: [UInt8]) throws(SourceURLError) -> SourceURL {
        guard location.count <= Self.maxLength else { throw .tooLong(limit: Self.maxLength) }
        guard location.allSatisfy({ $0 >= 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "\\") }) else { throw .badCharacter }
        let reference = location.flatMap { byte in
            byte == 0x20 || byte >= 0x80 ? Array(PercentEncoding.encodingForbiddenBytes([byte]).utf8) : [byte]
        }
        var url = try CurlURL(canonical)
        try url.resolve(String(decoding: reference, as: UTF8.self))
        guard let text = url.text() else { throw .malformed }
        return try SourceURL(text)
    }

    /// libcurl takes one to three slashes after the scheme and decodes a percent-encoded host; here both are refused.
    private static func checkShape(_ text: String) throws(SourceURLError) {
        let prefixes = ["http://", "https://"]
        let start = text.prefix(8).lowercased()
        guard let prefix = prefixes.first(where: start.hasPrefix) else { throw .unsupportedScheme }
        let rest = text.utf8.dropFirst(prefix.utf8.count)
        guard rest.first != UInt8(ascii: "/") else { throw .badHost }
        let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        if authority.contains(UInt8(ascii: "@")) { throw .credentials }
        guard !authority.isEmpty, !authority.contains(UInt8(ascii: "%")) else { throw .badHost }
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
