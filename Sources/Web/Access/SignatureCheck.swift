package import Cache
internal import Fetch

/// Verifies the signatures of requests.
package struct SignatureCheck: Sendable {
    private let keys: SigningKeys
    private let isRequired: Bool
    private let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - isRequired: Whether a request without a signature is refused. A wrong signature always is, where there are keys.
    package init(keys: SigningKeys, isRequired: Bool, clock: CacheClock) {
        self.keys = keys
        self.isRequired = isRequired
        now = clock.unixSeconds
    }

    /// Refuses what is not signed as it has to be.
    ///
    /// - Parameter mount: What the request was made through; it may do without signatures.
    /// - Throws: `bad_signature` or `expired_signature`.
    func check(_ credentials: Credentials, of source: SourceURL?, mount: Mount?) throws(Problem) {
        if !keys.isEmpty {
            if let signature = credentials.signature {
                let isGood = credentials.texts(canonicalSource: source?.canonical).contains {
                    keys.verify(signature, of: $0)
                }
                guard isGood else { throw .badSignature("The signature does not match the request.") }
            } else if mount?.requiresSignature ?? isRequired {
                throw .badSignature("The request needs a signature.")
            }
        }
        if let expires = credentials.expires, hasExpired(expires) { throw .expiredSignature }
    }

    /// Whether a request that may be made until `expires` comes too late.
    func hasExpired(_ expires: Int64) -> Bool { now() >= expires }

    /// Seconds left until `expires`, at least 0.
    func secondsLeft(until expires: Int64) -> Int64 { max(0, expires.subtractingReportingOverflow(now()).partialValue) }
}
