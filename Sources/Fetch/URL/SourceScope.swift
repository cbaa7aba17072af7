/// The sources below a path of an origin, in every spelling that the origin may take for that path.
///
/// Many origins decode a path, merge its slashes and resolve its dot segments. `/m//a.gif` and `/m%2Fa.gif` then name the file of
/// `/m/a.gif`, although the URLs differ. A scope is for rules that protect sources, so it contains all of them. A path that hides
/// `..` segments may lead to any path of the origin, depending on the order of these steps, and belongs to every scope there.
package struct SourceScope: Sendable {
    private let root: SourceURL
    private let segments: [[UInt8]]
    /// The beginning of the segment after ``segments``; empty for any.
    private let partial: [UInt8]

    /// - Parameters:
    ///   - root: The URL to which the path is appended, with or without a slash at its end.
    ///   - path: In the form of the path of a ``SourcePattern``, without a slash at its beginning; empty for all sources.
    package init(below root: SourceURL, path: String = "") {
        let hasWildcard = path.hasSuffix("*")
        let folder = root.path.hasSuffix("/") ? root.path : root.path + "/"
        let whole = folder + (hasWildcard ? String(path.dropLast()) : path)
        var segments = Self.segments(URLNormalization.normalizedPath(whole))
        partial = hasWildcard && !whole.hasSuffix("/") ? segments.popLast() ?? [] : []
        self.segments = segments
        self.root = root
    }

    /// Whether the origin may take the path of `source` for one of the scope.
    package func contains(_ source: SourceURL) -> Bool {
        guard source.scheme == root.scheme, source.port == root.port, source.hostName == root.hostName else { return false }
        let named = Self.segments(source.path)
        if named.contains(where: { $0.elementsEqual("..".utf8) }) { return true }
        guard named.starts(with: segments) else { return false }
        return partial.isEmpty || named.dropFirst(segments.count).first?.starts(with: partial) ?? false
    }

    /// The decoded segments of a path, without those that are empty or `.`.
    private static func segments(_ path: String) -> [[UInt8]] {
        URLNormalization.decodedBytes(path)
            .split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
            .filter { !$0.elementsEqual(".".utf8) }
            .map { Array($0) }
    }
}
