internal import HTTP

/// The reason why a request fails, as the client sees it, with the cause for the log.
package struct Problem: Error, Sendable, Equatable {
    package var status: Int
    /// A stable word for programs (docs/api.md).
    package var code: String
    /// A sentence for the client.
    package var detail: String
    /// Seconds after which another attempt may succeed.
    package var retryAfter: Int?
    /// For the log, or the operator of a command.
    package var cause: String?
    /// The value of `Cache-Status`, if the problem concerns a source.
    package var cacheStatus: String?
    /// Whether the operator should look into it: the cause is not the client, the source or the load.
    package var isServerFault: Bool
    /// Whether the problem is written to the log. False if it was logged earlier, or if the client has left.
    var isLogged: Bool

    package init(
        _ status: Int, _ code: String, _ detail: String, retryAfter: Int? = nil, cause: String? = nil,
        cacheStatus: String? = nil, isServerFault: Bool = false, isLogged: Bool = true
    ) {
        (self.status, self.code, self.detail) = (status, code, detail)
        (self.retryAfter, self.cause, self.cacheStatus) = (retryAfter, cause, cacheStatus)
        (self.isServerFault, self.isLogged) = (isServerFault, isLogged)
    }

    package static let unauthorized = Problem(401, "unauthorized", "The admin token is missing or wrong.")
    package static let overloaded = Problem(503, "overloaded", "Too many conversions are waiting.", retryAfter: 2)
    /// The problem of an operator's request for which no thread is free.
    static let busy = Problem(503, "overloaded", "Too many requests of this kind are waiting.", retryAfter: 2)
    package static let draining = Problem(503, "draining", "The server is stopping.", retryAfter: 5)

    /// The problem of a request that only other nodes could answer.
    static func noCluster(_ cause: String) -> Problem {
        Problem(503, "overloaded", "The cluster cannot be reached.", retryAfter: 1, cause: cause)
    }

    package static let expiredSignature = Problem(403, "expired_signature", "The signed request has expired.")
    /// The request was sent by a fetch of this service (RFC 8586 section 2).
    package static let loop = Problem(
        403, "source_not_allowed", "The source is this service itself.", cause: "CDN-Loop names this service")

    /// The code for a resource that this service lacks. A source that its origin lacks has another code.
    static let notFoundCode = "not_found"

    /// - Parameter detail: Names the missing resource and the valid forms.
    package static func notFound(_ detail: String) -> Problem {
        Problem(404, notFoundCode, detail)
    }

    /// The rendition is not stored, and the request does not wait for it.
    static let notReady = Problem(
        404, "not_ready", "The rendition is not stored yet, and the request does not wait for it.",
        cacheStatus: "gifreel; fwd=miss; detail=not-ready", isLogged: false)

    /// The rendition is larger than its source, and the request refuses such renditions. Caches may keep the response as long
    /// as a failure.
    static let notSmaller = Problem(
        404, "not_smaller", "The rendition is no smaller than what the page has.", isLogged: false)

    /// The rendition is not stored, and the request forbids to fetch its source (RFC 9111 section 5.2.1.7).
    static let notStored = Problem(
        504, "not_stored", "The rendition is not stored, and the request permits no fetch (Cache-Control: only-if-cached).",
        cacheStatus: "gifreel; detail=only-if-cached", isLogged: false)

    package static func badSignature(_ detail: String) -> Problem {
        Problem(403, "bad_signature", detail)
    }

    var isBadSignature: Bool { code == Self.badSignature("").code }

    package static func rateLimited(retryAfter seconds: Int) -> Problem {
        Problem(429, "rate_limited", "This address has requested too many new renditions.", retryAfter: seconds)
    }

    package static func badRequest(_ detail: String) -> Problem {
        Problem(400, "bad_request", detail)
    }

    /// A body that is larger than one source may be.
    static func uploadTooLarge(limit: Int) -> Problem {
        let error = HTTPProtocolError.contentTooLarge
        return Problem(error.status, error.code, "The file is larger than allowed; the limit is \(limit) bytes.")
    }

    package static func badSourceURL(_ detail: String) -> Problem {
        Problem(400, "bad_source_url", detail)
    }

    package static func badOption(_ name: String, _ reason: String) -> Problem {
        Problem(400, "bad_option", "The option “\(name.prefix(64))” \(reason).")
    }
}
