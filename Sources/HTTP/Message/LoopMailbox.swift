internal import Synchronization
internal import SystemIO

/// A queue of messages from other threads to a loop, which it wakes. It is bounded, because each waiting connection has at most
/// one message in progress.
final class LoopMailbox: Sendable {
    enum Message: Sendable {
        case response(ConnectionToken, HTTPResponse)
        /// The next bytes of a streamed body. The continuation receives whether they were sent.
        case chunk(ConnectionToken, [UInt8], CheckedContinuation<Bool, Never>)
        /// The next piece of a connection's file is now in the page cache.
        case loaded(ConnectionToken)
        case streamEnded(ConnectionToken, isComplete: Bool)
        /// A ping, which the loop answers in its next turn.
        case ping(LoopPing)
        /// Stops listening; open connections may continue for the drain timeout.
        case drain
        /// Closes all connections.
        case stop
    }

    private struct State {
        var messages: [Message] = []
        var isClosed = false
    }

    let wakeup: Wakeup
    private let state = Mutex(State())

    init() throws(SystemError) {
        wakeup = try Wakeup()
    }

    /// Queues a message. Returns false if the loop has ended and will not read it.
    @discardableResult
    func post(_ message: Message) -> Bool {
        let (isAccepted, wasEmpty) = state.withLock { state in
            if state.isClosed { return (false, false) }
            state.messages.append(message)
            return (true, state.messages.count == 1)
        }
        if wasEmpty { wakeup.signal() }
        return isAccepted
    }

    /// Removes and returns all messages, in order.
    func take() -> [Message] {
        wakeup.clear()
        return state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Refuses further messages, and resumes the continuations of queued messages.
    func close() {
        let left = state.withLock { state in
            state.isClosed = true
            defer { state.messages = [] }
            return state.messages
        }
        for case .chunk(_, _, let continuation) in left { continuation.resume(returning: false) }
    }
}

/// A ping to all loops, answered once each loop has taken a turn. Any thread.
final class LoopPing: Sendable {
    private let missing: Atomic<Int>
    private let action: @Sendable () -> Void

    /// - Parameter action: Called on the last loop that answers; must not block.
    init(loops: Int, _ action: @escaping @Sendable () -> Void) {
        missing = Atomic(loops)
        self.action = action
    }

    func answer() {
        if missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { action() }
    }
}

/// Identifies a connection of a loop: its descriptor, and a generation that distinguishes it from earlier connections with the
/// same descriptor.
struct ConnectionToken: Sendable, Hashable {
    let descriptor: Int32
    /// Never 0.
    let generation: UInt32
}

extension ConnectionToken {
    /// The encoding for epoll. Values below 2^32 are reserved for descriptors that are not connections.
    var encoded: UInt64 { UInt64(generation) << 32 | UInt64(UInt32(bitPattern: descriptor)) }

    init(encoded: UInt64) {
        descriptor = Int32(bitPattern: UInt32(truncatingIfNeeded: encoded))
        generation = UInt32(encoded >> 32)
    }
}
