package import Fetch

/// A name in the configuration that stands for an origin.
package struct Mount: Sendable, Equatable {
    /// What a mount does with the parameters of a query.
    package enum Query: String, Sendable, CaseIterable {
        /// Every parameter has to be an option; any other is an error.
        case options
        /// A parameter that is no option goes to the origin as a part of the source's URL, and so into the cache key.
        case forward
    }

    /// What its paths are appended to.
    package var origin: SourceURL
    /// Path prefixes below the origin in the form of ``SourcePattern``, such as `avatars/`; empty for all.
    package var allow: [String] = []
    /// Seconds that a source counts as unchanged; nil for the general setting.
    package var freshFor: Int64?
    /// Seconds of `max-age` in the answers; nil for the general setting.
    package var maxAge: Int?
    /// Whether `.gif` answers with the GIF's own bytes where a client does not prefer the video in `Accept`.
    package var negotiates = false
    /// Whether requests have to be signed; nil for the general setting.
    package var requiresSignature: Bool?
    package var query = Query.options

    package init(origin: SourceURL) {
        self.origin = origin
    }

    /// The origin with a slash at its end.
    package var base: String {
        origin.canonical.hasSuffix("/") ? origin.canonical : origin.canonical + "/"
    }

    /// What may be fetched through the mount.
    package var patterns: [SourcePattern] {
        (allow.isEmpty ? [""] : allow).compactMap { SourcePattern(base + $0) }
    }
}

/// A source as a client of a mount addresses it: what an answer shows instead of the origin's URL.
package struct MountAddress: Sendable, Equatable {
    /// The path without its extension, such as `/media/x/a`.
    var stem: String
    /// Parameters that go to the origin, as they were written.
    var forwarded: [String] = []

    /// The target of a rendition of the source.
    ///
    /// - Parameters:
    ///   - fileExtension: The name of a format, or `gif`.
    ///   - options: With `expires` and `sig` where it is signed.
    func target(_ fileExtension: String, _ options: [QueryItem] = []) -> String {
        let pairs = forwarded + options.map { "\($0.name)=\($0.value)" }
        return "\(stem).\(fileExtension)" + (pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&"))
    }
}
