internal import Synchronization
internal import SystemIO

/// How other threads speak to a loop: messages in order, and a wake-up. Every parked connection has at most one message
/// under way, which bounds the queue.
final class LoopMailbox: Sendable {
    enum Message: Sendable {
        /// The answer a parked connection waits for.
        case answer(ConnectionToken, HTTPResponse)
        /// The next bytes of a streamed body; the continuation tells whether they were sent.
        case chunk(ConnectionToken, [UInt8], CheckedContinuation<Bool, Never>)
        /// A streamed body ended, whole or broken off.
        case streamEnded(ConnectionToken, isWhole: Bool)
        /// Listening stops; what is open gets the time of the setting to end.
        case drain
        /// All connections are cut.
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

    /// Leaves a message. Returns false where the loop has ended and will not read it.
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

    /// All messages so far, in order.
    func take() -> [Message] {
        wakeup.clear()
        return state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Refuses messages from now on, and answers those that wait for an answer.
    func close() {
        let left = state.withLock { state in
            state.isClosed = true
            defer { state.messages = [] }
            return state.messages
        }
        for case .chunk(_, _, let continuation) in left { continuation.resume(returning: false) }
    }
}
