/// Decides which sources may be fetched, as far as their URLs tell: `sources.allow`, `sources.ports` and, for hosts that are
/// addresses, `sources.allow_private`.
///
/// ``refusal(of:)`` neither blocks nor looks anything up, so it also applies to sources whose renditions are cached: a source
/// that a reload forbids is refused at once. The addresses behind a *name* are known only when a connection is made. After
/// `sources.allow_private` was narrowed, a rendition of a source at a private name is therefore still served until the origin
/// has to be asked again; then it is refused like any other. A purge of the name's prefix removes it earlier.
package struct SourcePolicy: Sendable {
    /// One of these has to match. Without any, nothing may be fetched.
    package let patterns: [SourcePattern]
    package let addresses: AddressPolicy

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
        guard patterns.contains(where: { $0.matches(url) }) else { return .pattern }
        return addresses.refusal(of: url).map { .address($0) }
    }
}
