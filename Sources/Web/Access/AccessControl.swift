package import Cache
internal import Fetch
internal import HTTP
internal import Renditions
internal import Sandbox

/// The checks between parsing a request and processing it: signatures, source rules, loops and rates.
package struct AccessControl: Sendable {
    let signatures: SignatureCheck
    private let sources: SourcePolicy
    private let loop: LoopToken
    private let limiter: RateLimiter?
    /// The beginnings of the URLs that are available through mounts only.
    private let privateBases: [String]

    package init(_ policy: WebPolicy, limiter: RateLimiter, clock: CacheClock) {
        signatures = SignatureCheck(keys: policy.signingKeys, isRequired: policy.requiresSignature, clock: clock)
        sources = policy.sources
        loop = LoopToken(policy.loopName)
        self.limiter = policy.rateLimit == nil ? nil : limiter
        privateBases = policy.mounts.values.filter(\.isPrivate).map(\.base)
    }

    /// Checks a request whose target contains all that its signature covers.
    ///
    /// - Throws: `bad_signature`, `expired_signature` or `source_not_allowed`, the last also for a loop.
    func check(_ target: ParsedTarget, _ request: borrowing HTTPRequest) throws(Problem) {
        guard target.credentials != nil else { return }
        try checkLoop(request)
        try check(target)
    }

    /// Checks the signature and the source of a target. The rules for sources apply to cached renditions as well. A fetch checks
    /// them again, together with the addresses of the host.
    ///
    /// - Throws: `bad_signature`, `expired_signature` or `source_not_allowed`.
    func check(_ target: ParsedTarget) throws(Problem) {
        guard let credentials = target.credentials else { return }
        try signatures.check(credentials, of: target.source, mount: target.mount)
        if let refusal = target.source.flatMap(sources.refusal) { throw Problem(.fetchFailed(.notAllowed(refusal))) }
        if target.mount == nil, let url = target.source?.canonical, privateBases.contains(where: url.hasPrefix) {
            throw Problem(.fetchFailed(.notAllowed(.pattern)))
        }
    }

    /// Refuses a request that a fetch of this service has caused. Hits skip the check: without a fetch there is no loop.
    func checkLoop(_ request: borrowing HTTPRequest) throws(Problem) {
        if loop.occurs(in: request.headers("CDN-Loop")) { throw .loop }
    }

    /// The request's permission to cause a miss.
    func allowance(_ request: borrowing HTTPRequest) -> MissAllowance {
        guard let limiter else { return .unlimited }
        return limiter.allowance(for: request.clientAddress.map(ClientNetwork.init))
    }
}

/// Verifies the signatures of requests.
package struct SignatureCheck: Sendable {
    private let keys: SigningKeys
    private let isRequired: Bool
    private let now: @Sendable () -> Int64

    /// - Parameter isRequired: Whether a request without a signature is refused. A wrong signature is refused in any case, if
    ///   there are keys.
    package init(keys: SigningKeys, isRequired: Bool, clock: CacheClock) {
        self.keys = keys
        self.isRequired = isRequired
        now = clock.unixSeconds
    }

    /// Checks that the credentials contain a valid signature, if one is required, and have not expired.
    ///
    /// - Parameter mount: The mount of the request, which may have its own rule.
    /// - Throws: `bad_signature` or `expired_signature`.
    func check(_ credentials: Credentials, of source: SourceURL?, mount: Mount?) throws(Problem) {
        if !keys.isEmpty {
            if let signature = credentials.signature {
                let isValid = credentials.texts(canonicalSource: source?.canonical).contains {
                    keys.verify(signature, of: $0)
                }
                guard isValid else { throw .badSignature("The signature does not match the request.") }
            } else if mount?.requiresSignature ?? isRequired {
                throw .badSignature("The request needs a signature.")
            }
        }
        if let expires = credentials.expires, hasExpired(expires) { throw .expiredSignature }
    }

    /// Whether the time `expires`, in seconds since 1970, has come.
    func hasExpired(_ expires: Int64) -> Bool { now() >= expires }

    /// The seconds until `expires`, at least 0.
    func secondsLeft(until expires: Int64) -> Int64 { max(0, expires.subtractingReportingOverflow(now()).partialValue) }
}

/// The properties of a request, beside the target, on which its processing depends.
struct ClientContext: Sendable {
    /// The host in the request; nil if it has none.
    let host: String?
    /// The client's scheme, which may be reported by a trusted proxy.
    let scheme: HTTPScheme
    let urgency: Urgency
    let allowance: MissAllowance

    init(_ request: borrowing HTTPRequest, _ access: AccessControl) {
        host = request.host
        scheme = request.scheme
        urgency = PriorityField.urgency(request.header("Priority"))
        allowance = access.allowance(request)
    }
}
