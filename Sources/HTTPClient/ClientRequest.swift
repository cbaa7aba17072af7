package import SystemIO

/// A request of an ``HTTPClient``, and the destination of the response body.
package struct ClientRequest: Sendable {
    package enum Body: Sendable {
        case bytes([UInt8])
        /// The first `length` bytes of a file.
        case file(SharedDescriptor, length: Int)

        package var length: Int {
            switch self {
            case .bytes(let bytes): bytes.count
            case .file(_, let length): length
            }
        }
    }

    /// The destination of a successful (2xx) body. Other bodies are kept in memory, up to the first 64 KiB.
    package enum Destination: Sendable {
        /// Keeps the first 64 KiB and discards the rest.
        case excerpt
        /// Keeps the body in memory. A longer body is an error.
        case memory(limit: Int)
        /// Writes the body to a file, which is truncated first. Its content is undefined after an error.
        case file(SharedDescriptor, limit: Int)
        /// Discards every body. The response is complete with its head, however the body ends.
        case status
    }

    package var method: String
    /// An absolute, percent-encoded URL, which is sent unchanged.
    package var url: String
    /// Header fields as `Name: value`.
    package var fields: [String]
    package var body: Body?
    /// Signs the request when it is sent; nil for an unsigned request.
    package var signer: SignatureV4?
    /// The hexadecimal SHA-256 of the body, for the signature; nil for an empty body.
    package var digest: String?
    package var destination = Destination.excerpt
    /// The timeout of the whole request, from when it is sent.
    package var timeout: Duration
    /// The timeout for name lookup, connect and TLS handshake together.
    package var connectTimeout: Duration
    /// The minimum rate of a started response, in bytes per second over ``stallWindow``; 0 disables the check.
    package var stallRate = 0
    package var stallWindow = Duration.seconds(10)
    package var maxHeadBytes = 64 << 10
    package var userAgent = "gifreel"
    /// A PEM file of certificate authorities to trust instead of the system's.
    package var certificateAuthorities: String?
    /// The maximum age of a reused connection, in whole seconds. A new connection looks up the name again, whose address may have
    /// changed.
    package var connectionLifetime = Duration.seconds(300)
    /// Whether to wait for the server to accept the body (`Expect: 100-continue`).
    package var expectsContinue = false
    package var bufferSize = 64 << 10
    /// A Unix socket to connect to instead of the URL's host and port.
    package var unixPath: String?
    /// Whether proxy variables such as `http_proxy` apply.
    package var usesProxies = false
    /// The maximum number of redirects to follow.
    package var maxRedirects = 0
    /// Whether to request and decompress compressed bodies.
    package var acceptsCompression = false

    package init(
        _ method: String, _ url: String, fields: [String] = [], body: Body? = nil, timeout: Duration,
        connectTimeout: Duration = .seconds(5)
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
        self.timeout = timeout
        self.connectTimeout = connectTimeout
    }
}

/// A complete response.
package struct ClientResponse: Sendable {
    package var status: Int
    /// Header fields with lowercase names. For repeated names, the last value.
    package var fields: [String: String]
    /// The body or its excerpt, if its destination is memory.
    package var body: [UInt8]
    /// The length of the body in bytes, if it was received completely.
    package var length: Int
    /// The SHA-256 of a body that was written to a file.
    package var digest: [UInt8]?
    /// The delay requested by the server (`Retry-After`), at most a day.
    package var retryAfter: Duration?

    /// The body as text.
    package var text: String { String(decoding: body, as: UTF8.self) }

    /// The status as text, with the target of a redirect.
    package var statusText: String {
        let target = (300...399).contains(status) ? fields["location"] : nil
        return "status \(status)\(target.map { ", a redirect to \($0)" } ?? "")"
    }
}

/// The failure of a request. The descriptions are for logs; they may contain addresses.
package enum HTTPError: Error, Equatable, Sendable {
    /// The phase that a request reached.
    package enum Phase: Sendable {
        /// Name lookup, connect or TLS handshake.
        case connect
        /// The request was sent, but no complete head of a successful response was received.
        case head
        case body
    }

    /// Name lookup or connect failed.
    case unreachable(cause: String)
    /// The TLS handshake failed, or the certificate cannot be trusted.
    case tls(cause: String)
    case timedOut(Phase, cause: String)
    /// The response has started but is too slow.
    case stalled
    /// The connection ended before the response was complete.
    case interrupted(cause: String)
    /// The response violates HTTP.
    case invalidResponse(cause: String)
    /// The body exceeds the caller's limit.
    case tooLarge(limit: Int)
    /// Reading the file to send or writing the file to receive failed.
    case file(SystemError)
    /// ``HTTPCall/allows(_:port:)`` refused every address of the server.
    case addressRefused
    /// A file that the request names, such as a certificate file, cannot be used.
    case misconfigured(cause: String)
    /// The process lacks memory, descriptors or threads.
    case exhausted(cause: String)
    /// The client has no free connection: its queue is full, or the request waited in it too long.
    case busy
    /// The calling task was cancelled.
    case cancelled
    /// The client was stopped.
    case closed
}

extension HTTPError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unreachable(let cause), .timedOut(.connect, let cause): "unreachable: \(cause)"
        case .tls(let cause): "TLS: \(cause)"
        case .timedOut(_, let cause): "timed out: \(cause)"
        case .stalled: "the response is too slow"
        case .interrupted(let cause): "response ended too early: \(cause)"
        case .invalidResponse(let cause): "protocol: \(cause)"
        case .tooLarge(let limit): "the response has more than \(limit) bytes"
        case .file(let error): "file: \(error)"
        case .addressRefused: "address not allowed"
        case .misconfigured(let cause): "misconfigured: \(cause)"
        case .exhausted(let cause): "exhausted: \(cause)"
        case .busy: "all connections are in use"
        case .cancelled: "cancelled"
        case .closed: "shut down"
        }
    }
}
