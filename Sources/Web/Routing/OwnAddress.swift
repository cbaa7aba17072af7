internal import Fetch

/// URLs on this server, in any spelling.
enum OwnAddress {
    /// Returns the target in a URL on the server at `base`, as written and without the fragment; nil for any other URL.
    ///
    /// The spelling of the host, the default port, and http or https do not matter: links outlast the change to https.
    ///
    /// - Parameter base: The address at which clients reach the server, without a slash at its end.
    static func target(of url: String, at base: String) -> String? {
        guard let (host, rest) = split(url), let (ownHost, path) = split(base), host == ownHost,
            rest.utf8.starts(with: "\(path)/".utf8)
        else { return nil }
        return String(rest.droppingBytes(path.utf8.count).before(UInt8(ascii: "#")))
    }

    /// Splits a URL into its host in canonical form, with a port other than the default, and the text after them.
    private static func split(_ url: String) -> (host: String, rest: Substring)? {
        let scheme = url[...].before(UInt8(ascii: ":"))
        guard url[scheme.endIndex...].utf8.starts(with: "://".utf8) else { return nil }
        let authority = url[scheme.endIndex...].droppingBytes(3).before(
            UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"))
        guard let root = try? SourceURL("\(url[..<authority.endIndex])/") else { return nil }
        return (String(root.canonical[...].droppingBytes(scheme.utf8.count + 3)), url[authority.endIndex...])
    }
}
