internal import Sandbox
internal import Synchronization

/// What work in flight is given: its turn among those that wait for a worker, and a way to say that it waits now.
package final class Flight: Sendable {
    let turn: JobTurn
    private let onQueued = Mutex<(@Sendable () -> Void)?>(nil)

    init(_ turn: JobTurn = JobTurn()) {
        self.turn = turn
    }

    /// Says that all is there that the work needs but a worker: from here on the patience of those who wait for it counts.
    func waitsForWorker() {
        onQueued.withLock { $0 }?()
    }

    func whenQueued(_ action: @escaping @Sendable () -> Void) {
        onQueued.withLock { $0 = action }
    }
}
