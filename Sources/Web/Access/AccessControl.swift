internal import Fetch
internal import HTTP
internal import Renditions
internal import Sandbox
internal import SystemIO

/// The checks between parsing a request and processing it: signatures, source rules, loops and rates.
struct AccessControl: Sendable {
    let signatures: SignatureCheck
    private let policy: WebPolicy
    private let limits: ClientLimits

    init(_ policy: WebPolicy, limits: ClientLimits, clock: TimeSource) {
        signatures = SignatureCheck(keys: policy.signingKeys, isRequired: policy.requiresSignature, clock: clock)
        self.policy = policy
        self.limits = limits
    }

    /// Checks a request whose target contains everything its signature covers, and sets the target's key.
    ///
    /// - Throws: `bad_signature`, `expired_signature`, `option_not_allowed` or `source_not_allowed`, which includes loops.
    func check(_ target: inout ParsedTarget, _ request: borrowing HTTPRequest) throws(Problem) {
        guard target.credentials != nil else { return }
        try checkLoop(request)
        try authorize(&target)
    }

    /// Checks the signature, the options and the source of a target, and sets its key.
    ///
    /// The rules for sources apply to cached renditions as well. A fetch checks
    /// them again, together with the addresses of the host.
    ///
    /// - Throws: `bad_signature`, `expired_signature`, `option_not_allowed` or `source_not_allowed`.
    func authorize(_ target: inout ParsedTarget) throws(Problem) {
        guard let credentials = target.credentials else { return }
        target.key = try signatures.verify(credentials, of: target.source, rule: signatureRule(of: target))
        try checkRights(of: target, credentials, isSigned: target.key != nil)
    }

    /// Authorizes a target of a list whose signature was verified as a whole.
    ///
    /// - Parameter key: The key that verified the list; nil for an unsigned list.
    func authorize(_ target: inout ParsedTarget, inListSignedBy key: SigningKey?) throws(Problem) {
        guard let credentials = target.credentials else { return }
        if key == nil { try signatures.verify(credentials, of: target.source, rule: signatureRule(of: target)) }
        target.key = key
        try checkRights(of: target, credentials, isSigned: target.key != nil)
    }

    /// Checks a target on behalf of an operator.
    ///
    /// - Returns: Whether a required signature is missing, and the problem that remains apart from that.
    func judge(_ target: ParsedTarget) -> (lacksSignature: Bool, refusal: Problem?) {
        var checked = target
        do throws(Problem) {
            try authorize(&checked)
            return (false, nil)
        } catch {
            guard let credentials = target.credentials, credentials.signature == nil, error.isBadSignature else {
                return (false, error)
            }
            do throws(Problem) {
                try checkRights(of: target, credentials, isSigned: true)
                return (true, nil)
            } catch {
                return (true, error)
            }
        }
    }

    /// Whether a rule of the target's mount, or of the mounts that serve its source, requires a signature; nil without a rule.
    private func signatureRule(of target: ParsedTarget) -> Bool? {
        target.mount?.rule.requiresSignature ?? (target.source.map(policy.sources.rights)?.needsSignature == true ? true : nil)
    }

    private func checkRights(
        of target: ParsedTarget, _ credentials: RequestSignature, isSigned: Bool
    ) throws(Problem) {
        let rights = target.source.map(policy.sources.rights)
        try policy.options.check(
            credentials.options.map { ($0.name, $0.value) }, isSigned: isSigned, presets: policy.presets)
        if let key = target.key, let name = key.name {
            guard key.permits(target.source) else {
                limits.keys.refused(name)
                throw Problem(403, "source_not_allowed", "The key of this request is for other sources.")
            }
            limits.keys.granted(name)
        }
        let refusal = rights?.refusal ?? (target.mount == nil && rights?.needsMount == true ? .pattern : nil)
        if let refusal { throw Problem(.fetchFailed(.notAllowed(refusal))) }
    }

    /// Whether addresses in a target's page are limited to the options of unsigned requests.
    func bounds(_ target: ParsedTarget) -> Bool {
        policy.options == .presets && target.key == nil
    }

    /// Refuses a request that a fetch of this service caused. Hits skip the check: without a fetch there is no loop.
    func checkLoop(_ request: borrowing HTTPRequest) throws(Problem) {
        if request.names(policy.loopName, in: "CDN-Loop") { throw .loop }
    }

    /// Returns the permission to cause a miss.
    ///
    /// - Parameters:
    ///   - client: Nil if the address is unknown (a Unix socket without a trusted proxy).
    ///   - key: The key that has signed the request; nil for none.
    func allowance(_ client: ClientNetwork?, _ key: SigningKey?) -> MissAllowance {
        let general = policy.rateLimit != nil ? limits.misses.allowance(for: client) : .unlimited
        return key.map { limits.keys.allowance($0, otherwise: general) } ?? general
    }

    /// Counts an upload.
    ///
    /// - Throws: `rate_limited`.
    func countUpload(_ client: ClientNetwork?) throws(Problem) {
        guard policy.uploadLimit != nil, let client, let seconds = limits.uploads.take(client) else { return }
        throw Problem(429, "rate_limited", "This address has sent too many uploads.", retryAfter: seconds)
    }

    /// Refunds the token of an upload for which the server had no memory.
    func giveBackUpload(_ client: ClientNetwork?) {
        if policy.uploadLimit != nil, let client { limits.uploads.giveBack(client) }
    }

    var limitsBytes: Bool { policy.byteLimit != nil }

    /// Refuses a client that is over its limit of received bytes.
    ///
    /// - Throws: `rate_limited`.
    func checkBytes(_ client: ClientNetwork?) throws(Problem) {
        guard limitsBytes, let client, let seconds = limits.bytes.secondsUntilRepaid(by: client) else { return }
        throw Problem(429, "rate_limited", "This address has received too many bytes.", retryAfter: seconds)
    }

    /// Counts a hit on a target that a key signed.
    func countHit(_ key: String) { limits.keys.granted(key) }
}

struct SignatureCheck: Sendable {
    let keys: SigningKeys
    /// Whether unsigned requests are refused where no rule applies. If there are keys, a wrong signature is always refused.
    let isRequired: Bool
    let clock: TimeSource

    /// Checks that the credentials contain a valid signature, if one is required, and have not expired.
    ///
    /// - Parameter rule: Whether the mount or the source of the request needs a signature; nil for the general setting.
    /// - Returns: The key that has verified a signature; nil for a request without one.
    /// - Throws: `bad_signature` or `expired_signature`.
    @discardableResult
    func verify(_ credentials: RequestSignature, of source: SourceURL?, rule: Bool?) throws(Problem) -> SigningKey? {
        var key: SigningKey?
        if !keys.isEmpty {
            if let signature = credentials.signature {
                let texts = credentials.texts(canonicalSource: source?.canonical).map(\.text)
                key = keys.key(verifying: signature, of: texts)
                if key == nil {
                    let mismatch = "The signature does not match the request."
                    throw .badSignature(texts.isEmpty ? RequestSignature.unsignable : mismatch)
                }
            } else if rule ?? isRequired {
                throw .badSignature("The request needs a signature.")
            }
        }
        if let expires = credentials.expires, hasExpired(expires) { throw .expiredSignature }
        return key
    }

    /// Whether the time `expires`, in seconds since 1970, has been reached.
    func hasExpired(_ expires: Int64) -> Bool { clock.unixSeconds >= expires }

    /// The seconds until `expires`, at least 0.
    func secondsLeft(until expires: Int64) -> Int64 {
        max(0, expires.subtractingReportingOverflow(clock.unixSeconds).partialValue)
    }
}

extension RouteParser {
    /// Returns the target that a link names: without the trackers for which a request for it would be redirected.
    func linked(_ target: String, _ signatures: SignatureCheck) -> String {
        guard let plain = Self.withoutTrackers(target) else { return target }
        do throws(Problem) {
            let parsed = try parse(target)
            // A signature may cover them.
            if let credentials = parsed.credentials, credentials.signature != nil,
                try signatures.verify(credentials, of: parsed.source, rule: nil) != nil
            {
                return target
            }
            guard case .rendition(let rendition, _) = parsed.route, rendition.format == .html else { return target }
            return plain
        } catch {
            return error.status == 400 || error.isBadSignature ? plain : target
        }
    }
}

/// The properties of a request, apart from the target, on which its processing depends.
struct ClientContext: Sendable {
    /// The host in the request; nil if it has none.
    let host: String?
    /// The client's scheme, which may be reported by a trusted proxy.
    let scheme: HTTPScheme
    let urgency: Urgency
    /// The network to which rate limits apply; nil if the client's address is unknown.
    let network: ClientNetwork?
    /// The network to which the shares of concurrent work apply; nil if the client's address is unknown or belongs to an
    /// unlisted proxy, which many clients share.
    let share: ClientNetwork?
    var allowance: MissAllowance
    let prefersAsync: Bool
    /// Whether the client accepts only a stored response.
    let wantsStoredOnly: Bool
    /// The URL that receives the outcome of an asynchronous request.
    var callback: SourceURL?

    /// - Parameter key: The key that has signed the request; nil for none.
    init(_ request: borrowing HTTPRequest, _ access: AccessControl, _ key: SigningKey? = nil) {
        host = request.host
        scheme = request.scheme
        urgency = PriorityField.urgency(request)
        network = request.clientAddress.map(ClientNetwork.init)
        share = request.isFromUnlistedProxy ? nil : network
        allowance = access.allowance(network, key)
        prefersAsync = request.names("respond-async", in: "Prefer")
        wantsStoredOnly = request.names("only-if-cached", in: "Cache-Control")
    }

    func request(_ rendition: Rendition, of source: SourceURL) -> RenditionRequest {
        RenditionRequest(
            rendition, of: source, urgency: urgency, client: share, allowance: allowance, isOnlyFromStore: wantsStoredOnly)
    }
}

/// The options that requests without a valid signature may use (`options.allow`).
package enum OptionPolicy: Sendable, Equatable {
    case any
    /// Only a preset, and options that do not multiply the renditions of a source.
    case presets

    /// The names of options that are always allowed: the codec is a part of the format, and the others change no rendition.
    private static let unbounded: Set<String> = [
        "preset", "codec", "expires", "on_miss", "on_error", "on_larger", "callback", "title",
    ]

    /// Checks the options of a request.
    ///
    /// - Throws: `option_not_allowed`.
    func check(_ options: [(name: String, value: String)], isSigned: Bool, presets: RenditionPresets) throws(Problem) {
        guard self == .presets, !isSigned, let refused = options.first(where: { !Self.isAllowed($0.name, $0.value) }) else {
            return
        }
        throw Problem(
            403, "option_not_allowed",
            "The option “\(refused.name.prefix(64))” needs a signed request. Requests without a signature may have "
                + "a preset: \(presets.names.joined(separator: ", ")).")
    }

    private static func isAllowed(_ name: String, _ value: String) -> Bool {
        // An automatic width resolves to one of a few values.
        unbounded.contains(name) || name == "width" && value == "auto"
    }
}
