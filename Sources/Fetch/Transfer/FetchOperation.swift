/// A fetch from its admission to its answer, over all redirects. Lives on the transfer loop's thread alone.
final class FetchOperation {
    let request: FetchRequest
    /// What is fetched now: at first the URL asked for, then where it redirects to.
    var url: SourceURL
    /// The request under way; nil while the operation waits for a place.
    var transfer: Transfer?
    /// Whether the next request may not use a connection that was used before.
    var needsFreshConnection = false
    /// When the first request was sent.
    private(set) var started: ContinuousClock.Instant?
    var timings = FetchTimings()
    private var waitingSince: ContinuousClock.Instant

    init(_ request: FetchRequest) {
        self.request = request
        url = request.url
        waitingSince = request.submitted
    }

    /// What the bound on each host counts by.
    var place: Place { Place(host: url.host, port: url.port) }

    struct Place: Hashable {
        let host: String
        let port: Int
    }

    /// Notes that a place was found.
    func begin(at now: ContinuousClock.Instant) {
        timings.queued += now - waitingSince
        if started == nil { started = now }
    }

    /// Notes that a place is wanted again.
    func waitAgain(at now: ContinuousClock.Instant) {
        waitingSince = now
    }

    /// When the fetch has taken too long. Before the first request this bounds the wait, and then the fetch anew.
    func deadline(_ timeout: Duration) -> ContinuousClock.Instant {
        (started ?? request.submitted) + timeout
    }
}
