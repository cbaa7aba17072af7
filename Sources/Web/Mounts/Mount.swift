package import Fetch

/// A name in the configuration that stands for an origin (API.md §1).
package struct Mount: Sendable, Equatable {
    /// What its paths are appended to.
    package var origin: SourceURL
    /// Path prefixes below the origin, as ``SourcePattern`` has them, such as `avatars/`; empty for all.
    package var allow: [String] = []
    /// Seconds that a source is taken for unchanged; nil as everywhere else.
    package var freshFor: Int64?
    /// Seconds of `max-age` in the answers; nil as everywhere else.
    package var maxAge: Int?
    /// Whether `.gif` answers with the GIF's own bytes where a client does not name MP4 in `Accept`.
    package var negotiates = false
    /// Whether requests have to be signed; nil as everywhere else.
    package var requiresSignature: Bool?

    package init(origin: SourceURL) {
        self.origin = origin
    }

    /// The origin with a slash at its end.
    var base: String {
        origin.canonical.hasSuffix("/") ? origin.canonical : origin.canonical + "/"
    }

    /// What may be fetched through the mount.
    var patterns: [SourcePattern] {
        (allow.isEmpty ? [""] : allow).compactMap { SourcePattern(base + $0) }
    }
}
