/// Credentials that are renewed while the process runs.
package protocol RenewedKeys: AnyObject, Sendable {
    /// Suspends until unexpired keys are available, it is known that there are none, or `limit` has passed.
    func prepare(within limit: Duration) async

    /// Returns a signer with the latest keys; nil if there are none.
    func signature(for region: String) -> SignatureV4?
}

/// The signer of requests to a bucket, with fixed or renewed keys.
package enum RequestSigner: Sendable, Equatable {
    case fixed(SignatureV4)
    case renewed(any RenewedKeys, region: String)

    /// See ``RenewedKeys/prepare(within:)``.
    package func prepare(within limit: Duration) async {
        if case .renewed(let keys, _) = self { await keys.prepare(within: limit) }
    }

    /// The signer for a request to send now; nil to send it unsigned.
    package var signature: SignatureV4? {
        switch self {
        case .fixed(let signature): signature
        case .renewed(let keys, let region): keys.signature(for: region)
        }
    }

    package static func == (one: RequestSigner, other: RequestSigner) -> Bool {
        switch (one, other) {
        case (.fixed(let one), .fixed(let other)): one == other
        case (.renewed(let one, let region), .renewed(let other, let otherRegion)): one === other && region == otherRegion
        default: false
        }
    }
}
