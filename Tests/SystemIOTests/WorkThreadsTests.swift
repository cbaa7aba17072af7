import Synchronization
import Testing

@testable import SystemIO

@Suite("Work threads run blocking work") struct WorkThreadsTests {
    private final class Captured: Sendable {}

    @Test func workBeyondTheLimitIsRefused() async throws {
        let threads = WorkThreads(count: 1, limit: 2, name: "test")
        let (begun, gate) = (Semaphore(), Semaphore())
        #expect(
            threads.submit {
                begun.signal()
                gate.wait()
            })
        begun.wait()
        #expect(threads.submit {} && threads.submit {})
        #expect(!threads.submit {})
        #expect(await threads.run { 7 } == nil)
        gate.signal()
        threads.close()
    }

    @Test func workRunsInTheOrderOfItsSubmission() {
        let threads = WorkThreads(count: 1, limit: 5000, name: "test")
        let order = Mutex<[Int]>([])
        // More than the queue holds before it drops its first entries.
        for index in 0..<3000 { #expect(threads.submit { order.withLock { $0.append(index) } }) }
        threads.close()
        #expect(order.withLock { $0 } == Array(0..<3000))
    }

    @Test func closingFinishesTheQueueAndRefusesMore() {
        let threads = WorkThreads(count: 2, limit: 100, name: "test")
        let count = Atomic(0)
        for _ in 0..<50 { #expect(threads.submit { count.add(1, ordering: .relaxed) }) }
        threads.close()
        #expect(count.load(ordering: .relaxed) == 50)
        #expect(!threads.submit {})
        threads.close()
    }

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
