package import Fetch
internal import Renditions

/// A request target after parsing: its route, and what the request presents to be allowed to use it.
package struct ParsedTarget: Sendable, Equatable {
    package var route: Route
    /// Nil for routes that need no signature.
    package var credentials: Credentials?
    /// The mount of the request; nil for requests that name their source themselves.
    package var mount: Mount?
    /// How the mount's clients address the source.
    package var address: MountAddress?
    /// Whether a client that does not prefer the video in `Accept` gets the GIF's own bytes.
    package var isNegotiable: Bool

    package init(
        _ route: Route, credentials: Credentials? = nil, mount: Mount? = nil, address: MountAddress? = nil,
        isNegotiable: Bool = false
    ) {
        self.route = route
        self.credentials = credentials
        self.mount = mount
        self.address = address
        self.isNegotiable = isNegotiable
    }

    /// The answer to a client that does not prefer the video.
    var fallback: Rendition? { isNegotiable ? Rendition(format: .gif) : nil }

    /// The source, where the target names one.
    package var source: SourceURL? {
        if case .rendition(_, let url) = route { return url }
        return nil
    }
}
