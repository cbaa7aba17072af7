internal import Synchronization
internal import SystemIO

/// Work that may wait for the disk to write. A disk that stalls stops only the storing: no caller waits once no work has ended for
/// ``patience``. A slow disk is waited for, because what is not stored is fetched and converted again. Any thread.
final class DiskWork: Sendable {
    static let patience: Duration = .seconds(5)

    private struct State {
        /// Gives up the wait for work, by the number of the work.
        var waiting: [Int: @Sendable () -> Void] = [:]
        var begun = 0
        /// When work ended last, or began while none waited.
        var latest: Duration = .zero
        /// The work that callers have given up and that has not ended.
        var overdue = 0
        /// One for all work: a timer for each would wake a thread twice per step of a miss.
        var timer: (any AnyObject & Sendable)?
    }

    /// The threads that run the work, for callers that have to wait for its end.
    let threads: any BlockingWork
    private let clock: TimeSource
    private let state = Mutex(State())

    init(_ threads: any BlockingWork, clock: TimeSource) {
        self.threads = threads
        self.clock = clock
    }

    /// Whether work that callers have given up has not ended.
    var isOverdue: Bool { state.withLock { $0.overdue > 0 } }

    /// Runs `work` and returns its result; nil if no thread accepts it, if the disk stalls meanwhile, or if work that was given up
    /// earlier has not ended. Work that is given up goes on, and its effects remain.
    ///
    /// - Parameters:
    ///   - isRequired: Whether the work is queued even if earlier work has not ended.
    ///   - late: Receives the result of work that was given up.
    func run<Value: Sendable>(
        isRequired: Bool = false, _ work: @escaping @Sendable () -> Value,
        late: @escaping @Sendable (Value) -> Void = { _ in }
    ) async -> Value? {
        guard !isOverdue else {
            if isRequired { _ = threads.submit { _ = work() } }
            return nil
        }
        return await withCheckedContinuation { (continuation: CheckedContinuation<Value?, Never>) in
            let number = begin { continuation.resume(returning: nil) }
            let isAccepted = threads.submit { [self] in
                let value = work()
                if end(number) { continuation.resume(returning: value) } else { late(value) }
            }
            if !isAccepted, end(number) { continuation.resume(returning: nil) }
        }
    }

    private func begin(_ giveUp: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.begun += 1
            if state.waiting.isEmpty { state.latest = clock.now }
            state.waiting[state.begun] = giveUp
            if state.timer == nil { watch(&state, for: Self.patience) }
            return state.begun
        }
    }

    /// Returns whether the caller still waits.
    private func end(_ number: Int) -> Bool {
        state.withLock { state in
            state.latest = clock.now
            let isWaiting = state.waiting.removeValue(forKey: number) != nil
            if !isWaiting { state.overdue -= 1 }
            return isWaiting
        }
    }

    private func watch(_ state: inout State, for delay: Duration) {
        state.timer = clock.after(delay) { [weak self] in self?.giveUp() }
    }

    /// Ends all waits, in their order, if no work has ended for ``patience``.
    private func giveUp() {
        let all = state.withLock { state -> [@Sendable () -> Void] in
            state.timer = nil
            if state.waiting.isEmpty { return [] }
            let rest = Self.patience - (clock.now - state.latest)
            if rest > .zero {
                watch(&state, for: rest)
                return []
            }
            defer { state.waiting = [:] }
            state.overdue += state.waiting.count
            return state.waiting.sorted { $0.key < $1.key }.map(\.value)
        }
        for giveUp in all { giveUp() }
    }
}
