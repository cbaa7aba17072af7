internal import CCurl
internal import Curl
package import Fetch

/// The HTTP client of the commands that talk to a Gifreel server. It blocks the calling thread.
///
/// The user names the server, so the address policy for sources does not apply.
package struct ServerClient: Sendable {
    /// The server's answer.
    package struct Answer: Sendable {
        package let status: Int
        package let bytes: [UInt8]
        /// The seconds of `Retry-After`; nil without the field.
        package let retryAfter: Int?

        /// The body as text.
        package var body: String { String(decoding: bytes, as: UTF8.self) }
    }

    private let server: String
    private let token: String?
    private let timeout: Int
    private let unixPath: String?
    private let usesProxies: Bool

    /// - Parameters:
    ///   - server: The base URL, such as `http://127.0.0.1:8080`, or `unix:` and the path of a socket. A URL may have a path, for a
    ///     server behind a proxy.
    ///   - token: The admin token.
    ///   - timeout: The limit for a whole request, in seconds.
    ///   - unixPath: A socket that is connected to in place of the URL's host and port.
    ///   - usesProxies: Whether variables such as `http_proxy` apply.
    package init(server: String, token: String?, timeout: Int = 60, unixPath: String? = nil, usesProxies: Bool = true) {
        let socket = Self.socketPath(server)
        self.server = socket == nil ? server : "http://localhost"
        self.token = token
        self.timeout = timeout
        self.unixPath = unixPath ?? socket
        self.usesProxies = usesProxies
    }

    /// The path in an address of the form `unix:PATH`; nil for another one.
    package static func socketPath(_ server: String) -> String? {
        let scheme = "unix:"
        guard server.hasPrefix(scheme), server.utf8.count > scheme.utf8.count else { return nil }
        return String(server.dropFirst(scheme.count))
    }

    /// Sends a request and waits for its answer.
    ///
    /// - Parameters:
    ///   - target: The encoded path and query, which follow the base URL; empty for that URL itself.
    ///   - body: A text and its media type.
    ///   - fields: Further fields, as `Name: value`.
    ///   - followsRedirects: Whether up to five redirects are followed.
    /// - Throws: ``FetchError`` if no answer arrives.
    package func send(
        _ method: String, _ target: String, body: (text: String, type: String)? = nil, fields: [String] = [],
        followsRedirects: Bool = false
    ) throws(FetchError) -> Answer {
        guard CurlLibrary.prepare() else { throw .exhausted(cause: "curl_global_init") }
        var easy = try EasyHandle<FetchError>()
        let base = server.hasSuffix("/") && !target.isEmpty ? String(server.dropLast()) : server
        try easy.set(CURLOPT_URL, base + target)
        try easy.set(CURLOPT_PROTOCOLS_STR, "http,https")
        try easy.set(CURLOPT_FOLLOWLOCATION, followsRedirects ? 1 : 0)
        try easy.set(CURLOPT_MAXREDIRS, 5)
        if method != "GET" { try easy.set(CURLOPT_CUSTOMREQUEST, method) }
        // Accepts every encoding that libcurl can decode.
        try easy.set(CURLOPT_ACCEPT_ENCODING, "")
        try easy.set(CURLOPT_CONNECTTIMEOUT_MS, 5000)
        try easy.set(CURLOPT_TIMEOUT_MS, timeout * 1000)
        try easy.set(CURLOPT_NOSIGNAL, 1)
        if !usesProxies { try easy.set(CURLOPT_NOPROXY, "*") }
        if let unixPath { try easy.set(CURLOPT_UNIX_SOCKET_PATH, unixPath) }
        var fields = fields
        if let token { fields.append("Authorization: Bearer \(token)") }
        if let body {
            try easy.set(CURLOPT_POSTFIELDSIZE, body.text.utf8.count)
            try easy.set(CURLOPT_COPYPOSTFIELDS, body.text)
            fields.append("Content-Type: \(body.type)")
        }
        guard fields.allSatisfy({ $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f } }) else {
            throw .failed(.protocolViolation(cause: "the token has a character that a header field may not contain"))
        }
        try easy.setFields(fields)

        let received = ReceivedBody()
        let context = Unmanaged.passUnretained(received).toOpaque()
        guard ccurl_set_write(easy.raw, receive, context) == CURLE_OK else { throw .exhausted(cause: "curl_easy_setopt") }
        let code = curl_easy_perform(easy.raw)
        var status = 0
        guard code == CURLE_OK, ccurl_get_long(easy.raw, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK else {
            throw .unreachable(cause: easy.errorMessage(code))
        }
        var wait: curl_off_t = 0
        let hasWait = ccurl_get_offset(easy.raw, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0
        return withExtendedLifetime(received) {
            Answer(status: status, bytes: received.bytes, retryAfter: hasWait ? Int(wait) : nil)
        }
    }
}

/// The received part of a body, on the thread that runs the transfer.
private final class ReceivedBody {
    var bytes: [UInt8] = []
    /// Answers to commands are far shorter. A longer one ends the transfer with an error.
    static let limit = 64 << 20
}

private let receive: curl_write_callback = { data, size, count, context in
    guard let data, let context else { return 0 }
    let received = Unmanaged<ReceivedBody>.fromOpaque(context).takeUnretainedValue()
    let bytes = UnsafeRawBufferPointer(start: data, count: size * count)
    guard received.bytes.count + bytes.count <= ReceivedBody.limit else { return 0 }
    received.bytes.append(contentsOf: bytes)
    return bytes.count
}
