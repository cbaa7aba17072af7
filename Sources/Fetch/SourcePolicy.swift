/// The rules for the URLs that may be fetched: `sources.allow`, `sources.ports` and, for hosts that are addresses,
/// `sources.allow_private`.
///
/// ``refusal(of:)`` neither blocks nor looks anything up, so it also applies to sources whose renditions are cached: a source
/// that a reload forbids is refused at once. The addresses behind a *name* are known only when a connection is opened. The caller
/// therefore has every origin asked again after `sources.allow_private` was narrowed.
package struct SourcePolicy: Sendable {
    /// One of these has to match. Without any, nothing may be fetched.
    private let patterns: [SourcePattern]
    let addresses: AddressPolicy

    package init(patterns: [SourcePattern], addresses: AddressPolicy) {
        self.patterns = patterns
        self.addresses = addresses
    }

    /// The reason why a source may not be fetched.
    package enum Refusal: Hashable, Sendable {
        /// No pattern of `sources.allow` matches.
        case pattern
        /// The address or the port may not be connected to.
        case address(AddressRefusal)
    }

    /// Returns why `url` may not be fetched, or nil if only the addresses of its host can still forbid it.
    package func refusal(of url: SourceURL) -> Refusal? {
        // A mount names the directory.
        if url.file != nil { return nil }
        guard patterns.contains(where: { $0.matches(url) }) else { return .pattern }
        return addresses.refusal(of: url).map { .address($0) }
    }
}

/// An entry of `sources.allow`: `[scheme://]host[:port][/path]`.
///
/// - The host is a ``HostGlob``: `*.example.com` matches every name below `example.com`, but not that name itself.
/// - Without a scheme it matches both schemes, without a port every port.
/// - The path is a prefix that ends at a slash: `/uploads` matches `/uploads` and `/uploads/a.gif`, but not `/uploads2`. A `*` at
///   its end lifts that rule: `/up*` matches every path that begins with `/up`.
package struct SourcePattern: Hashable, Sendable, CustomStringConvertible {
    /// The pattern as it was written.
    package let description: String
    private let scheme: SourceURL.Scheme?
    private let host: HostGlob
    private let port: Int?
    private let path: String
    private let pathIsTextPrefix: Bool

    /// Every source.
    package static let any = SourcePattern()

    /// Parses a pattern; nil for any other form.
    package init?(_ text: String) {
        var rest = Substring(text)
        var scheme: SourceURL.Scheme?
        if let separator = rest.firstRange(of: "://") {
            guard let known = SourceURL.Scheme(rawValue: rest[..<separator.lowerBound].lowercased()) else { return nil }
            scheme = known
            rest = rest[separator.upperBound...]
        }
        let authority = rest.prefix { $0 != "/" }
        var path = String(rest[authority.endIndex...])
        guard !path.contains(where: { $0 == "?" || $0 == "#" }) else { return nil }

        guard let (hostText, port) = PortSuffix.split(authority), let host = HostGlob(String(hostText)) else { return nil }

        let pathIsTextPrefix = path.hasSuffix("*")
        if pathIsTextPrefix { path.removeLast() }
        guard !path.contains("*") else { return nil }

        description = text
        self.scheme = scheme
        self.host = host
        self.port = port
        self.path = path.isEmpty ? "/" : URLNormalization.normalizedPath(path)
        self.pathIsTextPrefix = pathIsTextPrefix
    }

    private init() {
        description = "*"
        scheme = nil
        host = .any
        port = nil
        path = "/"
        pathIsTextPrefix = false
    }

    /// Whether the pattern matches `url`. A file has its path and the host `localhost`.
    package func matches(_ url: SourceURL) -> Bool {
        guard scheme == nil || scheme == url.scheme, port == nil || port == url.port, host.matches(url.hostName) else {
            return false
        }
        if path == "/" { return true }
        guard url.path.hasPrefix(path), !Self.hidesDotSegments(url.path) else { return false }
        return pathIsTextPrefix || path.hasSuffix("/") || url.path.utf8.count == path.utf8.count
            || url.path.utf8.dropFirst(path.utf8.count).first == UInt8(ascii: "/")
    }

    /// Whether an origin that decodes the path before it resolves dot segments would leave the prefix: `/uploads/..%2Fsecret`.
    private static func hidesDotSegments(_ path: String) -> Bool {
        URLNormalization.decodedBytes(path)
            .split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
            .contains { $0.elementsEqual("..".utf8) }
    }
}
