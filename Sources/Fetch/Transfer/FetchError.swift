internal import HTTPClient
internal import SystemIO

/// The reason why a source could not be fetched.
///
/// ``publicDetail`` is for the client and contains no address, cause or text from an origin; ``description`` is for the log.
package enum FetchError: Error, Equatable, Sendable {
    package typealias Refusal = SourceRules.Refusal

    /// The URL, or the target of a redirect, may not be fetched.
    case notAllowed(Refusal)
    /// The origin answered 404.
    case notFound
    /// The origin answered 410.
    case gone
    /// The name could not be looked up, or none of its addresses accepted a connection.
    case unreachable(cause: String)
    /// A phase of the fetch took longer than `limit`.
    case timeout(Phase, limit: Duration)
    /// The body is larger than `limit` bytes; `declared` is the value of `Content-Length`, if that was too large.
    case tooLarge(limit: Int, declared: Int?)
    /// The origin answered without the content.
    case failed(OriginFault)
    /// The first bytes are not those of an animation.
    case notAnAnimation(looksLike: ContentKind)
    /// The source redirects more than `limit` times.
    case tooManyRedirects(limit: Int)
    /// The queue of fetches is full, or the fetch waited too long in it.
    case busy
    /// The calling task was cancelled.
    case cancelled
    /// The fetcher was shut down.
    case closed
    /// The machine ran out of descriptors, memory or threads.
    case exhausted(cause: String)

    package enum Phase: String, Hashable, Sendable {
        /// Name lookup, connect or TLS handshake.
        case connect
        /// The whole fetch.
        case total
        /// The response began, but then arrived too slowly.
        case stall
    }

    /// An error of the origin.
    package enum OriginFault: Hashable, Sendable {
        /// A status without content; `retryAfter` is the delay that the origin asked for, if any; `code` is the code of S3's error,
        /// for the log.
        case status(Int, retryAfter: Duration?, code: String? = nil)
        /// A redirect to a URL that cannot be fetched.
        case redirect(SourceURLError)
        /// A redirect without a `Location`.
        case redirectToNowhere
        /// A response that ended too early, or no response at all.
        case cutShort(cause: String)
        /// A certificate that cannot be trusted, or a failed handshake.
        case tls(cause: String)
        /// Any other violation of HTTP.
        case protocolViolation(cause: String)
    }

    /// The delay before another attempt makes sense, if known.
    package var retryAfter: Duration? {
        switch self {
        case .failed(.status(_, let retryAfter, _)): retryAfter
        case .busy: .seconds(1)
        default: nil
        }
    }

    /// A sentence for the client.
    package var publicDetail: String {
        switch self {
        case .notAllowed(.pattern): "Sources of this host or path may not be fetched."
        case .notAllowed(.redirect): "The source redirects to a host or path that may not be fetched."
        case .notAllowed(.address(.address)):
            "The address of the source is private; the setting sources.allow_private allows it."
        case .notAllowed(.address(.itself)): "The source is this service itself."
        case .notAllowed(.address(.port(let port, let allowed))):
            "The source's port, \(port), is not in the setting sources.ports: \(allowed)."
        case .notFound: "The source was not found."
        case .gone: "The source is gone."
        case .unreachable: "The source cannot be reached."
        case .timeout(.connect, let limit):
            "Connecting to the source took longer than \(Self.text(limit)) (sources.connect_timeout)."
        case .timeout(.total, let limit): "Fetching the source took longer than \(Self.text(limit)) (sources.timeout)."
        case .timeout(.stall, let limit):
            "The source sent almost nothing for \(Self.text(limit)) (sources.stall_timeout)."
        case .tooLarge(let limit, let declared?): "The source has \(declared) bytes; the limit is \(limit) bytes."
        case .tooLarge(let limit, nil): "The source has more than \(limit) bytes, which is the limit."
        case .failed(.status(let status, _, _)): "The source answered with status \(status)."
        case .failed(.redirect), .failed(.redirectToNowhere): "The source redirects to a URL that cannot be fetched."
        case .failed(.cutShort): "The source's response ended too early."
        case .failed(.tls): "The TLS connection to the source failed."
        case .failed(.protocolViolation): "The source's response is not valid HTTP."
        case .notAnAnimation(let kind): kind.sentence("The source")
        case .tooManyRedirects(let limit): "The source redirects more than \(limit) times."
        case .busy: "Too many sources are being fetched."
        case .cancelled, .closed, .exhausted: "The source was not fetched."
        }
    }
}

extension FetchError {
    private static func text(_ limit: Duration) -> String {
        let (seconds, attoseconds) = limit.components
        let milliseconds = attoseconds / 1_000_000_000_000_000
        return milliseconds == 0 ? "\(seconds) s" : "\(seconds * 1000 + milliseconds) ms"
    }
}

extension FetchError: CustomStringConvertible {
    /// A line for the log, with the cause.
    package var description: String {
        switch self {
        case .notAllowed(.redirect(let host)): "redirect not allowed: to \(host) (sources.allow)"
        case .notAllowed(.address(.address(let purpose))):
            "address not allowed: \(purpose) (sources.allow_private allows private addresses)"
        case .notAllowed(.address(.port(let port, let allowed))):
            "port not allowed: \(port) (sources.ports has \(allowed))"
        case .unreachable(let cause): "unreachable: \(cause)"
        case .timeout(let phase, let limit): "timeout: \(phase.rawValue), \(Self.text(limit))"
        case .failed(.status(let status, _, let code?)): "status \(status): \(code)"
        case .failed(.redirect(let error)): "bad redirect: \(error)"
        case .failed(.redirectToNowhere): "redirect without a location"
        case .failed(.cutShort(let cause)): "response ended too early: \(cause)"
        case .failed(.tls(let cause)): "TLS: \(cause)"
        case .failed(.protocolViolation(let cause)): "protocol: \(cause)"
        case .exhausted(let cause): "exhausted: \(cause)"
        case .cancelled: "cancelled"
        case .closed: "shut down"
        default: publicDetail
        }
    }
}

extension FetchError {
    /// - Parameter refusal: The policy's last refusal of an address.
    init(_ error: HTTPError, _ configuration: FetchConfiguration, refusal: AddressRefusal?) {
        switch error {
        case .unreachable(let cause): self = .unreachable(cause: cause)
        case .tls(let cause): self = .failed(.tls(cause: cause))
        case .timedOut(.connect, _): self = .timeout(.connect, limit: configuration.connectTimeout)
        case .timedOut: self = .timeout(.total, limit: configuration.timeout)
        case .stalled: self = .timeout(.stall, limit: configuration.stallTimeout)
        case .interrupted(let cause): self = .failed(.cutShort(cause: cause))
        case .invalidResponse(let cause): self = .failed(.protocolViolation(cause: cause))
        case .tooLarge(let limit): self = .tooLarge(limit: limit, declared: nil)
        case .file(let error): self = .exhausted(cause: error.description)
        case .addressRefused: self = refusal.map { .notAllowed(.address($0)) } ?? .notAllowed(.pattern)
        case .misconfigured(let cause), .exhausted(let cause): self = .exhausted(cause: cause)
        case .busy: self = .busy
        case .cancelled: self = .cancelled
        case .closed: self = .closed
        }
    }
}
