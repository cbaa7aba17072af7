internal import Glibc

/// A prefix of paths: a folder and everything below it or, with a trailing `*`, every path that begins with a text.
///
/// ``grants(_:)`` and ``mayContain(_:)`` differ where origins may disagree about a path. Rules that permit something use the
/// former, and rules that protect something use the latter, so that neither depends on the origin.
struct PathPrefix: Hashable, Sendable {
    /// The prefix in the form of ``SourcePath/exact``; `/` for all paths.
    private let exact: [UInt8]
    private let isTextPrefix: Bool
    /// The folder in the form of ``SourcePath/resolved``.
    private let folder: [UInt8]
    /// The beginning of the segment after ``folder``, in lower case; empty to match any segment.
    private let partial: [UInt8]

    static let all = PathPrefix(below: "/")

    /// Creates the prefix of all paths in a folder.
    ///
    /// - Parameter folder: The path of a canonical URL, with or without a trailing slash.
    init(below folder: String) {
        let path = folder.hasSuffix("/") ? folder : folder + "/"
        self.init(path, partial: nil)
    }

    /// Parses a path from the settings, relative to a folder. `uploads` matches `uploads` and `uploads/…`, `uploads/` only the
    /// latter, and `up*` every path that begins with `up`.
    ///
    /// - Parameters:
    ///   - text: A path without a leading slash, percent-encoded or not; empty for all paths below the folder.
    ///   - folder: The path of a canonical URL.
    /// - Returns: Nil if the text leads out of the folder, or contains a query, a fragment or a star before its end.
    init?(_ text: String, below folder: String = "/") {
        var text = text
        let isTextPrefix = text.hasSuffix("*")
        if isTextPrefix { text.removeLast() }
        guard !text.utf8.contains(where: { "*?#".utf8.contains($0) }) else { return nil }
        let folder = folder.hasSuffix("/") ? folder : folder + "/"
        // The last segment of a text prefix may continue, so it is not a dot segment.
        let segments = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let last = isTextPrefix ? segments.last.map { Substring($0) } ?? "" : ""
        let path = URLNormalization.normalizedPath(folder + text.dropLast(last.count))
        guard path.hasPrefix(folder) else { return nil }
        self.init(path, partial: isTextPrefix ? URLNormalization.normalizedSegments(String(last)) : nil)
    }

    /// - Parameters:
    ///   - path: A normalized path, with a trailing slash if there is a partial segment.
    ///   - partial: The beginning of the segment after the path; nil if the path ends with a segment.
    private init(_ path: String, partial: String?) {
        exact = SourcePath.decodedOnce(Array((path + (partial ?? "")).utf8))
        isTextPrefix = partial != nil
        folder = SourcePath(path).resolved
        // Only the part that survives an origin's path normalization can be compared.
        let name = SourcePath.decodedFully(Array((partial ?? "").utf8)).prefix { !"%;?#/\\".utf8.contains($0) }
        let end = name.lastIndex { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: " ") }
        self.partial = end.map { name[...$0].map(SourcePath.lowercased) } ?? []
    }

    /// Whether the path has the prefix, however the origin normalizes it.
    func grants(_ path: SourcePath) -> Bool { length(in: path) != nil }

    /// Returns the number of bytes of ``SourcePath/exact`` that the prefix covers; nil if ``grants(_:)`` is false.
    func length(in path: SourcePath) -> Int? {
        if exact.count == 1 { return 1 }
        guard !path.isAmbiguous, Self.begins(path.exact, with: exact) else { return nil }
        let slash = UInt8(ascii: "/")
        let isWhole = isTextPrefix || exact.last == slash || path.exact.count == exact.count || path.exact[exact.count] == slash
        return isWhole ? exact.count : nil
    }

    /// Whether an origin may resolve the path to one with the prefix.
    func mayContain(_ path: SourcePath) -> Bool {
        if path.isAmbiguous { return true }
        guard Self.begins(path.resolved, with: folder) else { return false }
        let rest = path.resolved[folder.count...]
        guard let slash = rest.first else { return partial.isEmpty }
        return slash == UInt8(ascii: "/") && rest.dropFirst().starts(with: partial)
    }

    private static func begins(_ bytes: [UInt8], with prefix: [UInt8]) -> Bool {
        guard bytes.count >= prefix.count else { return false }
        return bytes.withUnsafeBytes { bytes in
            prefix.withUnsafeBytes { prefix in
                guard let left = bytes.baseAddress, let right = prefix.baseAddress else { return prefix.isEmpty }
                return memcmp(left, right, prefix.count) == 0
            }
        }
    }
}
