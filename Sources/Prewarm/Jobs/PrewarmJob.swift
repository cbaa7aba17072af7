internal import Synchronization

/// A list of entries that somebody wants in the cache, and how far it is. Any thread.
package final class PrewarmJob: Sendable {
    /// What does not change.
    package struct Order: Sendable {
        /// 32 hexadecimal digits.
        package let id: String
        package let entries: [PrewarmEntry]
        /// Attempts after the first, of each entry.
        let retries: Int
        /// Entries at once.
        let concurrency: Int

        package init(id: String, entries: [PrewarmEntry], retries: Int, concurrency: Int) {
            self.id = id
            self.entries = entries
            self.retries = retries
            self.concurrency = concurrency
        }
    }

    /// How far it is, at one moment.
    struct Progress: Sendable {
        var totals = PrewarmTotals()
        var state = State.waiting
        /// Outcomes in the order in which they came, each with its entry's number.
        var outcomes: [(number: Int, outcome: PrewarmOutcome)] = []
    }

    enum State: String, Sendable {
        case waiting
        case running
        case done
        case cancelled
    }

    let order: Order
    private let state: Mutex<(progress: Progress, open: [Int], running: Int)>

    /// - Parameters:
    ///   - outcomes: Those known from before a restart.
    ///   - isCancelled: Whether it was called off then.
    init(_ order: Order, outcomes: [(number: Int, outcome: PrewarmOutcome)] = [], isCancelled: Bool = false) {
        self.order = order
        var progress = Progress()
        var open = Set(order.entries.indices)
        for known in outcomes where open.remove(known.number) != nil {
            progress.totals.add(known.outcome)
            progress.outcomes.append(known)
        }
        if isCancelled { progress.state = .cancelled } else if open.isEmpty { progress.state = .done }
        state = Mutex((progress, isCancelled ? [] : open.sorted(by: >), 0))
    }

    var progress: Progress { state.withLock { $0.progress } }

    /// Entries that are yet to be done, those under way included.
    var remaining: Int { state.withLock { $0.open.count + $0.running } }

    /// Whether nothing more will come of it.
    var isOver: Bool { state.withLock { $0.open.isEmpty && $0.running == 0 } }

    /// The next entry to begin with; nil when all have been begun or as many as may be are under way.
    func take() -> Int? {
        state.withLock { state in
            guard state.running < order.concurrency, let number = state.open.popLast() else { return nil }
            state.running += 1
            state.progress.state = .running
            return number
        }
    }

    /// Notes what came of an entry that was taken; nil puts it back.
    func finish(_ number: Int, _ outcome: PrewarmOutcome?) {
        state.withLock { state in
            state.running -= 1
            if let outcome {
                state.progress.totals.add(outcome)
                state.progress.outcomes.append((number, outcome))
            } else if state.progress.state != .cancelled {
                state.open.append(number)
            }
            if state.open.isEmpty && state.running == 0 && state.progress.state != .cancelled { state.progress.state = .done }
        }
    }

    /// Begins no more entries.
    func cancel() {
        state.withLock { state in
            guard state.progress.state != .done else { return }
            state.progress.state = .cancelled
            state.open = []
        }
    }
}
