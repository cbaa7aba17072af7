internal import CSystem
internal import HTTPClient

/// A connected, non-blocking byte stream to a server: TCP, TLS over TCP, or a Unix socket. Not thread-safe.
///
/// libcurl connects and encrypts, but sends nothing by itself. It tries a host's IPv4 and IPv6 addresses at the same time (RFC
/// 8305), and no address uses up the whole time limit.
final class RedisTransport {
    private let connection: EasyHandle
    /// The socket, for poll(2).
    let descriptor: Int32
    /// Whether a write waits until the socket accepts more data.
    private(set) var wantsWrite = false

    init(_ address: RedisAddress, within limit: Duration) throws(RedisError) {
        do throws(HTTPError) {
            connection = try Self.prepare(address, limit)
        } catch {
            throw .unavailable("no connection can be set up: \(error)")
        }
        let code = curl_easy_perform(connection.raw)
        guard code == CURLE_OK else { throw Self.failure(code, connection.errorMessage(code)) }
        var socket = ccurl_bad_socket
        guard ccurl_get_socket(connection.raw, &socket) == CURLE_OK, socket != ccurl_bad_socket else {
            throw .unavailable("the connection is lost")
        }
        descriptor = socket
    }

    private static func prepare(_ address: RedisAddress, _ limit: Duration) throws(HTTPError) -> EasyHandle {
        let connection = try EasyHandle()
        try connection.setCommonOptions()
        try connection.setTimeouts(connect: limit, total: limit)
        try connection.set(CURLOPT_CONNECT_ONLY, 1)
        try connection.set(CURLOPT_PROXY, "")
        try connection.set(CURLOPT_SSL_ENABLE_ALPN, 0)
        try connection.check(ccurl_permit_moving_writes(connection.raw), CURLOPT_SSL_CTX_FUNCTION)
        switch address.endpoint {
        case .unix(let path):
            try connection.set(CURLOPT_URL, "http://localhost/")
            try connection.set(CURLOPT_UNIX_SOCKET_PATH, path)
        case .tcp(let host, let port):
            let authority = "\(host.contains(":") ? "[\(host)]" : host):\(port)"
            try connection.set(CURLOPT_URL, "\(address.usesTLS ? "https" : "http")://\(authority)/")
        }
        if let file = address.caFile { try connection.trustOnly(file) }
        return connection
    }

    private static func failure(_ code: CURLcode, _ message: String) -> RedisError {
        switch code {
        case CURLE_PEER_FAILED_VERIFICATION: .unavailable("the server's certificate is not trusted: \(message)")
        case CURLE_SSL_CACERT_BADFILE: .unavailable("the certificates to trust cannot be read: \(message)")
        default: .unavailable("no connection: \(message)")
        }
    }

    /// Reads the bytes that have arrived, and returns their number, which may be 0. Throws at the end of the stream.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(RedisError) -> Int {
        var count = 0
        switch curl_easy_recv(connection.raw, buffer.baseAddress, buffer.count, &count) {
        case CURLE_OK where count > 0: return count
        case CURLE_OK: throw .unavailable("the server has closed the connection")
        case CURLE_AGAIN: return 0
        case let code: throw .unavailable("the connection is lost: \(connection.errorMessage(code))")
        }
    }

    /// Writes as much as the connection accepts, and removes it from `bytes`.
    func write(_ bytes: inout [UInt8]) throws(RedisError) {
        var written = 0
        wantsWrite = false
        while written < bytes.count, !wantsWrite {
            var count = 0
            let code = bytes[written...].withUnsafeBytes { curl_easy_send(connection.raw, $0.baseAddress, $0.count, &count) }
            switch code {
            case CURLE_OK: written += count
            case CURLE_AGAIN: wantsWrite = true
            default: throw .unavailable("the connection is lost: \(connection.errorMessage(code))")
            }
        }
        bytes.removeFirst(written)
    }
}
