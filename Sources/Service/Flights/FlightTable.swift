/// Work that several callers share while it is in flight: the first one's call begins it, all get its outcome.
///
/// A caller that is cancelled leaves at once and holds up nobody. When the last one leaves, the work is cancelled;
/// whether that ends it is the work's to decide. A key is free again as soon as its work has ended, however it ended.
actor FlightTable<Key: Hashable & Sendable, Outcome: Sendable> {
    private struct Flight {
        var task: Task<Void, Never>
        var number: Int
        var waiters: [Int: CheckedContinuation<Outcome?, Never>] = [:]
    }

    /// What a caller gets.
    struct Landing {
        var outcome: Outcome
        /// The work was in flight already when the caller came.
        var joined: Bool
    }

    private var flights: [Key: Flight] = [:]
    private var lastNumber = 0

    /// Works in flight.
    var count: Int { flights.count }

    /// The outcome of the work in flight under the key, which `work` begins where there is none.
    ///
    /// - Returns: Nil when the calling task was cancelled.
    func outcome(of key: Key, _ work: @escaping @Sendable () async -> Outcome) async -> Landing? {
        let joined = flights[key] != nil
        if !joined { begin(key, work) }
        lastNumber += 1
        let number = lastNumber
        let outcome: Outcome? = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Outcome?, Never>) in
                if Task.isCancelled {
                    continuation.resume(returning: nil)
                    abandonIfUnwanted(key)
                } else {
                    flights[key]?.waiters[number] = continuation
                }
            }
        } onCancel: {
            Task { await self.leave(key, number) }
        }
        return outcome.map { Landing(outcome: $0, joined: joined) }
    }

    private func begin(_ key: Key, _ work: @escaping @Sendable () async -> Outcome) {
        lastNumber += 1
        let number = lastNumber
        let task = Task {
            let outcome = await work()
            self.land(key, number, outcome)
        }
        flights[key] = Flight(task: task, number: number)
    }

    private func land(_ key: Key, _ number: Int, _ outcome: Outcome) {
        // An abandoned flight's place may have been taken by another.
        guard let flight = flights[key], flight.number == number else { return }
        flights[key] = nil
        for waiter in flight.waiters.values { waiter.resume(returning: outcome) }
    }

    private func leave(_ key: Key, _ number: Int) {
        guard let waiter = flights[key]?.waiters.removeValue(forKey: number) else { return }
        waiter.resume(returning: nil)
        abandonIfUnwanted(key)
    }

    /// Cancels work that nobody waits for. It gives its place up, so that the next caller begins anew instead of
    /// getting a cancellation.
    private func abandonIfUnwanted(_ key: Key) {
        guard let flight = flights[key], flight.waiters.isEmpty else { return }
        flights[key] = nil
        flight.task.cancel()
    }
}
