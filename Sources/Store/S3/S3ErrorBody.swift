internal import HTTPClient

/// The body of a response that reports an error.
struct S3ErrorBody: Equatable {
    /// The code, such as `SlowDown`; empty if the body has none.
    let code: String
    /// The region that the request should have named.
    let region: String?

    init(_ body: [UInt8]) {
        let root = XMLElement(document: body).flatMap { $0.name == "Error" ? $0 : nil }
        code = root?.text("Code").map(Self.printable) ?? ""
        region = root?.text("Region").map(Self.printable)
    }

    /// Returns a server's text in a form that is safe for a log line.
    static func printable(_ text: String) -> String {
        String(decoding: text.utf8.filter { (0x21...0x7E).contains($0) }.prefix(64), as: UTF8.self)
    }
}

extension StoreError {
    /// The meaning of a response that reports neither success nor a missing object.
    init(_ response: ClientResponse) {
        let body = S3ErrorBody(response.body)
        let code = body.code.isEmpty ? "without a code" : body.code
        switch response.status {
        case 301, 307, 308:
            let region = response.fields["x-amz-bucket-region"] ?? body.region
            // A proxy may redirect as well, for example to TLS.
            let isOfStore = region != nil || !body.code.isEmpty
            let target = S3ErrorBody.printable(response.fields["location"] ?? "")
            self = isOfStore ? .wrongRegion(expected: region) : .invalidResponse(cause: "it redirects to \(target)")
        case 400 where body.code == "AuthorizationHeaderMalformed" && body.region != nil:
            self = .wrongRegion(expected: body.region)
        // Session credentials expire and are replaced.
        case 400 where ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"].contains(body.code): self = .denied(code: code)
        case 401, 403: self = .denied(code: code)
        case 404 where body.code == "NoSuchBucket": self = .noBucket
        // A proxy that has no route to the store at the moment. The store would name a code.
        case 404 where body.code.isEmpty: self = .serverFailed(status: 404, code: code)
        // A proxy without a server behind it answers 503, too.
        case 503 where body.code != "SlowDown" && response.fields["retry-after"] == nil:
            self = .serverFailed(status: 503, code: code)
        case 429, 503: self = .throttled(retryAfter: Self.retryAfter(response.fields["retry-after"]))
        case 408: self = .serverFailed(status: 408, code: code)
        case 400..<500 where ["RequestTimeout", "OperationAborted"].contains(body.code):
            self = .serverFailed(status: response.status, code: code)
        case 400..<500: self = .rejected(status: response.status, code: code)
        case 500..<600: self = .serverFailed(status: response.status, code: code)
        default: self = .invalidResponse(cause: "its status is \(response.status)")
        }
    }

    /// The meaning of an error of one object in the response to DeleteObjects.
    init(deletionCode code: String?) {
        switch code {
        case "AccessDenied"?: self = .denied(code: "AccessDenied")
        case "SlowDown"?: self = .throttled(retryAfter: nil)
        default: self = .serverFailed(status: 200, code: code.map(S3ErrorBody.printable) ?? "without a code")
        }
    }

    /// Reads seconds (RFC 9110 section 10.2.3). A date is not used: the clocks may differ.
    private static func retryAfter(_ value: String?) -> Duration? {
        value.flatMap { Int($0) }.flatMap { $0 >= 0 ? .seconds(min($0, 86_400)) : nil }
    }
}

extension StoreError {
    /// The meaning of a request without a complete response.
    init(_ error: HTTPError) {
        switch error {
        case .unreachable(let cause), .tls(let cause), .misconfigured(let cause): self = .unreachable(cause: cause)
        // A server that has begun to answer works. Otherwise a few large objects would count as an outage.
        case .timedOut(.body, _), .stalled: self = .tooSlow
        case .timedOut: self = .timedOut
        case .interrupted(let cause): self = .interrupted(cause: cause)
        case .invalidResponse(let cause): self = .invalidResponse(cause: cause)
        case .tooLarge(let limit): self = .tooLarge(limit: limit)
        case .file(let error): self = .file(error)
        case .addressRefused: self = .unreachable(cause: error.description)
        case .exhausted(let cause): self = .exhausted(cause: cause)
        // That says nothing about the server.
        case .busy: self = .exhausted(cause: "all connections to the store are in use")
        case .cancelled: self = .cancelled
        case .closed: self = .closed
        }
    }
}
