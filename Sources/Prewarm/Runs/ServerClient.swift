package import HTTPClient

/// The HTTP client of the commands that talk to a Gifreel server. It blocks the calling thread.
///
/// The user names the server, so the address policy for sources does not apply.
package struct ServerClient: Sendable {
    private let server: String
    private let token: String?
    private let timeout: Int
    private let unixPath: String?
    private let usesProxies: Bool

    /// - Parameters:
    ///   - server: The base URL, such as `http://127.0.0.1:8080`, or `unix:` and the path of a socket. A URL may have a path,
    ///     for a server behind a proxy.
    ///   - timeout: The limit for a whole request, in seconds.
    ///   - usesProxies: Whether variables such as `http_proxy` apply. A token is sent through a proxy only if TLS hides it.
    package init(server: String, token: String?, timeout: Int = 60, usesProxies: Bool = true) {
        unixPath = Self.socketPath(server)
        self.server = unixPath == nil ? server : "http://localhost"
        self.token = token
        self.timeout = timeout
        let hidesToken = token == nil || server.lowercased().hasPrefix("https://")
        self.usesProxies = usesProxies && unixPath == nil && hidesToken
    }

    /// The path in an address of the form `unix:PATH`; nil for any other address.
    package static func socketPath(_ server: String) -> String? {
        let scheme = "unix:"
        guard server.hasPrefix(scheme), server.utf8.count > scheme.utf8.count else { return nil }
        return String(server.dropFirst(scheme.count))
    }

    /// Sends a request and waits for its response.
    ///
    /// - Parameters:
    ///   - target: The encoded path and query, which follow the base URL; empty for that URL itself.
    ///   - body: A text and its media type.
    ///   - fields: Further fields, as `Name: value`.
    ///   - followsRedirects: Whether up to five redirects are followed.
    /// - Throws: ``HTTPError`` if no response arrives.
    package func send(
        _ method: String, _ target: String, body: (text: String, type: String)? = nil, fields: [String] = [],
        followsRedirects: Bool = false
    ) throws(HTTPError) -> ClientResponse {
        let base = server.hasSuffix("/") && !target.isEmpty ? String(server.dropLast()) : server
        var request = ClientRequest(method, base + target, fields: fields, timeout: .seconds(timeout))
        if let token { request.fields.append("Authorization: Bearer \(token)") }
        if let body {
            request.fields.append("Content-Type: \(body.type)")
            request.body = .bytes(Array(body.text.utf8))
        }
        guard request.fields.allSatisfy({ $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f } }) else {
            throw .invalidResponse(cause: "the token has a character that a header field may not contain")
        }
        request.destination = .memory(limit: Self.maxAnswer)
        request.unixPath = unixPath
        request.usesProxies = usesProxies
        request.maxRedirects = followsRedirects ? 5 : 0
        request.acceptsCompression = true
        return try HTTPClient.perform(request)
    }

    /// The size limit of a response, in bytes. Responses to commands are far shorter.
    private static let maxAnswer = 64 << 20
}
