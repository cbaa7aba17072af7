internal import Synchronization
internal import SystemIO

/// Work that may wait for the disk to write. No caller waits longer than ``patience``, so that a disk that stalls stops only the
/// storing. Any thread.
final class DiskWork: Sendable {
    /// A disk that keeps up needs less for the renditions of a full queue.
    static let patience: Duration = .seconds(5)

    /// The threads that run the work, for callers that have to wait for its end.
    let threads: any BlockingWork
    private let clock: TimeSource
    /// The work that callers have given up and that has not ended.
    private let overdue = Atomic(0)

    init(_ threads: any BlockingWork, clock: TimeSource) {
        self.threads = threads
        self.clock = clock
    }

    /// Whether work that callers have given up has not ended.
    var isOverdue: Bool { overdue.load(ordering: .relaxed) > 0 }

    /// Runs `work` and returns its result; nil if no thread accepts it, if it takes too long, or if earlier work that took too
    /// long has not ended. Work that takes too long goes on, and its effects remain.
    func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value? {
        guard !isOverdue else { return nil }
        return await withCheckedContinuation { (continuation: CheckedContinuation<Value?, Never>) in
            // Whoever takes the continuation resumes it.
            let caller = Mutex<CheckedContinuation<Value?, Never>?>(continuation)
            let timer = clock.after(Self.patience) { [self] in
                let waiting = caller.withLock { waiting in
                    if waiting != nil { overdue.add(1, ordering: .relaxed) }
                    return waiting.take()
                }
                waiting?.resume(returning: nil)
            }
            let end: @Sendable (Value?) -> Void = { [self] value in
                if let waiting = caller.withLock({ $0.take() }) {
                    waiting.resume(returning: value)
                } else {
                    overdue.subtract(1, ordering: .relaxed)
                }
            }
            let isAccepted = threads.submit {
                end(work())
                withExtendedLifetime(timer) {}
            }
            if !isAccepted { end(nil) }
        }
    }
}
