/// What all requests of a fetcher share: settings, the policy and the counters. Any thread.
final class FetchContext: Sendable {
    let configuration: FetchConfiguration
    let policy: SourcePolicy
    /// The header fields of every request.
    let headers: [String]
    let ownEndpoints = OwnEndpoints()
    let metrics = FetchMetrics()

    init(_ configuration: FetchConfiguration) {
        self.configuration = configuration
        policy = configuration.sourcePolicy
        headers = [
            "Accept: image/gif, */*;q=0.1",
            // The bytes are judged and stored exactly as the origin sends them.
            "Accept-Encoding: identity",
            "CDN-Loop: \(configuration.loopName)",
        ]
    }

    /// Refuses a URL that no address of its host can make allowed.
    func check(_ url: SourceURL) throws(FetchError) {
        if let refusal = policy.refusal(of: url) { throw .notAllowed(refusal) }
    }
}
