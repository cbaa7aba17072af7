internal import Glibc

/// The settings of the engine.
package struct HTTPServerConfiguration: Sendable {
    /// Host name or address to listen on with TCP; `::` accepts IPv4 too. Empty: only ``unixPath``.
    /// Default `127.0.0.1`.
    package var host = "127.0.0.1"
    /// TCP port, 0…65535; 0 selects a free one. Default 8080.
    package var port = 8080
    /// Path of a Unix socket to listen on in addition. Default none.
    package var unixPath: String?
    /// Permission bits of the Unix socket's path, 0…0o777; connecting needs write permission. Default: 0o777 less the umask.
    package var unixMode: UInt32?
    /// Group of the Unix socket's path, by name or number. Default: the group of the process.
    package var unixGroup: String?
    /// Whether sockets that systemd passes (`LISTEN_FDS`) replace ``host``, ``port`` and ``unixPath``.
    /// Default true.
    package var usesSocketActivation = true
    /// Loop threads, 1…256. Default: processors online.
    package var threads = Processors.available
    /// Connections open at the same time, 1…1,000,000. At the limit the connections that have been idle longest are closed; if
    /// none is idle, new ones wait in the kernel's backlog. Default 8192.
    package var maxConnections = 8192
    /// Connections that one client (``ClientNetwork``) may have open at the same time, 1…1,000,000. Another one replaces its longest
    /// idle ones; if none is idle, it is reset. Trusted proxies and Unix sockets have no such limit. Default 256.
    package var maxConnectionsPerClient = 256
    /// Time for a whole request head, from its first byte, or from the connection's start for the first one. Default 10 s.
    package var headTimeout = Duration.seconds(10)
    /// Time that a connection may be idle between two requests. Default 75 s.
    package var idleTimeout = Duration.seconds(75)
    /// Time that ``HTTPServer/drain()`` gives open connections to end. Default 20 s.
    package var drainTimeout = Duration.seconds(20)
    /// Time after the start of draining in which clients that have begun to connect are still accepted. Default 500 ms.
    package var handshakeTimeout = Duration.milliseconds(500)
    /// Bytes of a request head, 256…1 MiB; more gets 431. Default 32 KiB.
    package var maxHeadBytes = 32 * 1024
    /// Bytes of a request target, 128 or more and at most ``maxHeadBytes``; more gets 414. Default 16 KiB.
    package var maxTargetBytes = 16 * 1024
    /// Bytes of a body without a sink that are read and dropped to keep the connection; it is closed if more follow.
    /// Default 64 KiB.
    package var maxDiscardedBytes = 64 * 1024
    /// Bytes of a body, whatever its sink allows; more gets 413. Default 64 MiB.
    package var maxBodyBytes = 64 * 1024 * 1024
    /// Time for the whole body of a request that a sink receives, from the head on; a longer transfer gets 408. Default 300 s.
    package var bodyTimeout = Duration.seconds(300)
    /// Time within which a client must receive a whole response, plus a second per ``responseBytesPerSecond``; a slower client is
    /// reset. The time in which a streamed body is produced does not count. Default 300 s.
    package var responseTimeout = Duration.seconds(300)
    /// See ``responseTimeout``.
    package static let responseBytesPerSecond = 16 * 1024
    /// Bytes per second below which the transfer of a body is aborted, in either direction, measured over ``bodyRateWindow``;
    /// 0 for no minimum. Default 256.
    package var minBodyRate = 256
    /// The time over which ``minBodyRate`` is measured. Default 30 s: a video player with a full buffer may pause that long.
    package var bodyRateWindow = Duration.seconds(30)
    /// Addresses, blocks (`10.0.0.0/8`) or `unix` of the proxies whose ``forwardedField`` is trusted. Default none.
    package var trustedProxies: [String] = []
    /// The fields that the trusted proxies write. The server ignores the others, which may be a client's. Default
    /// `X-Forwarded-For` and `X-Forwarded-Proto`.
    package var forwardedField = ForwardedField.xForwardedFor
    /// Whether the observer receives `Referer` and `User-Agent` of requests. Default false.
    package var recordsClientFields = false
    /// Creates the response to a request that the engine itself refuses; the engine sets its status to the error's. Called on a
    /// loop thread; must not block. Default: the error's sentence as text.
    package var errorResponse: @Sendable (HTTPProtocolError) -> HTTPResponse = { error in
        HTTPResponse(status: error.status, contentType: "text/plain; charset=utf-8", text: error.sentence + "\n")
    }
    /// Whether the kernel is asked about clients on this machine that have closed their sending half (see ``PeerProbe``). Tests
    /// turn it off to act as clients on another machine.
    var looksUpLocalPeers = true

    /// Every setting at its default.
    package init() {}

    /// Throws ``HTTPServerError/invalidSetting(name:problem:)`` for the first setting that is out of range.
    package func validate() throws(HTTPServerError) {
        try check("host", !host.isEmpty || unixPath != nil, "must not be empty without a Unix socket")
        try check("port", (0...65535).contains(port), "must be between 0 and 65535")
        try check("unix_path", unixPath.map { (1...107).contains($0.utf8.count) } ?? true, "must have 1 to 107 bytes")
        try check("unix_mode", unixMode.map { $0 <= 0o777 } ?? true, "must be between 0 and 0777")
        try check("threads", (1...256).contains(threads), "must be between 1 and 256")
        try check("max_connections", (1...1_000_000).contains(maxConnections), "must be between 1 and 1000000")
        try check(
            "max_connections_per_client", (1...1_000_000).contains(maxConnectionsPerClient), "must be between 1 and 1000000")
        try check("head_timeout", headTimeout > .zero, "must be longer than 0")
        try check("idle_timeout", idleTimeout > .zero, "must be longer than 0")
        try check("drain_timeout", drainTimeout >= .zero, "must not be negative")
        try check("handshake_timeout", handshakeTimeout >= .zero, "must not be negative")
        try check("max_head_bytes", (256...1 << 20).contains(maxHeadBytes), "must be between 256 and 1048576")
        let targets = 128...maxHeadBytes
        try check("max_target_bytes", targets.contains(maxTargetBytes), "must be between 128 and max_head_bytes")
        try check("max_discarded_bytes", maxDiscardedBytes >= 0, "must not be negative")
        try check("max_body_bytes", maxBodyBytes >= 0, "must not be negative")
        try check("min_body_rate", minBodyRate >= 0, "must not be negative")
        try check("body_timeout", bodyTimeout > .zero, "must be longer than 0")
        try check("response_timeout", responseTimeout > .zero, "must be longer than 0")
        try check("body_rate_window", bodyRateWindow > .zero, "must be longer than 0")
        _ = try parseTrustedProxies()
    }

    /// Parses ``trustedProxies``. Throws ``HTTPServerError/invalidSetting(name:problem:)`` if an entry is malformed.
    func parseTrustedProxies() throws(HTTPServerError) -> TrustedProxies {
        do {
            return try TrustedProxies(trustedProxies, forwardedField)
        } catch {
            throw .invalidSetting(
                name: "trusted_proxies", problem: "has \(error.entry), which is neither an address nor a block")
        }
    }

    private func check(_ name: String, _ holds: Bool, _ problem: String) throws(HTTPServerError) {
        guard holds else { throw .invalidSetting(name: name, problem: problem) }
    }

    /// Resolves ``host`` and listens there for a moment, on a free port. Blocks while a name server is asked.
    ///
    /// - Throws: ``HTTPServerError`` if the host is unknown or no address of this machine.
    package func checkHost() throws(HTTPServerError) {
        if !host.isEmpty { _ = try Listener.tcp(host: host, port: 0, count: 1) }
    }
}

/// The machine's processors.
package enum Processors {
    /// The number of processors online, at least one.
    package static var available: Int { max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))) }
}
