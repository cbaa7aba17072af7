/// A response: status, header fields and body.
package struct HTTPResponse: Sendable {
    /// A response body.
    package enum Body: Sendable {
        case empty
        case bytes([UInt8])
        /// A representation. For status 200 to GET or HEAD the engine evaluates the request's preconditions and ranges, and
        /// responds with 200, 206, 304, 412 or 416; with any other status it sends the whole representation.
        case resource(HTTPResource)
        /// A body that a task produces piece by piece.
        ///
        /// With a length, it is sent unchanged after `Content-Length`; otherwise in chunks (to HTTP/1.0: until the connection closes).
        ///
        /// The closure runs in a task of its own, which is cancelled when the client leaves. Returning ends the body; throwing,
        /// or returning before `length` bytes were written, closes the connection, so that the client recognizes an incomplete
        /// body.
        case stream(length: Int? = nil, @Sendable (HTTPBodyWriter) async throws -> Void)
    }

    /// The status code.
    package var status: Int
    /// The fields, without those that the engine adds (see ``HTTPHeaders``).
    package var headers: HTTPHeaders
    package var body: Body

    package init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: Body = .empty) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The whole or a part of `resource`, or that it has not changed, depending on the request's fields.
    ///
    /// - Parameter headers: Fields of this response only, such as `Cache-Status`; 304 and 206 carry them too.
    package init(_ resource: HTTPResource, headers: HTTPHeaders = HTTPHeaders()) {
        self.init(status: 200, headers: headers, body: .resource(resource))
    }

    /// A text body with its media type.
    package init(status: Int, contentType: String, text: String, headers: HTTPHeaders = HTTPHeaders()) {
        var headers = headers
        headers.append("Content-Type", contentType)
        self.init(status: status, headers: headers, body: .bytes(Array(text.utf8)))
    }

    /// The response to OPTIONS: 204 with `Allow`.
    package static func options(allow methods: [HTTPMethod]) -> HTTPResponse {
        HTTPResponse(status: 204, headers: ["Allow": methods.allowValue])
    }
}

extension [HTTPMethod] {
    /// The methods as the value of an `Allow` field.
    package var allowValue: String { map(\.description).joined(separator: ", ") }
}
