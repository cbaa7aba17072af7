package import Cache
internal import Fetch
internal import HTTP

/// Who may ask: the checks between reading a request and answering it.
package struct AccessControl: Sendable {
    let signatures: SignatureCheck
    private let loop: LoopToken
    private let limiter: RateLimiter?

    package init(_ configuration: ServiceConfiguration, clock: CacheClock) {
        signatures = SignatureCheck(
            keys: configuration.signingKeys, isRequired: configuration.requiresSignature, clock: clock)
        loop = LoopToken(configuration.fetch.loopName)
        limiter = configuration.rateLimit.map { RateLimiter($0, clock: clock) }
    }

    /// Refuses a request that is not signed as it has to be, or that this service has made itself.
    ///
    /// - Throws: `bad_signature`, `expired_signature` or `source_not_allowed`.
    func check(_ asked: ParsedTarget, _ request: borrowing HTTPRequest) throws(Problem) {
        guard let credentials = asked.credentials else { return }
        // A loop can only go on where something is fetched, so hits and objects need not be looked at.
        if loop.occurs(in: request.headers("CDN-Loop")) { throw .loop }
        try check(asked, credentials)
    }

    /// The same for what a request names beside its target: a form's fields, the page that is to be embedded.
    func check(_ asked: ParsedTarget) throws(Problem) {
        if let credentials = asked.credentials { try check(asked, credentials) }
    }

    private func check(_ asked: ParsedTarget, _ credentials: Credentials) throws(Problem) {
        try signatures.check(credentials, of: asked.source, mount: asked.mount)
    }

    /// What the request may have made.
    func allowance(_ request: borrowing HTTPRequest) -> MissAllowance {
        guard let limiter else { return .unlimited }
        return MissAllowance(limiter: limiter, client: request.clientAddress.map(ClientNetwork.init))
    }
}
