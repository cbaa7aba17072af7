/// What every request of a fetcher has in common, worked out once.
final class FetchSettings: Sendable {
    let configuration: FetchConfiguration
    let sources: SourcePolicy
    let addresses: AddressPolicy
    let headers: [String]
    let own = OwnEndpoints()

    init(_ configuration: FetchConfiguration) {
        self.configuration = configuration
        sources = SourcePolicy(patterns: configuration.allow)
        addresses = AddressPolicy(
            ports: configuration.ports, exceptions: configuration.allowPrivate,
            translationPrefixes: configuration.translationPrefixes)
        headers = [
            "Accept: image/gif, */*;q=0.1",
            // The bytes are judged and kept as they are sent.
            "Accept-Encoding: identity",
            "CDN-Loop: \(configuration.loopName)",
        ]
    }

    /// Refuses what no look at an address can save.
    func check(_ url: SourceURL) throws(FetchError) {
        guard sources.allows(url) else { throw .notAllowed(.pattern) }
        if let refusal = addresses.refusal(of: url) { throw .notAllowed(.address(refusal)) }
    }
}
