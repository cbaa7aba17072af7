/// Runs blocking work outside Swift's cooperative pool and I/O threads. ``WorkThreads`` is the implementation; a simulation
/// replaces it by one that decides the order of the work.
package protocol BlockingWork: Sendable {
    typealias Work = @Sendable () -> Void

    /// Queues `work`.
    ///
    /// - Returns: False if the queue is full or closed; `work` then does not run.
    func submit(_ work: @escaping Work) -> Bool

    /// Refuses further work and waits for the queued work. Blocks.
    func close()
}

extension BlockingWork {
    /// Runs `work`, and returns its result; nil if the queue is full or closed. Suspends without blocking.
    package func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result? {
        await withCheckedContinuation { continuation in
            if !submit({ continuation.resume(returning: work()) }) { continuation.resume(returning: nil) }
        }
    }
}
