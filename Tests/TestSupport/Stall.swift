internal import Synchronization
internal import SystemIO

/// Work on a thread of its own that holds something until ``end()``, such as the lock of a database whose disk stalls.
package final class Stall: Sendable {
    private let thread = WorkThreads(count: 1, limit: 1, name: "stall")
    private let hasBegun = Mutex(false)
    private let gate = Semaphore()

    package init() {}

    /// Runs `work`, which calls its argument to wait for ``end()``, and suspends until it waits.
    package func begin(_ work: @escaping @Sendable (_ wait: () -> Void) -> Void) async throws {
        _ = thread.submit { [self] in
            work {
                hasBegun.withLock { $0 = true }
                gate.wait()
            }
        }
        try await waitUntil("the stall") { hasBegun.withLock { $0 } }
    }

    /// Returns when the work has ended. Blocks.
    package func end() {
        gate.signal()
        thread.close()
    }
}
