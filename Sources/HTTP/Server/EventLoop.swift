internal import SystemIO

/// One thread's share of the server: its listeners, its connections, and the order in which it serves them.
///
/// Created on its thread, which it never leaves, so nothing is locked; other threads reach it through its ``LoopMailbox``. The
/// ``Acceptor`` accepts connections, and the ``ConnectionDriver`` serves them.
final class EventLoop {
    /// How long a connection must have been idle before it may be closed in favor of a new one.
    private static let expendableAfter: UInt64 = 1_000_000_000
    /// How long a connection may stay idle after draining has begun. Closing it at once would lose a request that is already on
    /// its way; within this time, the request is answered with `Connection: close`.
    private static let idleGrace: UInt64 = 500_000_000
    /// The interval between searches for idle connections of clients at their limits.
    private static let searchInterval: UInt64 = 50_000_000
    /// The minimum time of listening after draining has begun. Handshakes that another processor starts at that moment become
    /// visible within this time.
    private static let settlingTime: UInt64 = 10_000_000

    /// The times of a drain, in nanoseconds of the loop's clock.
    private struct Drain {
        let start: UInt64
        /// When the remaining connections are closed.
        var end: UInt64
    }

    private let settings: LoopSettings
    private let mailbox: LoopMailbox
    private let poller: Poller
    private let connections = ConnectionTable()
    private let clock = LoopClock()
    private let acceptor: Acceptor
    private let driver: ConnectionDriver
    private var scheduling = ThreadScheduling()
    private var turn: UInt64 = 0
    /// When the deadlines are checked next.
    private var nextSweep: UInt64 = 0
    /// Nil while the server accepts requests.
    private var drain: Drain?
    private var held = HeldConnections()
    /// The earliest time of the next search for idle connections of clients at their limits, which visits all connections.
    private var nextSearch: UInt64 = 0
    /// The number of recognized proxies at the last check of held connections.
    private var knownProxies = 0

    init(_ parts: LoopParts) {
        settings = parts.settings
        mailbox = parts.mailbox
        poller = parts.poller
        acceptor = Acceptor(parts.takeListeners(), poller: parts.poller, limit: parts.settings.connectionLimit)
        driver = ConnectionDriver(
            settings: parts.settings, mailbox: parts.mailbox, connections: connections, clock: clock,
            log: parts.log)
    }

    /// Serves until the server is drained or stopped.
    func run() {
        var reports = Poller.Reports()
        while drain == nil || acceptor.isOpen || connections.count > 0 {
            poller.wait(&reports, timeout: timeout)
            clock.update()
            turn &+= 1
            let closedBefore = driver.closedCount
            let hasMessages = serve(reports)
            if hasMessages { readMessages() }
            driver.serveQueued()
            driver.sendStaged()
            // The end of a connection lets another one be accepted.
            if driver.closedCount != closedBefore {
                if acceptor.isPaused { acceptor.resume() }
                serveHeld()
            } else if settings.connectionLimit.unlistedProxyCount != knownProxies {
                serveHeld()
            }
            if clock.now >= nextSweep { sweep() }
            if turn % ThreadScheduling.turnsBetweenUpdates == 0 { scheduling.update() }
        }
        mailbox.close()
        driver.flushLog()
    }

    /// Milliseconds until work that no report announces; -1 if there is none.
    private var timeout: Int32 {
        if driver.hasQueued { return 0 }
        // A busy loop updates its scheduling before it sleeps.
        let isAsleep = connections.count == 0 && held.isEmpty && !acceptor.isPaused && !scheduling.isBusy && !driver.hasUnlogged
        if isAsleep, drain == nil { return -1 }
        return Int32(clamping: (nextSweep - min(nextSweep, clock.now)) / 1_000_000 + 1)
    }

    /// Serves all poller reports in three steps: reads from all connections, answers all requests, sends all responses. The
    /// code of each step, especially the kernel's, fills the processor's instruction cache; taking the three steps for each
    /// connection would reload it every time.
    ///
    /// - Returns: Whether there are messages for the loop.
    private func serve(_ reports: borrowing Poller.Reports) -> Bool {
        var hasMessages = false
        for index in 0..<reports.count {
            let token = reports.token(index)
            if token == LoopParts.mailboxToken {
                hasMessages = true
            } else if token < LoopParts.mailboxToken {
                // Accepting may close connections that seem to be idle.
                driver.serveArrivals()
                accept(from: Int(token))
            } else if let connection = connections.find(ConnectionToken(encoded: token)) {
                driver.report(reports.readiness(index), to: connection)
            }
        }
        driver.serveArrivals()
        driver.sendStaged()
        return hasMessages
    }

    private func readMessages() {
        for message in mailbox.take() {
            switch message {
            case .response(let token, let response): driver.resume(token, with: response)
            case .chunk(let token, let bytes, let continuation): driver.sendChunk(token, bytes, continuation)
            case .loaded(let token): driver.continueSending(token)
            case .streamEnded(let token, let isComplete): driver.endStream(token, isComplete: isComplete)
            case .ping(let ping): ping.answer()
            case .drain: startDraining(within: settings.configuration.drainTimeout.nanoseconds)
            case .stop: startDraining(within: 0)
            }
        }
    }

    // MARK: - Accepting

    /// Accepts from a listener. Returns whether more connections may be waiting there.
    @discardableResult
    private func accept(from index: Int) -> Bool {
        let mayHaveMore = acceptor.accept(from: index, turn: turn, closeIdle: { closeLongestIdle() }) { socket, peer in
            let connection = Connection(socket: socket, generation: connections.nextGeneration(), peer: peer)
            guard let client = settings.connectionLimit.client(of: peer), !mayConnect(client) else { return start(connection) }
            if drain != nil || !held.hold(connection, of: client, at: clock.now) { refuse(connection) }
        }
        if acceptor.isPaused || !held.isEmpty { sweepSoon() }
        return mayHaveMore
    }

    private func start(_ connection: Connection) {
        driver.start(connection)
        guard connection.phase != .closed else { return }
        let token = connection.token
        if !poller.addConnection(token.descriptor, token: token.encoded) { driver.close(connection) }
    }

    /// Answers the next request of a connection with 503 and then closes it.
    private func refuse(_ connection: Connection) {
        settings.connectionLimit.refuse(connection.peer, at: clock.now)
        let isLast = settings.connectionLimit.hasManyRefused
        connection.isRefused = true
        start(connection)
        if isLast { driver.endRefused(connection) }
    }

    /// Serves the held connections whose clients may now have another one.
    private func serveHeld() {
        knownProxies = settings.connectionLimit.unlistedProxyCount
        for client in held.clients {
            while !settings.connectionLimit.isReached, !settings.connectionLimit.isReached(by: client),
                let connection = held.next(of: client)
            {
                start(connection)
            }
        }
    }

    /// Whether a client may have another connection. If it is at its limit, closes its longest idle connections.
    private func mayConnect(_ client: ClientNetwork) -> Bool {
        // Held connections, which came earlier, are served first.
        if held.contains(client) { return false }
        guard settings.connectionLimit.isReached(by: client) else { return true }
        guard clock.now >= nextSearch else { return false }
        nextSearch = clock.now + Self.searchInterval
        return closeLongestIdle { $0.client == client }
    }

    /// Closes the longest idle connections. Returns false if none has been idle long enough.
    ///
    /// - Parameter condition: Selects the connections that may be closed.
    @discardableResult
    private func closeLongestIdle(where condition: (Connection) -> Bool = { _ in true }) -> Bool {
        let limit = clock.now - min(clock.now, Self.expendableAfter)
        let idle = connections.filter { $0.isIdle && $0.idleSince <= limit && condition($0) }
            .sorted { $0.idleSince < $1.idleSince }
        for connection in idle.prefix(max(1, idle.count / 8)) { driver.close(connection) }
        return !idle.isEmpty
    }

    // MARK: - Deadlines

    /// Schedules the next sweep within 50 ms, because clients are waiting for its effect.
    private func sweepSoon() {
        nextSweep = min(nextSweep, clock.now + 50_000_000)
    }

    /// Checks all deadlines. Iterating over 8,000 connections takes tens of microseconds several times per second, which is
    /// less than an ordered structure would cost on the hot path.
    private func sweep() {
        nextSweep = clock.now + settings.sweepInterval
        let isContended = settings.connectionLimit.isContended
        if !held.isEmpty {
            closeLongestIdle { connection in connection.client.map { held.contains($0) } ?? false }
            serveHeld()
            for connection in held.expired(at: clock.now) { refuse(connection) }
        }
        if isContended || drain != nil || !held.isEmpty { sweepSoon() }
        let now = clock.now
        for connection in connections.filter({ $0.deadline <= now }) { driver.expire(connection) }
        if let drain { proceed(drain) }
        if isContended { closeLongestIdle() }
        acceptor.resume()
        driver.flushLog()
        scheduling.update()
    }

    // MARK: - Draining

    /// Refuses new clients and lets the requests in progress finish.
    ///
    /// - Parameter timeout: Nanoseconds until the remaining connections are closed.
    private func startDraining(within timeout: UInt64) {
        driver.startDraining()
        for connection in held.removeAll() { refuse(connection) }
        let end = clock.now + timeout
        if let earlier = drain {
            drain = Drain(start: earlier.start, end: min(earlier.end, end))
        } else {
            acceptor.refuseNewClients()
            drain = Drain(start: clock.now, end: end)
        }
        if let drain { proceed(drain) }
        nextSweep = min(nextSweep, clock.now + Self.settlingTime)
    }

    /// Stops listening once all clients that had begun to connect are accepted, and closes the connections whose time is up.
    private func proceed(_ drain: Drain) {
        let now = clock.now
        let isOver = now >= drain.end
        let mayClose = now >= drain.start + Self.settlingTime && acceptor.isOpen
        if isOver
            || mayClose && (now >= drain.start + settings.configuration.handshakeTimeout.nanoseconds || acceptor.isSettled)
        {
            acceptor.close { index in while accept(from: index) {} }
        }
        let expired = connections.filter { connection in
            isOver || connection.isIdle && now >= max(connection.idleSince, drain.start) + Self.idleGrace
        }
        for connection in expired { driver.close(connection) }
    }
}
