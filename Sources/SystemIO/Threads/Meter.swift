internal import Synchronization

/// Counters that several threads update as one value. Not for the hot path of cache hits. Any thread.
package final class Meter<Counters: Sendable>: Sendable {
    private let counters: Mutex<Counters>

    package init(_ counters: Counters) {
        self.counters = Mutex(counters)
    }

    package var snapshot: Counters { counters.withLock { $0 } }

    package func update(_ change: (inout Counters) -> Void) {
        counters.withLock { change(&$0) }
    }
}
