import Synchronization
import Testing

@testable import SystemIO

@Suite("Work threads run blocking work") struct WorkThreadsTests {
    private final class Captured: Sendable {}

    @Test func finishedWorkIsReleased() async throws {
        let threads = WorkThreads(count: 1, limit: 100, name: "test")
        defer { threads.close() }
        let begun = Semaphore()
        let gate = Semaphore()
        // Several closures wait, so that the queue is not empty when the first has ended.
        #expect(
            threads.submit {
                begun.signal()
                gate.wait()
            })
        begun.wait()
        weak var first: Captured?
        do {
            let captured = Captured()
            first = captured
            #expect(threads.submit { withExtendedLifetime(captured) {} })
        }
        let second = Semaphore()
        #expect(
            threads.submit {
                begun.signal()
                second.wait()
            })
        #expect(first != nil)
        gate.signal()
        // The third has begun, so the second has ended.
        begun.wait()
        #expect(first == nil)
        #expect(threads.submit {})
        second.signal()
        #expect(await threads.run { 7 } == 7)
    }
}
