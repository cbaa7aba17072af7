/// A response: status, header fields and body.
package struct HTTPResponse: Sendable {
    package enum Body: Sendable {
        case empty
        case bytes([UInt8])
        /// A representation. For status 200 to GET or HEAD, the server evaluates the request's preconditions and ranges, and
        /// responds with 200, 206, 304, 412 or 416; for any other status it sends the whole representation.
        case resource(HTTPResource)
        /// A body produced piece by piece by a task.
        ///
        /// With a length, it is sent as is after `Content-Length`; otherwise in chunks (HTTP/1.0: until the connection closes).
        ///
        /// The closure runs in its own task, which is cancelled when the client leaves. Returning ends the body. Throwing, or
        /// returning before `length` bytes were written, closes the connection, so that the client detects the incomplete body.
        case stream(length: Int? = nil, @Sendable (HTTPBodyWriter) async throws -> Void)
    }

    /// The status code.
    package var status: Int
    /// The fields, except those that the server adds (see ``HTTPHeaders``).
    package var headers: HTTPHeaders
    package var body: Body

    package init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: Body = .empty) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Creates a response with all or part of `resource`, or 304, depending on the request's fields.
    ///
    /// - Parameter headers: Fields of this response only, such as `Cache-Status`, which 304 and 206 also carry.
    package init(_ resource: HTTPResource, headers: HTTPHeaders = HTTPHeaders()) {
        self.init(status: 200, headers: headers, body: .resource(resource))
    }

    /// Creates a response with a text body.
    package init(status: Int, contentType: String, text: String, headers: HTTPHeaders = HTTPHeaders()) {
        var headers = headers
        headers.append("Content-Type", contentType)
        self.init(status: status, headers: headers, body: .bytes(Array(text.utf8)))
    }

    /// Returns the response to OPTIONS: 204 with `Allow`.
    package static func options(allow methods: [HTTPMethod]) -> HTTPResponse {
        HTTPResponse(status: 204, headers: ["Allow": methods.allowValue])
    }
}

extension [HTTPMethod] {
    /// The methods as the value of an `Allow` field.
    package var allowValue: String { map(\.description).joined(separator: ", ") }
}
