import Synchronization
import SystemIO
import TestSupport
import Testing

@Suite("Tasks wait until something holds, for a limited time", .timeLimit(.minutes(10))) struct WaitersTests {
    /// A number that tests change, and the tasks that wait for it.
    private final class Counter: Sendable {
        let waiters = Waiters()
        private let value = Atomic(0)
        private let looks = Atomic(0)

        /// How often a condition was looked at.
        var lookCount: Int { looks.load(ordering: .relaxed) }

        func increment() {
            value.add(1, ordering: .relaxed)
            waiters.notify()
        }

        func wait(for number: Int, within limit: Duration? = nil) async -> Bool {
            await waiters.wait(within: limit) {
                looks.add(1, ordering: .relaxed)
                return value.load(ordering: .relaxed) >= number
            }
            return value.load(ordering: .relaxed) >= number
        }
    }

    @Test func allTasksWhoseConditionHoldsContinue() async throws {
        let counter = Counter()
        let tasks = (1...3).map { number in Task { await counter.wait(for: number) } }
        try await waitUntil("all wait") { counter.lookCount >= 6 }
        counter.increment()
        #expect(await tasks[0].value)
        counter.increment()
        counter.increment()
        for task in tasks { #expect(await task.value) }
        // What holds already is not waited for.
        #expect(await counter.wait(for: 3))
    }

    @Test func aNoticeWithoutTheConditionEndsNoWait() async throws {
        let counter = Counter()
        let task = Task { await counter.wait(for: 2) }
        try await waitUntil("it waits") { counter.lookCount >= 2 }
        let looks = counter.lookCount
        counter.increment()
        try await waitUntil("it looks again") { counter.lookCount > looks }
        counter.increment()
        #expect(await task.value)
    }

    @Test func theLimitEndsAWait() async {
        let start = ContinuousClock.now
        #expect(await !Counter().wait(for: 1, within: .milliseconds(20)))
        #expect(ContinuousClock.now - start >= .milliseconds(20))
        #expect(await !Counter().wait(for: 1, within: .zero))
    }

    @Test func aCancellationEndsAWait() async throws {
        let counter = Counter()
        let task = Task { await counter.wait(for: 1) }
        try await waitUntil("it waits") { counter.lookCount >= 2 }
        task.cancel()
        #expect(await !task.value)
    }
}
