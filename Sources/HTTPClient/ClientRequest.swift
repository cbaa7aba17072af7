package import SystemIO

/// A request of an ``HTTPClient``, and what to do with the body of its response.
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

    /// Where the body of a successful response (2xx) goes. Of other bodies, the first 64 KiB are kept in memory.
    package enum Destination: Sendable {
        /// The first 64 KiB are kept, and the rest is dropped.
        case excerpt
        /// A longer body is an error.
        case memory(limit: Int)
        /// A file, which is emptied first. Its content is undefined after an error.
        case file(SharedDescriptor, limit: Int)
    }

    package var method: String
    /// An absolute URL, encoded. It is sent unchanged.
    package var url: String
    /// Header fields as `Name: value`.
    package var fields: [String]
    package var body: Body?
    /// Signs the request when it is sent; nil for a request that is not signed.
    package var signer: SignatureV4?
    /// SHA-256 of the body in hexadecimal, for the signature; nil for an empty body.
    package var digest: String?
    package var destination = Destination.excerpt
    /// The time limit of the whole request, from when it is sent.
    package var timeout: Duration
    /// The time limit for name lookup, connect and TLS handshake together.
    package var connectTimeout: Duration
    /// The lowest rate of a response that has begun, in bytes per second over ``stallWindow``; 0 for none.
    package var stallRate = 0
    package var stallWindow = Duration.seconds(10)
    package var maxHeadBytes = 64 << 10
    package var userAgent = "gifreel"
    /// A PEM file of certificate authorities to trust instead of the system's.
    package var certificateAuthorities: String?
    /// Whether HTTP/2 may be used if TLS negotiates it.
    package var allowsHTTP2 = true
    /// Whether to wait for the server to accept the body (`Expect: 100-continue`).
    package var expectsContinue = false
    package var bufferSize = 64 << 10
    /// A Unix socket that is connected to in place of the URL's host and port.
    package var unixPath: String?
    /// Whether variables such as `http_proxy` apply.
    package var usesProxies = false
    /// The redirects that are followed.
    package var maxRedirects = 0
    /// Whether compressed bodies are requested, and decompressed.
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
    /// Header fields; names in lower case. Of several with the same name, the last.
    package var fields: [String: String]
    /// The body or its beginning, if it went to memory.
    package var body: [UInt8]
    /// The number of bytes of the body, if it was received whole.
    package var length: Int
    /// SHA-256 of a body that went to a file.
    package var digest: [UInt8]?
    /// The delay that the server asks for (`Retry-After`), at most a day.
    package var retryAfter: Duration?

    /// The body as text.
    package var text: String { String(decoding: body, as: UTF8.self) }
}

/// The failure of a request. The descriptions are for a log; they may contain addresses.
package enum HTTPError: Error, Equatable, Sendable {
    /// How far the request got.
    package enum Phase: Sendable {
        /// Name lookup, connect or TLS handshake.
        case connect
        /// The request was sent, and the head of a response of success has not been received.
        case head
        case body
    }

    /// Name lookup or connect failed.
    case unreachable(cause: String)
    /// The TLS handshake failed, or the certificate cannot be trusted.
    case tls(cause: String)
    case timedOut(Phase, cause: String)
    /// The response has begun and is too slow.
    case stalled
    /// The connection ended before the response was complete.
    case interrupted(cause: String)
    /// The response violates HTTP.
    case invalidResponse(cause: String)
    /// The body has more bytes than the caller takes.
    case tooLarge(limit: Int)
    /// A file to send or to receive into failed.
    case file(SystemError)
    /// ``HTTPCall/allows(_:port:)`` has refused every address of the server.
    case addressRefused
    /// A file that the request names, such as one of certificates, cannot be used.
    case misconfigured(cause: String)
    /// The process lacks memory, descriptors or threads.
    case exhausted(cause: String)
    /// The client has no free connection: its queue is full, or the request waited too long in it.
    case busy
    /// The calling task was cancelled.
    case cancelled
    /// The client was stopped.
    case closed
}

extension HTTPError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unreachable(let cause), .timedOut(_, let cause): "unreachable: \(cause)"
        case .tls(let cause): "TLS: \(cause)"
        case .stalled: "the response is too slow"
        case .interrupted(let cause): "response ended too early: \(cause)"
        case .invalidResponse(let cause): "protocol: \(cause)"
        case .tooLarge(let limit): "the response has more than \(limit) bytes"
        case .file(let error): "file: \(error)"
        case .addressRefused: "address not allowed"
        case .misconfigured(let cause), .exhausted(let cause): "exhausted: \(cause)"
        case .busy: "all connections are in use"
        case .cancelled: "cancelled"
        case .closed: "shut down"
        }
    }
}
