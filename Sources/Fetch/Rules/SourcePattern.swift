/// An entry of `sources.allow`: `[scheme://]host[:port][/path]`.
///
/// - The host is a ``HostGlob``: `*.example.com` matches every name below `example.com`, but not `example.com` itself.
/// - Without a scheme, it matches both schemes; without a port, every port. It matches objects by the URL of their service.
/// - `file:///directory/` matches the files below a directory, and `*` matches everything.
/// - The path is a ``PathPrefix``: `/uploads` matches `/uploads` and `/uploads/a.gif`, but not `/uploads2`. With a trailing
///   `*`, the last segment may continue: `/up*` matches every path that begins with `/up`.
package struct SourcePattern: Hashable, Sendable, CustomStringConvertible {
    private enum Place: Hashable {
        case hosts(HostGlob, scheme: WebAddress.Scheme?, port: Int?)
        case files
    }

    /// The pattern as written.
    package let description: String
    private let place: Place
    private let path: PathPrefix

    /// Every source.
    package static let any = SourcePattern(description: "*", place: .hosts(.any, scheme: nil, port: nil), path: .all)

    /// Parses a pattern; returns nil if `text` is not a valid pattern.
    package init?(_ text: String) {
        var rest = Substring(text)
        var scheme: WebAddress.Scheme?
        var isFile = false
        if let separator = rest.firstRange(of: "://") {
            let name = rest[..<separator.lowerBound].lowercased()
            scheme = WebAddress.Scheme(rawValue: name)
            isFile = "\(name)://" == SourceURL.fileScheme
            guard isFile || scheme != nil else { return nil }
            rest = rest[separator.upperBound...]
        }
        let authority = rest.prefix { $0 != "/" }
        guard let path = PathPrefix(String(rest[authority.endIndex...].dropFirst())) else { return nil }
        if isFile {
            guard authority.isEmpty else { return nil }
            self.init(description: text, place: .files, path: path)
        } else {
            guard let (hostText, port) = PortSuffix.split(authority), let host = HostGlob(String(hostText)) else { return nil }
            self.init(description: text, place: .hosts(host, scheme: scheme, port: port), path: path)
        }
    }

    private init(description: String, place: Place, path: PathPrefix) {
        self.description = description
        self.place = place
        self.path = path
    }

    /// Whether the pattern matches files, which only mounts can name.
    package var namesFiles: Bool { place == .files }

    /// Whether the pattern matches sources of every host.
    package var matchesEveryHost: Bool {
        if case .hosts(let host, _, _) = place { host.text == "*" } else { false }
    }

    /// The host, if it is a literal; nil otherwise.
    var literalHost: String? {
        if case .hosts(let host, _, _) = place, host.isLiteral { host.text } else { nil }
    }

    /// Whether the pattern matches `source`.
    package func matches(_ source: SourceURL) -> Bool {
        if case .file(let file) = source { return place == .files ? path.grants(file.comparable) : description == "*" }
        return source.address.map(matches) ?? false
    }

    func matches(_ address: WebAddress) -> Bool {
        guard case .hosts(let host, let scheme, let port) = place else { return false }
        return (scheme == nil || scheme == address.scheme) && (port == nil || port == address.port)
            && host.matches(address.hostName) && path.grants(address.comparable)
    }
}
