internal import SystemIO

extension SourceURL {
    /// Returns the canonical form of a URL prefix for purges, including URLs of S3 objects and files. If the URL of a source
    /// begins with `text`, in any spelling, its canonical form begins with the result.
    ///
    /// The text may end within a host, a port or a segment. Without a slash after the host, it also covers longer hosts and
    /// other ports; after a port, it also covers longer ports, unless the port is the scheme's default. A prefix of an
    /// international name is not a prefix of its `xn--` form, so such a name must be followed by a slash or a port. A dot
    /// segment at the end may be the beginning of a name and is kept; all others are resolved.
    ///
    /// - Throws: ``SourceURLError`` if no source URL begins with the text, or if the text ends within an escape of the path.
    package static func canonicalPrefix(of text: String) throws(SourceURLError) -> String {
        let start = text.prefix(8).lowercased()
        guard let scheme = prefixSchemes.first(where: start.hasPrefix) else {
            guard prefixSchemes.contains(where: { $0.hasPrefix(text.lowercased()) }) else { throw .unsupportedScheme }
            return text.lowercased()
        }
        let rest = text.utf8.dropFirst(scheme.utf8.count)
        let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        let tail = rest.dropFirst(authority.count)
        guard !tail.contains(UInt8(ascii: "#")) else { throw .malformed }
        if scheme == fileScheme {
            guard authority.isEmpty else { throw .badHost }
            return try fileScheme + canonicalPath(tail)
        }
        // A prefix may end within the bucket. The key is encoded in the form that is signed.
        if scheme == s3Scheme { return try s3Scheme + String(Substring(authority)) + canonicalPath(tail) }
        if tail.isEmpty { return try canonicalPrefix(scheme: scheme, authority: authority) }
        let path = tail.prefix { $0 != UInt8(ascii: "?") }
        let root = String(try SourceURL(scheme + String(Substring(authority)) + "/").canonical.dropLast())
        guard path.count < tail.count else {
            return try root + URLNormalization.normalizedPathPrefix(String(Substring(path)))
        }
        return root + URLNormalization.normalizedPath(path.isEmpty ? "/" : String(Substring(path)))
            + "?" + URLNormalization.normalizedQueryPrefix(String(Substring(tail.dropFirst(path.count + 1))))
    }

    /// Returns the canonical form of a host, for purges.
    ///
    /// - Throws: ``SourceURLError`` if the text is not a host, for example because it has a scheme or a port.
    package static func canonicalHost(of text: String) throws(SourceURLError) -> String {
        guard !text.utf8.contains(where: "/?#@\\ ".utf8.contains) else { throw .badHost }
        let host = String(try SourceURL("http://\(text)/").canonical.dropFirst("http://".count).dropLast())
        let end = host.utf8.last == UInt8(ascii: "]") ? host : String(host.split(separator: ":", maxSplits: 1).first ?? "")
        guard host == end, !text.hasSuffix(":80") else { throw .badPort }
        return host
    }

    private static let prefixSchemes = ["http://", "https://", s3Scheme, fileScheme]

    /// Returns the canonical form of a scheme and an authority without a path.
    private static func canonicalPrefix(scheme: String, authority: Substring.UTF8View) throws(SourceURLError) -> String {
        guard !authority.contains(UInt8(ascii: "@")) else { throw .credentials }
        // The colons of an IPv6 address are not separators.
        let isBracketed = authority.first == UInt8(ascii: "[")
        guard let end = authority.firstIndex(of: isBracketed ? UInt8(ascii: "]") : UInt8(ascii: ":")) else {
            guard authority.dropFirst(isBracketed ? 1 : 0).allSatisfy({ isHostByte($0, inBrackets: isBracketed) }) else {
                throw .badHost
            }
            // A truncated address could be mistaken for another address, so it is not parsed.
            return scheme + String(Substring(authority)).lowercased()
        }
        let hostEnd = isBracketed ? authority.index(after: end) : end
        let root = String(try SourceURL(scheme + String(Substring(authority[..<hostEnd])) + "/").canonical.dropLast())
        let suffix = authority[hostEnd...]
        if suffix.isEmpty { return root }
        guard suffix.first == UInt8(ascii: ":") else { throw .badHost }
        let digits = suffix.dropFirst()
        if digits.isEmpty { return root + ":" }
        guard let port = PortSuffix.port(in: Substring(digits)) else { throw .badPort }
        let whole = try WebAddress("\(root):\(port)/")
        // Canonical URLs omit the default port.
        return port == whole.scheme.defaultPort ? whole.canonical : String(whole.canonical.dropLast())
    }

    /// Whether the byte occurs in hosts of canonical URLs, in upper or lower case.
    private static func isHostByte(_ byte: UInt8, inBrackets: Bool) -> Bool {
        inBrackets
            ? byte.hexDigit != nil || ".:".utf8.contains(byte) : byte.isLetterOrDigit || ".-_".utf8.contains(byte)
    }

    /// Returns the canonical form of a prefix of a path, encoded like keys of S3; empty if the path is empty.
    private static func canonicalPath(_ path: Substring.UTF8View) throws(SourceURLError) -> String {
        if path.isEmpty { return "" }
        guard !path.contains(UInt8(ascii: "?")) else { throw .malformed }
        let path = try URLNormalization.normalizedPathPrefix(String(Substring(path)))
        guard let decoded = PercentEncoding.decodedBytes(path[...]) else { throw .malformed }
        return PercentEncoding.encode(decoded, keepsSlashes: true)
    }
}

extension URLNormalization {
    /// Normalizes a prefix of a query as in a canonical URL. The prefix may end within an escape.
    fileprivate static func normalizedQueryPrefix(_ query: String) -> String {
        let text = encodingForbiddenBytes(query.utf8)
        // The appended `0` completes a cut escape, so that its digit is written in upper case too.
        return String(Substring(withUpperCaseTriplets(text + "0").utf8.dropLast()))
    }

    /// Normalizes a prefix of a path like ``normalizedPath(_:)``. The last segment may continue, so it does not count as a dot
    /// segment.
    ///
    /// - Throws: ``SourceURLError/malformed`` if the path ends within an escape.
    fileprivate static func normalizedPathPrefix(_ path: String) throws(SourceURLError) -> String {
        let bytes = Array(path.utf8)
        let digits = bytes + Array("00".utf8)
        let isCut = (max(0, bytes.count - 2)..<bytes.count).contains { PercentEncoding.triplet(in: digits, at: $0) != nil }
        guard !isCut else { throw .malformed }
        let text = normalizedSegments(path)
        let end = text.lastIndex(of: "/").map { text.index(after: $0) } ?? text.startIndex
        return normalizedPath(String(text[..<end])) + text[end...]
    }
}
