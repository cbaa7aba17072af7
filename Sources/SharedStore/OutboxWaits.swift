internal import Synchronization
internal import SystemIO

/// The callers that wait for the end of an attempt, or until the outbox is drained. Any thread.
final class OutboxWaits: Sendable {
    enum Event: Hashable {
        /// The end of the next attempt to send a put.
        case put(id: String, fileExtension: String)
        /// The end of the next attempt to send the deletion of an id.
        case deletion(id: String)
        /// Nothing can be sent any more.
        case drained
    }

    private struct Waiter {
        let event: Event
        let continuation: CheckedContinuation<Bool, Never>
        /// Ends the wait.
        var deadline: Deadline?
    }

    private struct State {
        var waiters: [UInt64: Waiter] = [:]
        var lastNumber: UInt64 = 0
        var isClosed = false
    }

    private let state = Mutex(State())

    /// Suspends until the event, or until `limit` has passed.
    ///
    /// - Parameter registered: Called after the registration, unless the outbox is closed: an event during the call ends the
    ///   wait.
    /// - Returns: Whether the event came and the entry was sent.
    func wait(for event: Event, within limit: Duration, _ registered: () -> Void) async -> Bool {
        await withCheckedContinuation { continuation in
            let number = state.withLock { state -> UInt64? in
                guard !state.isClosed else { return nil }
                state.lastNumber += 1
                state.waiters[state.lastNumber] = Waiter(event: event, continuation: continuation)
                return state.lastNumber
            }
            guard let number else { return continuation.resume(returning: false) }
            registered()
            let deadline = Deadline(after: limit) { [weak self] in
                let waiter = self?.state.withLock { $0.waiters.removeValue(forKey: number) }
                waiter?.continuation.resume(returning: false)
            }
            state.withLock { $0.waiters[number]?.deadline = deadline }
        }
    }

    /// Ends the waits for an event.
    func end(_ event: Event, isSent: Bool) {
        end(isSent: isSent) { $0 == event }
    }

    /// Ends the waits for puts of an id, which were not sent.
    func endPuts(of id: String) {
        end(isSent: false) { event in
            if case .put(id, _) = event { true } else { false }
        }
    }

    /// Ends all waits. Later ones end at once.
    func close() {
        state.withLock { $0.isClosed = true }
        end(isSent: false) { _ in true }
    }

    private func end(isSent: Bool, _ isEnded: (Event) -> Bool) {
        let ended = state.withLock { state in
            let ended = state.waiters.filter { isEnded($0.value.event) }
            for number in ended.keys { state.waiters[number] = nil }
            return ended.values
        }
        for waiter in ended { waiter.continuation.resume(returning: isSent) }
    }
}

extension OutboxEntry {
    /// The end of an attempt to send the entry.
    var attempt: OutboxWaits.Event {
        switch change {
        case .put(let name, _, _): .put(id: name.id, fileExtension: name.fileExtension)
        case .delete: .deletion(id: id)
        }
    }
}
