package import Fetch

/// A request's target, read: what it asks for, and what it shows for it.
package struct ParsedTarget: Sendable, Equatable {
    package var route: Route
    /// Nil where nothing has to be shown.
    package var credentials: Credentials?
    /// What the request was made through, if it was.
    package var mount: Mount?
    /// Whether a client that does not name the video in `Accept` gets the GIF's own bytes.
    package var isNegotiable: Bool

    package init(_ route: Route, credentials: Credentials? = nil, mount: Mount? = nil, isNegotiable: Bool = false) {
        self.route = route
        self.credentials = credentials
        self.mount = mount
        self.isNegotiable = isNegotiable
    }

    /// What a client gets that does not name the video.
    var fallback: Rendition? { isNegotiable ? Rendition(format: .gif) : nil }

    /// The source, where the target names one.
    package var source: SourceURL? {
        if case .rendition(_, let url) = route { return url }
        return nil
    }
}
