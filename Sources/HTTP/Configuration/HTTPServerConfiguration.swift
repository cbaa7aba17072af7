/// The settings of the engine. Values must be in the documented ranges, which are not checked.
package struct HTTPServerConfiguration: Sendable {
    /// Host name or address to listen on with TCP; `::` accepts IPv4 too. Nil listens on ``unixPath`` only.
    package var host: String? = "127.0.0.1"
    /// TCP port, 0…65535; 0 selects a free one.
    package var port = 8080
    /// Path of a Unix socket to listen on in addition.
    package var unixPath: String?
    /// Permission bits of the Unix socket's path, 0…0o777; connecting needs write permission. Nil means 0o777 less the umask.
    package var unixMode: UInt32?
    /// Group of the Unix socket's path, by name or number. Nil means the group of the process.
    package var unixGroup: String?
    /// Whether sockets that systemd passes (`LISTEN_FDS`) replace ``host``, ``port`` and ``unixPath``.
    package var usesSocketActivation = true
    /// Loop threads, 1…256. Nil means one per processor.
    package var threads: Int?
    /// Connections open at the same time, 1…1,000,000. At the limit the connections that have been idle longest are closed; if
    /// none is idle, new ones wait in the kernel's backlog.
    package var maxConnections = 8192
    /// Connections that one client (``ClientNetwork``) may have open at the same time, 1…1,000,000. A further connection closes the
    /// client's longest idle ones; if none is idle, it waits up to five seconds and then gets 503. The limit does not apply to trusted
    /// proxies, to Unix sockets, or to proxies on this machine or a private network, which are recognized by the fields that they add.
    package var maxConnectionsPerClient = 256
    /// Time for a whole request head, from its first byte, or from the connection's start for the first request.
    package var headTimeout = Duration.seconds(10)
    /// Time that a connection may be idle between two requests.
    package var idleTimeout = Duration.seconds(75)
    /// Time that ``HTTPServer/drain()`` gives open connections to end.
    package var drainTimeout = Duration.seconds(20)
    /// Time after the start of draining in which clients that have begun to connect are still accepted.
    package var handshakeTimeout = Duration.milliseconds(500)
    /// Bytes of a request head, 256…1 MiB; more gets 431.
    package var maxHeadBytes = 32 * 1024
    /// Bytes of a request target, 128 or more and at most ``maxHeadBytes``; more gets 414.
    package var maxTargetBytes = 16 * 1024
    /// Bytes of a body without a sink that are read and dropped to keep the connection; it is closed if more follow.
    package var maxDiscardedBytes = 64 * 1024
    /// Bytes of a body, whatever its sink allows; more gets 413.
    package var maxBodyBytes = 64 * 1024 * 1024
    /// Time for the whole body of a request that a sink receives, measured from the head; a longer transfer gets 408.
    package var bodyTimeout = Duration.seconds(300)
    /// Time within which a client must receive a whole response, plus a second per ``responseBytesPerSecond``; a slower client is
    /// reset. The time in which a streamed body is produced does not count.
    package var responseTimeout = Duration.seconds(300)
    /// See ``responseTimeout``.
    package static let responseBytesPerSecond = 16 * 1024
    /// Bytes per second below which the transfer of a body is aborted, in either direction, measured over ``bodyRateWindow``;
    /// 0 for no minimum.
    package var minBodyRate = 256
    /// The time over which ``minBodyRate`` is measured. A video player with a full buffer may pause for half a minute.
    package var bodyRateWindow = Duration.seconds(30)
    /// The proxies whose ``forwardedField`` is trusted.
    package var trustedProxies = ClientList()
    /// The fields that the trusted proxies write. The server ignores the others, which a client may have sent.
    package var forwardedField = ForwardedField.xForwardedFor
    /// Whether the observer receives `Referer` and `User-Agent` of requests.
    package var recordsClientFields = false
    /// Whether the kernel is asked about clients on this machine that have closed their sending half (see ``PeerProbe``). Tests
    /// turn it off to act as clients on another machine.
    var looksUpLocalPeers = true

    /// Every setting at its default.
    package init() {}
}

/// The fields in which proxies report the client and its scheme.
///
/// A proxy writes one kind and forwards the client's fields of the other, so only the kind that the proxies write can be trusted.
package enum ForwardedField: String, Sendable, CaseIterable {
    /// `X-Forwarded-For` and `X-Forwarded-Proto`.
    case xForwardedFor = "x-forwarded-for"
    /// `Forwarded` (RFC 7239).
    case forwarded
}
