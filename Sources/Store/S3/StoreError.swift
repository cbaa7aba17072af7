package import SystemIO

/// The failure of a call to the shared store. The description is a sentence for a log line; it contains no credentials.
package enum StoreError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The circuit breaker is open: the call failed at once, without a request.
    case suspended
    /// The call's deadline passed.
    case timedOut
    /// The call's deadline passed while the object was arriving: it is too large for the deadline.
    case tooSlow
    /// No connection: name lookup, connect or TLS handshake failed.
    case unreachable(cause: String)
    /// The connection ended before the response was complete.
    case interrupted(cause: String)
    /// The server asked for fewer requests (429, or 503 with the code SlowDown or `Retry-After`).
    case throttled(retryAfter: Duration?)
    /// The server refused the credentials or the permission (401, 403, or 400 with a code such as ExpiredToken).
    case denied(code: String)
    /// The keys for signatures cannot be obtained.
    case noKeys(cause: String)
    /// The bucket is in another region (301, 307 or 308 of the store, or 400 with the code AuthorizationHeaderMalformed).
    case wrongRegion(expected: String?)
    /// The bucket does not exist.
    case noBucket
    /// Another status that reports a failure of the request (4xx).
    case rejected(status: Int, code: String)
    /// Another status that reports a failure of the server (5xx), a request that it gave up (408, or the code RequestTimeout or
    /// OperationAborted), or 404 without a code, for a request that needs no object.
    case serverFailed(status: Int, code: String)
    /// The response violates HTTP or S3.
    case invalidResponse(cause: String)
    /// The object is larger than the caller accepts.
    case tooLarge(limit: Int)
    /// The object's bytes do not match its record.
    case damaged(cause: String)
    /// A local file could not be read or written.
    case file(SystemError)
    /// The machine lacks a resource.
    case exhausted(cause: String)
    /// The calling task was cancelled.
    case cancelled
    /// The store was closed.
    case closed

    /// The value of the metrics' label `cause`: one of a fixed set of words.
    package var label: String {
        switch self {
        case .suspended: "suspended"
        case .timedOut: "timeout"
        case .tooSlow: "too_slow"
        case .unreachable: "unreachable"
        case .interrupted: "interrupted"
        case .throttled: "throttled"
        case .denied: "denied"
        case .noKeys: "no_keys"
        case .wrongRegion: "wrong_region"
        case .noBucket: "no_bucket"
        case .rejected: "rejected"
        case .serverFailed: "server_error"
        case .invalidResponse: "invalid_response"
        case .tooLarge: "too_large"
        case .damaged: "damaged"
        case .file: "file"
        case .exhausted: "exhausted"
        case .cancelled: "cancelled"
        case .closed: "closed"
        }
    }

    package var description: String {
        switch self {
        case .suspended: "No request was sent: the shared store failed shortly before."
        case .timedOut: "The shared store did not answer in time."
        case .tooSlow: "The object did not arrive in time."
        case .unreachable(let cause): "The shared store cannot be reached: \(cause)."
        case .interrupted(let cause): "The connection to the shared store broke: \(cause)."
        case .throttled: "The shared store asks for fewer requests."
        case .denied(let code): "The shared store denies access (\(code))."
        case .noKeys(let cause): "The keys for the shared store cannot be obtained: \(cause)."
        case .wrongRegion(let expected?): "The bucket is in the region \(expected), not in the configured one."
        case .wrongRegion(nil): "The bucket is in another region than the configured one."
        case .noBucket: "The bucket does not exist."
        case .rejected(let status, let code): "The shared store rejects the request: \(status) \(code)."
        case .serverFailed(let status, let code): "The shared store failed: \(status) \(code)."
        case .invalidResponse(let cause): "The shared store's response is invalid: \(cause)."
        case .tooLarge(let limit): "The object is larger than \(limit) bytes."
        case .damaged(let cause): "The object is damaged: \(cause)."
        case .file(let error): "A file of the shared store's client failed: \(error)."
        case .exhausted(let cause): "The machine lacks a resource: \(cause)."
        case .cancelled: "The call was cancelled."
        case .closed: "The shared store's client is closed."
        }
    }

    /// Whether the same request may succeed shortly afterwards.
    var isTransient: Bool {
        switch self {
        case .timedOut, .unreachable, .interrupted, .throttled, .serverFailed, .invalidResponse: true
        default: false
        }
    }

    /// Whether the error of this operation shows that the server as a whole does not work for this client, so that other calls
    /// would fail as well. Credentials may permit everything but deletions.
    func isOutage(of operation: StoreOperation) -> Bool {
        switch self {
        case .denied(code: "AccessDenied"): operation != .delete
        case .denied, .noKeys, .wrongRegion, .noBucket: true
        default: isTransient
        }
    }
}
