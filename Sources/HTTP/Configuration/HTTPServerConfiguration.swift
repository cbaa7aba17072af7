/// The server's settings. Values must be in the documented ranges, which are not checked.
package struct HTTPServerConfiguration: Sendable {
    /// The host name or address for TCP; `::` also accepts IPv4. Nil listens only on ``unixPath``.
    package var host: String? = "127.0.0.1"
    /// The TCP port, 0…65535; 0 selects a free port.
    package var port = 8080
    /// The path of an additional Unix socket.
    package var unixPath: String?
    /// Permission bits of the Unix socket's path, 0…0o777; connecting needs write permission. Nil means 0o777 less the umask.
    package var unixMode: UInt32?
    /// The group of the Unix socket's path, by name or number. Nil means the group of the process.
    package var unixGroup: String?
    /// Whether sockets passed by systemd (`LISTEN_FDS`) replace ``host``, ``port`` and ``unixPath``.
    package var usesSocketActivation = true
    /// The number of loop threads, 1…256. Nil means one per processor.
    package var threads: Int?
    /// The maximum number of open connections, 1…1,000,000. At the limit, the longest idle connections are closed; if none is
    /// idle, new connections wait in the kernel's backlog.
    package var maxConnections = 8192
    /// The maximum number of open connections per client (``ClientNetwork``), 1…1,000,000. A further connection closes the
    /// client's longest idle ones; if none is idle, it waits up to five seconds and then gets 503. Exempt are trusted proxies,
    /// Unix sockets, and proxies on this machine or a private network, recognized by the fields that they add.
    package var maxConnectionsPerClient = 256
    /// The timeout for a whole request head, from its first byte, or from the start of the connection for the first request.
    package var headTimeout = Duration.seconds(10)
    /// The idle timeout between two requests of a connection.
    package var idleTimeout = Duration.seconds(75)
    /// How long ``HTTPServer/drain()`` lets open connections continue.
    package var drainTimeout = Duration.seconds(20)
    /// How long after the start of draining clients that have begun to connect are still accepted.
    package var handshakeTimeout = Duration.milliseconds(500)
    /// The maximum size of a request head in bytes, 256…1 MiB; larger heads get 431.
    package var maxHeadBytes = 32 * 1024
    /// The maximum length of a request target in bytes, from 128 to ``maxHeadBytes``; longer targets get 414.
    package var maxTargetBytes = 16 * 1024
    /// How many bytes of a body without a sink are read and discarded to keep the connection, which is closed if more follow.
    package var maxDiscardedBytes = 64 * 1024
    /// The maximum size of a body in bytes, whatever its sink allows; larger bodies get 413.
    package var maxBodyBytes = 64 * 1024 * 1024
    /// The timeout for receiving a whole body with a sink, measured from the head; a longer transfer gets 408.
    package var bodyTimeout = Duration.seconds(300)
    /// The timeout for sending a whole response, plus a second per ``responseBytesPerSecond`` bytes; a slower client is reset.
    /// Time spent producing a streamed body does not count.
    package var responseTimeout = Duration.seconds(300)
    /// See ``responseTimeout``.
    package static let responseBytesPerSecond = 16 * 1024
    /// The minimum transfer rate of a body in either direction, in bytes per second over ``bodyRateWindow``. A slower transfer
    /// is aborted; 0 disables the check.
    package var minBodyRate = 256
    /// The window for ``minBodyRate``. A video player with a full buffer may pause for half a minute.
    package var bodyRateWindow = Duration.seconds(30)
    /// The proxies whose ``forwardedField`` is trusted.
    package var trustedProxies = ClientList()
    /// The fields that the trusted proxies write. The server ignores all others, because they may come from the client.
    package var forwardedField = ForwardedField.xForwardedFor
    /// Whether the observer receives the `Referer` and `User-Agent` of requests.
    package var recordsClientFields = false
    /// Whether to ask the kernel about clients on this machine that have closed their sending half (see ``PeerProbe``). Tests
    /// disable this to simulate clients on another machine.
    var looksUpLocalPeers = true

    /// Creates a configuration with default settings.
    package init() {}
}

/// The fields by which proxies report the client and its scheme.
///
/// A proxy writes one kind and forwards the client's fields of the other kind, so only the written kind can be trusted.
package enum ForwardedField: String, Sendable, CaseIterable {
    /// `X-Forwarded-For` and `X-Forwarded-Proto`.
    case xForwardedFor = "x-forwarded-for"
    /// `Forwarded` (RFC 7239).
    case forwarded
}
