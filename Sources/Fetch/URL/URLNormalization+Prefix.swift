internal import SystemIO

extension SourceURL {
    /// The canonical form of the beginning of a URL, also of an object in S3, for purges. The URLs of sources that begin with `text`, in
    /// any spelling, begin with it.
    ///
    /// The text may end within a host or a segment. Without a slash behind the host it also stands for longer hosts and other ports,
    /// unless it has the default port of its scheme. A dot segment at the end may be the beginning of a name and is kept; all others are
    /// resolved.
    ///
    /// - Throws: ``SourceURLError`` for a text with which no URL of a source begins, and for one that ends within an escape.
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
        if scheme == s3Scheme { return try canonicalPrefix(bucket: String(Substring(authority)), key: tail) }
        let origin = scheme + String(Substring(authority))
        if tail.isEmpty { return try canonicalPrefix(origin: origin, authority: Substring(authority)) }
        let path = tail.prefix { $0 != UInt8(ascii: "?") }
        let root = String(try SourceURL(origin + "/").canonical.dropLast())
        guard path.count < tail.count else {
            return try root + URLNormalization.normalizedPathPrefix(String(Substring(path)))
        }
        return root + URLNormalization.normalizedPath(path.isEmpty ? "/" : String(Substring(path)))
            + "?" + URLNormalization.normalizedQuery(String(Substring(tail.dropFirst(path.count + 1))))
    }

    private static let prefixSchemes = ["http://", "https://", s3Scheme]

    /// The canonical form of scheme and authority without a path.
    private static func canonicalPrefix(origin: String, authority: Substring) throws(SourceURLError) -> String {
        if let (_, port) = PortSuffix.split(authority), port != nil {
            let whole = try SourceURL(origin + "/")
            // Canonical URLs leave the default port out.
            if whole.port == whole.scheme.defaultPort { return whole.canonical }
        }
        // The beginning of an address could be taken for another address, and that of an international name cannot be converted.
        guard authority.utf8.contains(where: { $0 >= 0x80 }) else { return origin.lowercased() }
        return String(try SourceURL(origin + "/").canonical.dropLast())
    }

    /// The canonical form of the beginning of an object's URL. A key is encoded as it is signed.
    ///
    /// - Parameter key: With its slash; empty if the text ends within the bucket.
    private static func canonicalPrefix(bucket: String, key: Substring.UTF8View) throws(SourceURLError) -> String {
        if key.isEmpty { return s3Scheme + bucket }
        guard !key.contains(UInt8(ascii: "?")) else { throw .malformed }
        let path = try URLNormalization.normalizedPathPrefix(String(Substring(key)))
        guard let decoded = PercentEncoding.decode(path[...]) else { throw .malformed }
        return s3Scheme + bucket + PercentEncoding.encode(decoded, keepsSlashes: true)
    }
}

extension URLNormalization {
    /// Normalizes the beginning of a path as ``normalizedPath(_:)`` does the whole. Its last segment may continue, so it is not taken
    /// for a dot segment.
    ///
    /// - Throws: ``SourceURLError/malformed`` for a path that ends within an escape.
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
