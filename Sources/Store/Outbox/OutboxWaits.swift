internal import Synchronization
internal import SystemIO

/// The callers that wait for the end of an attempt, or until the outbox is drained. Any thread.
final class OutboxWaits: Sendable {
    enum Event: Hashable {
        /// The end of the next attempt to send a put with this sequence.
        case put(RenditionName, Int64)
        /// The end of the next attempt to send the deletion of an id.
        case deletion(ObjectID)
        /// Nothing is left that can be sent.
        case drained
    }

    private struct Wait {
        let event: Event
        /// Whether the entry was sent; nil before the event.
        var isSent: Bool?
    }

    private struct State {
        var waits: [Int: Wait] = [:]
        var lastNumber = 0
        var isClosed = false
    }

    private let state = Mutex(State())
    private let waiters = Waiters()

    /// Registers a wait, which an event ends from now on.
    ///
    /// - Returns: Its number, for ``wait(_:within:)`` or ``cancel(_:)``; nil if the outbox is closed.
    func register(_ event: Event) -> Int? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            state.lastNumber += 1
            state.waits[state.lastNumber] = Wait(event: event)
            return state.lastNumber
        }
    }

    func cancel(_ number: Int) {
        state.withLock { $0.waits[number] = nil }
    }

    /// Suspends until the event, until `limit` has passed, or until the task is cancelled.
    ///
    /// - Parameter registered: Called after the waiter is registered, unless the outbox is closed, so that an event during the
    ///   call ends the wait.
    /// - Returns: Whether the event came and the entry was sent.
    func wait(for event: Event, within limit: Duration, _ registered: () -> Void) async -> Bool {
        guard let number = register(event) else { return false }
        registered()
        return await wait(number, within: limit)
    }

    /// Suspends until the event of a registered wait, until `limit` has passed, or until the task is cancelled.
    ///
    /// - Returns: Whether the event came and the entry was sent.
    func wait(_ number: Int, within limit: Duration) async -> Bool {
        await waiters.wait(within: limit) { state.withLock { $0.waits[number]?.isSent } != nil }
        return state.withLock { $0.waits.removeValue(forKey: number) }?.isSent ?? false
    }

    func end(_ event: Event, isSent: Bool) {
        end(isSent: isSent) { $0 == event }
    }

    /// Ends the waits for puts of an id, which were not sent.
    func endPuts(of id: ObjectID) {
        end(isSent: false) { event in
            if case .put(let name, _) = event { name.id == id } else { false }
        }
    }

    /// Ends all waits. Later ones end at once.
    func close() {
        state.withLock { $0.isClosed = true }
        end(isSent: false) { _ in true }
    }

    private func end(isSent: Bool, _ isEnded: (Event) -> Bool) {
        state.withLock { state in
            for (number, wait) in state.waits where wait.isSent == nil && isEnded(wait.event) {
                state.waits[number]?.isSent = isSent
            }
        }
        waiters.notify()
    }
}

extension OutboxEntry {
    var attempt: OutboxWaits.Event {
        switch change {
        case .put(let name, _, _): .put(name, sequence)
        case .delete: .deletion(id)
        }
    }
}
