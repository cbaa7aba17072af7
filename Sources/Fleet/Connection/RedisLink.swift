internal import Glibc
internal import Synchronization
internal import SystemIO

/// Sends commands to a server. Higher-level protocols depend only on this interface, so tests can use a model of a server.
protocol RedisCommands: Sendable {
    /// Sends the commands in order, without waiting for replies in between, and returns the reply to each.
    ///
    /// - Parameter limit: The longest wait for all replies.
    /// - Throws: An error other than ``RedisError/refused(_:)`` if not every reply is known: each command may or may not have
    ///   been executed. Error replies are values.
    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue]

    /// Closes the current connection and reconnects, because the server may accept on a new connection what it refuses now.
    func drop(_ reason: RedisError)
}

extension RedisCommands {
    func drop(_ reason: RedisError) {}
}

/// A connection, driven by its own thread, which connects, writes, reads and reconnects.
///
/// Requests are pipelined. While no connection is up, a request fails at once. A request that misses its deadline fails; the
/// connection is closed if the server then stays silent for ``stallLimit``.
///
/// Thread-safe. Events run on the link's thread, which they must not block.
final class RedisLink: Sendable {
    enum Event: Sendable, Equatable {
        case connected
        /// An established connection was lost.
        case lost(RedisError)
        case failed(RedisError)

        /// Why there is no connection; nil if there is one.
        var error: RedisError? {
            switch self {
            case .connected: nil
            case .lost(let error), .failed(let error): error
            }
        }
    }

    private struct State {
        var isStarted = false
        var isClosing = false
        var isConnected = false
        var dropReason: RedisError?
        /// When a connection was last dropped.
        var lastDrop: Duration?
        /// Requests that the thread has not taken yet, with their bytes.
        var queue: [(PendingRequest, [UInt8])] = []
        /// The number of requests that are queued or wait for replies.
        var openCount = 0
    }

    /// The most requests that may wait for replies.
    private static let maxRequests = 4096
    /// How long a reply may be overdue before the connection is closed.
    private static let stallLimit: Duration = .seconds(2)
    private static let connectLimit: Duration = .seconds(1)
    /// The idle time after which a subscription is checked.
    private static let pingInterval: Duration = .seconds(3)
    /// The shortest time between two drops, which limits reconnections to a server that refuses every connection.
    private static let dropInterval: Duration = .seconds(2)
    private static let backoff = Backoff(first: .milliseconds(50), longest: .seconds(1))

    private let address: RedisAddress
    private let name: String
    private let channel: String?
    private let rights: ServerRights?
    private let time: TimeSource
    private let state = Mutex(State())
    private let wakeup = try? Wakeup()
    private let ended = Semaphore()

    /// - Parameters:
    ///   - name: The thread's name, at most 15 bytes.
    ///   - channel: The channel to subscribe to; nil for a connection for commands.
    ///   - rights: The rights to test on every new connection, which is closed if one of them is missing.
    init(
        _ address: RedisAddress, name: String, channel: String? = nil, rights: ServerRights? = nil,
        time: TimeSource = TimeSource.system
    ) {
        self.address = address
        self.name = name
        self.channel = channel
        self.rights = rights
        self.time = time
    }

    /// Starts the thread. Without a thread or a descriptor every request fails, as without a server.
    ///
    /// - Parameters:
    ///   - onEvent: Called for every change.
    ///   - onMessage: Called with the payload of every message.
    func start(
        onEvent: @escaping @Sendable (Event) -> Void = { _ in }, onMessage: @escaping @Sendable ([UInt8]) -> Void = { _ in }
    ) {
        guard let wakeup,
            state.withLock({ state in
                defer { state.isStarted = true }
                return !state.isStarted && !state.isClosing
            })
        else { return }
        guard let thread = SystemThread.start(name: name, { self.run(wakeup, onEvent, onMessage) }) else {
            state.withLock { $0.isStarted = false }
            onEvent(.failed(.unavailable("no thread can be started: \(SystemThread.shortage)")))
            return
        }
        thread.detach()
    }

    /// Ends the thread and waits for it, for up to two seconds: an unresponsive resolver cannot be interrupted. Blocks.
    func close() {
        let isRunning = state.withLock { state in
            state.isClosing = true
            return state.isStarted
        }
        if isRunning {
            wakeup?.signal()
            _ = ended.wait(for: .seconds(2))
            ended.signal()
        }
    }

    var isConnected: Bool { state.withLock { $0.isConnected } }

    /// Closes the current connection and reconnects. Has no effect within two seconds of the previous drop.
    func drop(_ reason: RedisError) {
        let now = time.now
        let isDue = state.withLock { state in
            if let last = state.lastDrop, now < last + Self.dropInterval { return false }
            (state.lastDrop, state.dropReason) = (now, reason)
            return true
        }
        if isDue { wakeup?.signal() }
    }

    // MARK: The thread

    private func run(_ wakeup: Wakeup, _ onEvent: (Event) -> Void, _ onMessage: ([UInt8]) -> Void) {
        var failures = 0
        while !state.withLock({ $0.isClosing }) {
            let failure: RedisError
            do throws(RedisError) {
                let session = try Session(
                    address, channel: channel, rights: rights, within: Self.connectLimit, time)
                failures = 0
                state.withLock { state in
                    state.dropReason = nil
                    state.isConnected = true
                }
                onEvent(.connected)
                failure = serve(session, wakeup, onMessage)
                onEvent(.lost(failure))
            } catch {
                failure = error
                onEvent(.failed(error))
            }
            failures += 1
            pause(for: Self.backoff.pause(after: failures), wakeup)
        }
        ended.signal()
    }

    /// Serves requests until the connection is lost or the link is closed.
    private func serve(_ session: Session, _ wakeup: Wakeup, _ onMessage: ([UInt8]) -> Void) -> RedisError {
        var reason = RedisError.unavailable("the connection is closed")
        do throws(RedisError) {
            try receive(session, onMessage)
            while true {
                let (queue, isClosing, drop) = state.withLock { state in
                    let queue = state.queue
                    state.queue = []
                    return (queue, state.isClosing, state.dropReason)
                }
                session.add(queue)
                if isClosing { break }
                if let drop { throw drop }
                try turn(session, wakeup, onMessage)
            }
        } catch {
            reason = error
        }
        let left = state.withLock { state in
            state.isConnected = false
            state.openCount = 0
            defer { state.queue = [] }
            return state.queue.map(\.0)
        }
        for request in session.requests + left { request.finish(.failure(reason)) }
        return reason
    }

    private func turn(_ session: Session, _ wakeup: Wakeup, _ onMessage: ([UInt8]) -> Void) throws(RedisError) {
        try session.write()
        let now = time.now
        var next = channel == nil ? now + .seconds(60) : try session.pingIfIdle(now, every: Self.pingInterval)
        if let deadline = try session.expire(now, stallLimit: Self.stallLimit) { next = min(next, deadline) }
        try session.write()
        var interests = [
            pollfd(fd: session.descriptor, events: Int16(POLLIN) | (session.wantsWrite ? Int16(POLLOUT) : 0), revents: 0),
            pollfd(fd: wakeup.number, events: Int16(POLLIN), revents: 0),
        ]
        // Adds a millisecond, so that the deadline has passed when poll returns.
        _ = poll(&interests, 2, Int32(clamping: (next - now).milliseconds + 1))
        if interests[1].revents != 0 { wakeup.clear() }
        if interests[0].revents != 0 { try receive(session, onMessage) }
    }

    private func receive(_ session: Session, _ onMessage: ([UInt8]) -> Void) throws(RedisError) {
        let finished = try session.read(now: time.now, onMessage)
        if finished > 0 { state.withLock { $0.openCount = max(0, $0.openCount - finished) } }
    }

    private func pause(for delay: Duration, _ wakeup: Wakeup) {
        let end = time.now + delay
        while time.now < end, !state.withLock({ $0.isClosing }) {
            var interest = pollfd(fd: wakeup.number, events: Int16(POLLIN), revents: 0)
            _ = poll(&interest, 1, Int32(clamping: (end - time.now).milliseconds + 1))
            wakeup.clear()
        }
    }
}

extension RedisLink: RedisCommands {
    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue] {
        if commands.isEmpty { return [] }
        if Task.isCancelled { throw .cancelled }
        let request = PendingRequest(commands.map(\.shape), deadline: time.now + limit)
        let bytes = commands.flatMap(\.bytes)
        let failure = state.withLock { state -> RedisError? in
            guard state.isConnected else { return .unavailable("no connection") }
            guard state.openCount < Self.maxRequests else { return .unavailable("too many commands wait for replies") }
            state.openCount += 1
            state.queue.append((request, bytes))
            return nil
        }
        if let failure { throw failure }
        wakeup?.signal()
        return try await request.replies()
    }
}
