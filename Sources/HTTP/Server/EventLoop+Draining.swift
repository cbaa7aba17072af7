/// Ending in order.
extension EventLoop {
    /// How long a connection may stay idle after listening has stopped. A request that is on its way to a connection that
    /// was just found idle would be lost by closing at once; in this time it is answered, with `Connection: close`.
    private static let idleGrace: UInt64 = 500_000_000

    /// Stops listening and lets what is under way end.
    ///
    /// - Parameter timeout: Nanoseconds until what is left is cut off.
    func beginDraining(within timeout: UInt64) {
        sendStaged()
        let end = clock.now + timeout
        if let drain {
            self.drain = (min(drain.idle, end), min(drain.all, end))
        } else {
            // Whoever is in the backlog has been let in by the kernel, and would be reset by closing it.
            if isAcceptingPaused { resumeAccepting() }
            for index in listeners.indices { while accept(from: index) {} }
            if isAcceptingPaused { settings.admission.resume() } else { poller.remove(listeners) }
            isAcceptingPaused = false
            listeners = []
            drain = (min(clock.now + Self.idleGrace, end), end)
        }
        if let drain { closeDrained(drain) }
        sweepSoon()
    }

    /// Closes the connections whose time is over.
    func closeDrained(_ drain: (idle: UInt64, all: UInt64)) {
        let now = clock.now
        if now >= drain.all {
            for connection in connections.filter({ _ in true }) { close(connection) }
        } else if now >= drain.idle {
            for connection in connections.filter(\.isIdle) { close(connection) }
        }
    }
}
