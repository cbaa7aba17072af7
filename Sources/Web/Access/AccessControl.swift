package import Cache
internal import Fetch
internal import HTTP
internal import Renditions

/// The checks between parsing a request and answering it: signatures, sources, loops and rates.
package struct AccessControl: Sendable {
    let signatures: SignatureCheck
    private let sources: SourcePolicy
    private let loop: LoopToken
    private let limiter: RateLimiter?

    package init(_ configuration: WebPolicy, limiter: RateLimiter, clock: CacheClock) {
        signatures = SignatureCheck(
            keys: configuration.signingKeys, isRequired: configuration.requiresSignature, clock: clock)
        sources = configuration.sources
        loop = LoopToken(configuration.loopName)
        self.limiter = configuration.rateLimit == nil ? nil : limiter
    }

    /// Refuses a request without a valid signature where it needs one, a source that may not be fetched, and a request of this
    /// service's own.
    ///
    /// - Throws: `bad_signature`, `expired_signature` or `source_not_allowed`.
    func check(_ asked: ParsedTarget, _ request: borrowing HTTPRequest) throws(Problem) {
        guard asked.credentials != nil else { return }
        try checkLoop(request)
        try check(asked)
    }

    /// Refuses what has no valid signature where it needs one, such as an upload with the fields of its form, and a source that
    /// may not be fetched. The latter holds for cached renditions as well: a fetch checks again, with the addresses of the host.
    func check(_ asked: ParsedTarget) throws(Problem) {
        guard let credentials = asked.credentials else { return }
        try signatures.check(credentials, of: asked.source, mount: asked.mount)
        if let refusal = asked.source.flatMap(sources.refusal) { throw Problem(.fetchFailed(.notAllowed(refusal))) }
    }

    /// Refuses a request of this service's own. Hits do not come here: without a fetch there is no loop.
    func checkLoop(_ request: borrowing HTTPRequest) throws(Problem) {
        if loop.occurs(in: request.headers("CDN-Loop")) { throw .loop }
    }

    /// What the request may cause to be made.
    func allowance(_ request: borrowing HTTPRequest) -> MissAllowance {
        guard let limiter else { return .unlimited }
        return limiter.allowance(for: request.clientAddress.map(ClientNetwork.init))
    }
}
