/// A fetch on its way from the calling task to the transfer loop.
struct FetchRequest: Sendable {
    typealias ID = UInt64

    let id: ID
    let url: SourceURL
    let validators: SourceValidators
    /// Additional request header fields.
    let fields: [String]
    /// The document that is sent with POST; nil for a fetch.
    var document: [UInt8]?
    /// Receives the bytes while they arrive.
    let arriving: ArrivingSource
    let submitted: ContinuousClock.Instant
    /// Receives the outcome; nil for a document that was accepted.
    let continuation: CheckedContinuation<Result<FetchOutcome?, FetchError>, Never>
}

/// A fetch from its admission to its result, across all redirects. Only the transfer loop's thread uses it.
final class FetchOperation {
    /// The host and port that ``FetchConfiguration/perHost`` counts by.
    struct Endpoint: Hashable {
        let host: String
        let port: Int
    }

    let request: FetchRequest
    /// The URL of the current request: first the requested one, then those of the redirects.
    private(set) var url: SourceURL
    /// The request in progress; nil while the operation waits in the queue.
    var transfer: Transfer?
    /// Whether the next request must use a new connection.
    private(set) var needsFreshConnection = false
    private(set) var redirects = 0
    private var isUnconditional = false
    private(set) var redirectDirectives = RedirectDirectives()
    /// When the first request was sent.
    private(set) var started: ContinuousClock.Instant?

    init(_ request: FetchRequest) {
        self.request = request
        url = request.url
    }

    var endpoint: Endpoint { Endpoint(host: url.host, port: url.port) }

    /// Records that the operation has left the queue.
    func begin(at now: ContinuousClock.Instant) {
        if started == nil { started = now }
    }

    /// The validators that the current request may have: they belong to the URL of the first one.
    var validators: SourceValidators {
        redirects == 0 && !isUnconditional ? request.validators : SourceValidators()
    }

    /// Continues with the URL of a redirect.
    ///
    /// - Parameter head: That of the response that redirects.
    func redirect(to next: SourceURL, by head: ResponseHead) {
        url = next
        redirectDirectives.add(head)
        needsFreshConnection = false
        redirects += 1
    }

    /// Repeats the request without validators.
    func repeatWithoutConditions() {
        isUnconditional = true
    }

    /// Repeats the request on a new connection.
    func retryOnFreshConnection() {
        needsFreshConnection = true
    }

    /// When the fetch has taken too long. Until the first request this limits the time in the queue, then the fetch.
    func deadline(_ timeout: Duration) -> ContinuousClock.Instant {
        (started ?? request.submitted) + timeout
    }

    /// The outcome of a transfer that received the content.
    func fetched(_ body: FetchedBody, from transfer: Transfer) -> FetchOutcome {
        .fetched(
            FetchedSource(
                bytes: body.bytes, count: body.count, sha256: body.sha256,
                validators: redirects == 0 ? transfer.head.validators : SourceValidators(),
                cacheDirectives: transfer.cacheDirectives, duration: duration))
    }

    /// The outcome of a transfer that received a 304.
    func unmodified(_ transfer: Transfer) -> FetchOutcome {
        let (repeated, known) = (transfer.head.validators, request.validators)
        return .notModified(
            UnmodifiedSource(
                validators: SourceValidators(
                    etag: repeated.etag ?? known.etag, lastModified: repeated.lastModified ?? known.lastModified),
                cacheDirectives: transfer.cacheDirectives, duration: duration))
    }

    private var duration: Duration { started.map { ContinuousClock.now - $0 } ?? .zero }
}
