/// An entry of `sources.allow`: `[scheme://]host[:port][/path]`.
///
/// - The host is a ``HostGlob``: `*.example.com` means every name below `example.com`, not that name itself.
/// - Without a scheme both are meant, without a port every port.
/// - The path is a prefix that ends at a slash: `/uploads` means `/uploads` and `/uploads/a.gif`, not `/uploads2`. A `*` at its end
///   drops that rule: `/up*` means all that begins with `/up`.
package struct SourcePattern: Hashable, Sendable, CustomStringConvertible {
    /// The pattern as it was written.
    package let description: String
    private let scheme: SourceURL.Scheme?
    private let host: HostGlob
    private let port: Int?
    private let path: String
    private let pathIsOpen: Bool

    /// Every source.
    package static let any = SourcePattern()

    /// Reads a pattern; nil where it has none of the forms above.
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

        let pathIsOpen = path.hasSuffix("*")
        if pathIsOpen { path.removeLast() }
        guard !path.contains("*") else { return nil }

        description = text
        self.scheme = scheme
        self.host = host
        self.port = port
        self.path = path.isEmpty ? "/" : PercentEncoding.normalisedPath(path)
        self.pathIsOpen = pathIsOpen
    }

    private init() {
        description = "*"
        scheme = nil
        host = .any
        port = nil
        path = "/"
        pathIsOpen = false
    }

    /// Whether `url` is one of those meant.
    package func matches(_ url: SourceURL) -> Bool {
        guard scheme == nil || scheme == url.scheme, port == nil || port == url.port, host.matches(url.hostName) else {
            return false
        }
        if path == "/" { return true }
        guard url.path.hasPrefix(path), !Self.hidesDotSegments(url.path) else { return false }
        return pathIsOpen || path.hasSuffix("/") || url.path.utf8.count == path.utf8.count
            || url.path.utf8.dropFirst(path.utf8.count).first == UInt8(ascii: "/")
    }

    /// `/uploads/..%2Fsecret`: an origin that decodes before it resolves would leave the prefix.
    private static func hidesDotSegments(_ path: String) -> Bool {
        PercentEncoding.decoded(path)
            .split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
            .contains { $0.elementsEqual("..".utf8) }
    }
}
