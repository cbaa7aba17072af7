internal import CSystem

/// The client side of TLS on a connected, non-blocking socket. Not thread-safe.
final class TLSSession {
    /// The result of an operation, or what it waits for.
    enum Step: Equatable {
        case done(Int)
        case wantsRead
        case wantsWrite
        case closed
    }

    private let context: OpaquePointer
    private let connection: OpaquePointer

    /// - Parameters:
    ///   - host: The name or address that the server's certificate must match.
    ///   - caFile: The certificates to trust; nil for the system's.
    init(socket: Int32, host: String, caFile: String?) throws(RedisError) {
        guard let context = copenssl_create_context() else { throw .unavailable("TLS is not available") }
        self.context = context
        let isLoaded =
            caFile.map { SSL_CTX_load_verify_locations(context, $0, nil) } ?? SSL_CTX_set_default_verify_paths(context)
        guard isLoaded == 1, let connection = SSL_new(context) else {
            ERR_clear_error()
            SSL_CTX_free(context)
            throw .unavailable("the certificates to trust cannot be read\(caFile.map { ": \($0)" } ?? "")")
        }
        self.connection = connection
        guard copenssl_set_peer(connection, host) == 1, SSL_set_fd(connection, socket) == 1 else {
            throw .unavailable("TLS cannot be set up for this host")
        }
    }

    deinit {
        SSL_free(connection)
        SSL_CTX_free(context)
    }

    /// Continues the handshake. Throws if the server's certificate is not trusted, among other failures.
    func connect() throws(RedisError) -> Step {
        ERR_clear_error()
        let code = SSL_connect(connection)
        let step = step(code)
        if step == .closed {
            let verification = SSL_get_verify_result(connection)
            if verification != X509_V_OK, let reason = X509_verify_cert_error_string(verification) {
                throw .unavailable("the server's certificate is not trusted: \(String(cString: reason))")
            }
            throw .unavailable("the TLS handshake failed")
        }
        return step
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Step {
        ERR_clear_error()
        return step(SSL_read(connection, buffer.baseAddress, Int32(clamping: buffer.count)))
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Step {
        ERR_clear_error()
        return step(SSL_write(connection, bytes.baseAddress, Int32(clamping: bytes.count)))
    }

    private func step(_ code: Int32) -> Step {
        if code > 0 { return .done(Int(code)) }
        switch SSL_get_error(connection, code) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        default: return .closed
        }
    }
}
