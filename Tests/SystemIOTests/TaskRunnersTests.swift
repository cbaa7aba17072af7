import Synchronization
import TestSupport
import Testing

@testable import SystemIO

@Suite("Runners process the work of a queue", .timeLimit(.minutes(2))) struct TaskRunnersTests {
    private final class Queue: Sendable {
        private struct State {
            var waiting: [Int] = []
            var running = 0
            var mostRunning = 0
            var processed: [Int] = []
        }

        private let state = Mutex(State())

        var processed: [Int] { state.withLock { $0.processed } }
        var running: Int { state.withLock { $0.running } }
        var mostRunning: Int { state.withLock { $0.mostRunning } }

        func add(_ work: Int) { state.withLock { $0.waiting.append(work) } }

        func take() -> Int? {
            state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
        }

        func begin() {
            state.withLock { state in
                state.running += 1
                state.mostRunning = max(state.mostRunning, state.running)
            }
        }

        func end(_ work: Int) {
            state.withLock { state in
                state.running -= 1
                state.processed.append(work)
            }
        }
    }

    private func wake(_ runners: TaskRunners, _ queue: Queue, _ body: @escaping @Sendable (Int) async -> Void = { _ in }) {
        runners.wake(taking: { queue.take() }) { (work: Int) in
            queue.begin()
            await body(work)
            queue.end(work)
        }
    }

    @Test func allWorkIsProcessedInItsOrderByOneRunner() async throws {
        let (runners, queue) = (TaskRunners(limit: 1), Queue())
        for work in 0..<100 {
            queue.add(work)
            wake(runners, queue)
        }
        try await waitUntil("all work") { queue.processed.count == 100 }
        #expect(queue.processed == Array(0..<100))
        #expect(queue.mostRunning == 1)
    }

    @Test func noMoreRunThanTheLimit() async throws {
        let (runners, queue) = (TaskRunners(limit: 3), Queue())
        for work in 0..<20 { queue.add(work) }
        let isOpen = Mutex(false)
        wake(runners, queue) { _ in try? await waitUntil("the gate") { isOpen.withLock { $0 } } }
        try await waitUntil("as many as may run") { queue.running == 3 }
        // Another call starts no more.
        wake(runners, queue)
        isOpen.withLock { $0 = true }
        try await waitUntil("all work") { queue.processed.count == 20 }
        #expect(queue.mostRunning == 3)
    }

    /// Work may arrive when the last runner has found nothing and is about to end.
    @Test func workThatArrivesAtTheEndOfARunnerIsProcessed() async throws {
        let (runners, queue) = (TaskRunners(limit: 1), Queue())
        for work in 1...2000 {
            queue.add(work)
            wake(runners, queue)
            try await waitUntil("work \(work)") { queue.processed.count == work }
        }
    }

    @Test func cancellationReachesTheWorkInProgress() async throws {
        let (runners, queue) = (TaskRunners(limit: 2), Queue())
        queue.add(1)
        queue.add(2)
        wake(runners, queue) { _ in try? await waitUntil("the cancellation") { false } }
        try await waitUntil("both to run") { queue.running == 2 }
        runners.cancelAll()
        try await waitUntil("both to end") { queue.processed.count == 2 }
        // The runners are still usable.
        queue.add(3)
        wake(runners, queue)
        try await waitUntil("later work") { queue.processed.contains(3) }
    }
}
