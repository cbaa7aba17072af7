/// An answer: status, header fields and body.
package struct HTTPResponse: Sendable {
    /// A response body.
    package enum Body: Sendable {
        case empty
        case bytes([UInt8])
        /// A representation. With status 200 to GET or HEAD the engine evaluates the request's preconditions and
        /// ranges on it, and answers 200, 206, 304, 412 or 416; with any other status it is sent whole.
        case resource(HTTPResource)
        /// A body whose end is not known yet: sent in chunks (to HTTP/1.0: until the connection closes).
        ///
        /// The closure runs in a task of its own, which is cancelled when the client leaves. Returning ends the
        /// body; throwing breaks the connection off, so that the client sees that the body is not whole.
        case stream(@Sendable (HTTPBodyWriter) async throws -> Void)
    }

    /// The status code.
    package var status: Int
    /// The fields, but for those the engine adds itself (see ``HTTPHeaders``).
    package var headers: HTTPHeaders
    package var body: Body

    package init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: Body = .empty) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The whole or a part of `resource`, or that it has not changed, as the request's fields have it.
    ///
    /// - Parameter headers: Fields of this answer alone, such as `Cache-Status`; they go on 304 and 206 too.
    package init(_ resource: HTTPResource, headers: HTTPHeaders = HTTPHeaders()) {
        self.init(status: 200, headers: headers, body: .resource(resource))
    }

    /// A body of text with its type.
    package init(status: Int, contentType: String, text: String, headers: HTTPHeaders = HTTPHeaders()) {
        var headers = headers
        headers.append("Content-Type", contentType)
        self.init(status: status, headers: headers, body: .bytes(Array(text.utf8)))
    }

    /// 405 with `Allow` (RFC 9110 section 15.5.6); the body is the caller's to set.
    package static func methodNotAllowed(allow methods: [HTTPMethod]) -> HTTPResponse {
        HTTPResponse(status: 405, headers: ["Allow": methods.allowValue])
    }

    /// The answer to OPTIONS: 204 with `Allow`.
    package static func options(allow methods: [HTTPMethod]) -> HTTPResponse {
        HTTPResponse(status: 204, headers: ["Allow": methods.allowValue])
    }
}

extension [HTTPMethod] {
    /// The methods as the value of an `Allow` field.
    package var allowValue: String { map(\.description).joined(separator: ", ") }
}
