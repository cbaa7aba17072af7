internal import Synchronization

/// A run over a list: what is known from before, what comes in now, and the sums. Any thread.
package final class PrewarmRun: Sendable {
    private struct State {
        var outcomes: [PrewarmOutcome?]
        var totals = PrewarmTotals()
        var journalError: String?
    }

    package let entries: [PrewarmEntry]
    /// Entries done with before this run.
    let resumed: Int
    private let journal: RunJournal?
    private let state: Mutex<State>

    package init(_ entries: [PrewarmEntry], journal: RunJournal?) {
        self.entries = entries
        self.journal = journal
        var state = State(outcomes: Array(repeating: nil, count: entries.count))
        if let known = journal?.known, !known.isEmpty {
            for (index, entry) in entries.enumerated() {
                guard let outcome = known[entry.identity] else { continue }
                state.outcomes[index] = outcome
                state.totals.add(outcome)
            }
        }
        resumed = state.totals.done
        self.state = Mutex(state)
    }

    package var totals: PrewarmTotals { state.withLock { $0.totals } }

    /// Why the journal is not whole, if it is not.
    package var journalError: String? { state.withLock { $0.journalError } }

    /// Numbers of the entries that are yet to be done.
    package var open: [Int] { state.withLock { state in entries.indices.filter { state.outcomes[$0] == nil } } }

    /// The entries that are done with, in the list's order.
    package var results: [PrewarmResult] {
        state.withLock { state in
            entries.indices.compactMap { index in state.outcomes[index].map { PrewarmResult(entries[index], $0) } }
        }
    }

    /// Notes what came of an entry.
    package func finish(_ number: Int, _ outcome: PrewarmOutcome) {
        let isFirst = state.withLock { state in
            guard state.outcomes[number] == nil else { return false }
            state.outcomes[number] = outcome
            state.totals.add(outcome)
            return true
        }
        guard isFirst, let journal else { return }
        do {
            try journal.note(entries[number], outcome)
        } catch {
            state.withLock { $0.journalError = "\(error)" }
        }
    }
}
