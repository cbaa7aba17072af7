internal import Ledger
internal import Synchronization

/// Those that have to forget what a purge covers, besides the cache: work in progress, failures in memory. Any thread.
final class PurgeObservers: Sendable {
    private let all = Mutex<[@Sendable (PurgeScope) -> Void]>([])

    func add(_ observer: @escaping @Sendable (PurgeScope) -> Void) {
        all.withLock { $0.append(observer) }
    }

    /// They may refer to the cache.
    func removeAll() {
        all.withLock { $0 = [] }
    }

    func notify(_ scope: PurgeScope) {
        for observer in all.withLock({ $0 }) { observer(scope) }
    }
}
