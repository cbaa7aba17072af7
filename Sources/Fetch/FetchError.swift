/// Why a source could not be fetched.
///
/// ``publicDetail`` is for the client and names no address, no cause and nothing an origin sent; ``description`` is for the log.
package enum FetchError: Error, Equatable, Sendable {
    /// The URL, or one it redirects to, may not be fetched.
    case notAllowed(Refusal)
    /// The origin answered 404.
    case notFound
    /// The origin answered 410.
    case gone
    /// The name could not be looked up, or no address of it could be connected to.
    case unreachable(cause: String)
    /// Something took too long.
    case timeout(Phase)
    /// The body is larger than `limit` bytes; `declared` is what `Content-Length` said, where that told it.
    case tooLarge(limit: Int, declared: Int?)
    /// The origin answered, but not with the content.
    case failed(OriginFault)
    /// The first bytes are not a GIF's.
    case notAGIF(looksLike: ContentKind)
    /// More redirects than `limit`.
    case tooManyRedirects(limit: Int)
    /// As many fetches as may wait are waiting, or the wait was too long.
    case busy
    /// The task that asked was cancelled.
    case cancelled
    /// The fetcher was shut down.
    case closed
    /// This machine lacks something: descriptors, memory, threads.
    case exhausted(cause: String)

    package enum Refusal: Hashable, Sendable {
        /// No pattern of `sources.allow` matches.
        case pattern
        /// The address or the port may not be connected to.
        case address(AddressRefusal)
    }

    package enum Phase: String, Hashable, Sendable {
        /// Looking up the name, connecting or the TLS handshake.
        case connect
        /// The whole fetch.
        case total
        /// The answer began and then came too slowly.
        case stall
    }

    /// What the origin did wrong.
    package enum OriginFault: Hashable, Sendable {
        /// A status that brings no content; `retryAfter` is what the origin asked for, if it did.
        case status(Int, retryAfter: Duration?)
        /// A redirect to what cannot be fetched.
        case redirect(SourceURLError)
        /// A redirect without a `Location`.
        case redirectToNowhere
        /// An answer that broke off before its end, or none at all.
        case cutShort(cause: String)
        /// A certificate that cannot be trusted, or a handshake that failed.
        case tls(cause: String)
        /// Anything else that is not HTTP as it should be.
        case protocolViolation(cause: String)
    }

    /// When it makes sense to try again, where that is known.
    package var retryAfter: Duration? {
        switch self {
        case .failed(.status(_, let retryAfter)): retryAfter
        case .busy: .seconds(1)
        default: nil
        }
    }
}
