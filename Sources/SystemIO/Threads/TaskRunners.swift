internal import Synchronization

/// Processes the work of a queue in a bounded number of concurrent tasks. Each task takes one piece of work after another and
/// ends when the queue is empty. Any thread.
///
///     queue.append(work)
///     runners.wake(taking: { queue.popFirst() }, processing: { await convert($0) })
package final class TaskRunners: Sendable {
    private struct State {
        var tasks: [Int: Task<Void, Never>] = [:]
        var lastNumber = 0
    }

    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: The maximum number of concurrent tasks.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Starts a task for each piece of work, up to the limit. Call this after adding work.
    ///
    /// - Parameters:
    ///   - take: Removes the next piece of work; nil if there is none. It must not call the runners, which hold a lock.
    ///   - process: Processes a piece of work. It should return soon after its task is cancelled.
    package func wake<Work: Sendable>(
        taking take: @escaping @Sendable () -> Work?, processing process: @escaping @Sendable (Work) async -> Void
    ) {
        state.withLock { state in
            while state.tasks.count < limit, let work = take() {
                state.lastNumber += 1
                let number = state.lastNumber
                state.tasks[number] = Task { await self.run(number, work, take, process) }
            }
        }
    }

    /// Cancels the tasks in progress. Empty the queue first: a cancelled task still takes the remaining work.
    package func cancelAll() {
        for task in state.withLock({ $0.tasks.values }) { task.cancel() }
    }

    private func run<Work: Sendable>(
        _ number: Int, _ first: Work, _ take: @Sendable () -> Work?, _ process: @Sendable (Work) async -> Void
    ) async {
        var next: Work? = first
        while let work = next {
            await process(work)
            next = state.withLock { state in
                let work = take()
                // Under the same lock, so that work added from now on starts another task.
                if work == nil { state.tasks[number] = nil }
                return work
            }
        }
    }
}
