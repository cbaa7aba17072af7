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

    /// Runs `work` and returns its result; nil if no thread accepts it, if it takes too long, or if earlier work that took too
    /// long has not ended. Work that takes too long goes on, and its effects remain.
    func run<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value? {
        guard overdue.load(ordering: .relaxed) == 0 else { return nil }
        return await withCheckedContinuation { continuation in
            let caller = Mutex<Caller<Value>?>(Caller(continuation))
            let timer = clock.after(Self.patience) { [self] in
                let waiting = caller.withLock { waiting in
                    if waiting != nil { overdue.add(1, ordering: .relaxed) }
                    return waiting.take()
                }
                waiting?.continuation.resume(returning: nil)
            }
            caller.withLock { $0?.timer = timer }
            let end: @Sendable (Value?) -> Void = { [self] value in
                if let waiting = caller.withLock({ $0.take() }) {
                    waiting.continuation.resume(returning: value)
                } else {
                    overdue.subtract(1, ordering: .relaxed)
                }
            }
            if !threads.submit({ end(work()) }) { end(nil) }
        }
    }

    /// A caller that waits. Whoever takes it resumes it, and so ends its timer.
    private struct Caller<Value: Sendable>: Sendable {
        let continuation: CheckedContinuation<Value?, Never>
        var timer: (any AnyObject & Sendable)?

        init(_ continuation: CheckedContinuation<Value?, Never>) {
            self.continuation = continuation
        }
    }
}
