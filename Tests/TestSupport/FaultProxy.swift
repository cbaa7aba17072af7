internal import CLinux
internal import Glibc
internal import Synchronization

/// A TCP proxy on 127.0.0.1 between a client and a real server, which delays, cuts, stalls or damages the streams.
///
/// It forwards bytes and knows no protocol. One thread serves all connections. ``faults`` can change at any time, and then apply to
/// open connections as well as to new ones.
package final class FaultProxy: Sendable {
    /// What happens to a stream of bytes once a number of bytes have passed.
    package enum Failure: Sendable, Equatable {
        /// Ends the connection in both directions with FIN.
        case close
        /// Ends the connection in both directions with RST.
        case reset
        /// Forwards no further byte in this direction, and leaves the connection open, even after the faults have changed.
        case stall
        /// Sends these bytes instead of those that follow, then ends the connection with FIN.
        case garbage([UInt8])
    }

    /// The faults of one direction.
    package struct Stream: Sendable, Equatable {
        /// The time each byte waits in the proxy.
        package var delay: Duration
        package var failure: Failure?
        /// The number of bytes, per connection and since the faults were set, that pass before the failure. The first byte that
        /// reaches or exceeds it triggers the failure.
        package var bytesBeforeFailure: Int

        package init(delay: Duration = .zero, failure: Failure? = nil, after bytes: Int = 0) {
            self.delay = delay
            self.failure = failure
            bytesBeforeFailure = bytes
        }
    }

    package struct Faults: Sendable, Equatable {
        /// Bytes from the client to the server.
        package var requests: Stream
        /// Bytes from the server to the client.
        package var responses: Stream
        /// Whether connecting fails with ECONNREFUSED. Open connections are not affected: see ``closeConnections()``.
        package var refusesConnections: Bool
        /// The number of times that failures are triggered, counted over all connections; nil for no limit.
        package var failureLimit: Int?

        package init(
            requests: Stream = Stream(), responses: Stream = Stream(), refusesConnections: Bool = false,
            failureLimit: Int? = nil
        ) {
            self.requests = requests
            self.responses = responses
            self.refusesConnections = refusesConnections
            self.failureLimit = failureLimit
        }

        package static let none = Faults()
        package static let refusing = Faults(refusesConnections: true)

        /// Adds `delay` to each round trip.
        package static func delay(_ delay: Duration) -> Faults { Faults(responses: Stream(delay: delay)) }
    }

    struct State {
        var faults = Faults()
        /// Grows with each change by a test.
        var generation = 0
        var target: Int
        var accepted = 0
        var failures = 0
        var mustCloseConnections = false
        var isStopped = false
    }

    /// The port to connect to.
    package let port: Int
    private let state: Mutex<State>
    /// An eventfd(2).
    private let wakeup: Int32
    /// A socket that is bound to the port and never listens. It reserves the port while no connections are accepted.
    private let reservation: Int32
    private let thread = Mutex<LoopbackThread?>(nil)
    /// The ``State/generation`` that the thread applies.
    private let applied = Mutex(0)

    /// Starts forwarding to a port of 127.0.0.1. The caller must call ``stop()``.
    package init(to target: Int, faults: Faults = .none) throws {
        (reservation, port) = try ProxySocket.bound(to: 0)
        wakeup = clinux_eventfd()
        guard wakeup >= 0 else { throw LoopbackFailure(operation: "eventfd", code: errno) }
        state = Mutex(State(faults: faults, target: target))
        // Listening before the thread runs, so that a client can connect at once.
        let listener = faults.refusesConnections ? nil : try ProxySocket.listening(on: port)
        let started = try LoopbackThread { [self] in run(listener) }
        thread.withLock { $0 = started }
    }

    deinit {
        close(reservation)
        close(wakeup)
    }

    /// The faults in force. Setting them returns once they apply.
    package var faults: Faults {
        get { state.withLock { $0.faults } }
        set {
            change { state in
                state.faults = newValue
                state.failures = 0
            }
        }
    }

    /// The port of 127.0.0.1 to which new connections are forwarded.
    package var target: Int {
        get { state.withLock { $0.target } }
        set { state.withLock { $0.target = newValue } }
    }

    /// The number of connections that were accepted.
    package var connections: Int { state.withLock { $0.accepted } }

    /// The number of failures that were triggered since the faults were set.
    package var failures: Int { state.withLock { $0.failures } }

    /// Ends all open connections with RST, and returns once they have ended.
    package func closeConnections() {
        change { $0.mustCloseConnections = true }
    }

    /// Ends all connections and the thread, and waits for it. A second call does nothing.
    package func stop() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        change { $0.isStopped = true }
        thread.join()
    }

    /// Changes the state, and waits until the thread applies it.
    private func change(_ body: (inout State) -> Void) {
        let generation = state.withLock { state in
            body(&state)
            state.generation += 1
            return state.generation
        }
        var one: UInt64 = 1
        write(wakeup, &one, 8)
        guard thread.withLock({ $0 != nil }) else { return }
        try? blockUntil("the proxy to apply a change", within: .seconds(10)) { applied.withLock { $0 >= generation } }
    }

    // MARK: The thread

    private func run(_ first: Int32?) {
        var listener = first
        var connections: [ProxyConnection] = []
        while true {
            let current = state.withLock { state in
                defer { state.mustCloseConnections = false }
                return state
            }
            if current.mustCloseConnections || current.isStopped {
                for connection in connections { connection.end(withReset: true) }
                connections.removeAll()
            }
            if current.faults.refusesConnections, let number = listener {
                close(number)
                listener = nil
            } else if !current.faults.refusesConnections, listener == nil {
                listener = try? ProxySocket.listening(on: port)
            }
            applied.withLock { $0 = current.generation }
            if current.isStopped { break }
            if let listener { accept(from: listener, into: &connections) }
            for connection in connections { connection.move(current, countFailure: countFailure) }
            connections.removeAll { $0.isEnded }
            wait(listener, connections)
        }
        if let listener { close(listener) }
    }

    /// Waits for a change of the faults, a connection, bytes to read or to write, or the time to forward delayed bytes.
    private func wait(_ listener: Int32?, _ connections: [ProxyConnection]) {
        var watched = [pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0)]
        if let listener { watched.append(pollfd(fd: listener, events: Int16(POLLIN), revents: 0)) }
        var limit: Duration?
        let now = ContinuousClock.now
        for connection in connections {
            watched += connection.interests(now)
            if let due = connection.nextDue(after: now) { limit = min(limit ?? .seconds(3600), due - now) }
        }
        // Rounded up, so that the bytes are due afterwards.
        let milliseconds = limit.map { Int32($0 / .milliseconds(1)) + 1 } ?? -1
        poll(&watched, nfds_t(watched.count), milliseconds)
        var count: UInt64 = 0
        read(wakeup, &count, 8)
    }

    private func accept(from listener: Int32, into connections: inout [ProxyConnection]) {
        while true {
            var peer = sockaddr_storage()
            let client = clinux_accept(listener, &peer)
            guard client >= 0 else { return }
            let target = state.withLock { state in
                state.accepted += 1
                return state.target
            }
            if let server = ProxySocket.connected(to: target) {
                ProxySocket.sendAtOnce(client)
                connections.append(ProxyConnection(client: client, server: server))
            } else {
                ProxySocket.reset(client)
            }
        }
    }

    /// Counts a failure that is about to be triggered. Returns false if the limit is reached.
    private func countFailure() -> Bool {
        state.withLock { state in
            if let limit = state.faults.failureLimit, state.failures >= limit { return false }
            state.failures += 1
            return true
        }
    }
}
