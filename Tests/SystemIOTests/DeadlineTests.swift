import Synchronization
import SystemIO
import TestSupport
import Testing

@Suite("Deadlines run their action once", .timeLimit(.minutes(10))) struct DeadlineTests {
    /// A value that a deadline's action captures.
    private final class Held: Sendable {}

    @Test func aDeadlineRunsItsActionOnceAndNotEarly() async {
        let start = ContinuousClock.now
        let times = AsyncStream<Duration>.makeStream()
        let deadline = Deadline(after: .milliseconds(30)) { times.continuation.yield(ContinuousClock.now - start) }
        var iterator = times.stream.makeAsyncIterator()
        let time = await iterator.next()
        #expect(time.map { $0 >= .milliseconds(30) } == true)
        withExtendedLifetime(deadline) {}
        times.continuation.finish()
        #expect(await iterator.next() == nil)
    }

    @Test func aReleasedDeadlineRunsNothingAndRetainsNothing() async throws {
        let wasDone = Atomic(false)
        var held: Held? = Held()
        weak let remembered = held
        var deadline: Deadline?
        do {
            let captured = held
            deadline = Deadline(after: .seconds(600)) {
                withExtendedLifetime(captured) { wasDone.store(true, ordering: .relaxed) }
            }
        }
        held = nil
        #expect(remembered != nil)
        #expect(deadline != nil)
        deadline = nil
        try await waitUntil("the release of the object") { remembered == nil }
        let done = wasDone.load(ordering: .relaxed)
        #expect(!done)
    }

    @Test func aDelayLongerThanAnyClockIsNoTrap() {
        _ = Deadline(after: .seconds(Int64.max)) {}
    }
}
