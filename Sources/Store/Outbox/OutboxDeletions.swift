internal import Synchronization

/// The times of the deletions of the outbox in memory, so that no look-up waits for a disk. Any thread.
final class OutboxDeletions: Sendable {
    private let all = Mutex<[String: Int64]>([:])

    subscript(id: String) -> Int64? { all.withLock { $0[id] } }

    func load(_ deletions: [String: Int64]) {
        all.withLock { $0 = deletions }
    }

    /// Adds a deletion, which may extend one of the same id.
    func add(_ id: String, until time: Int64) {
        all.withLock { $0[id] = max(time, $0[id] ?? time) }
    }

    /// Forgets the deletion of an id that was sent, unless another one waits. Blocks.
    func forget(_ id: String, unlessIn ledger: Ledger) {
        all.withLock { all in
            guard let left = try? ledger.read({ try OutboxTables($0).deletion(of: id) == nil }), left else { return }
            all[id] = nil
        }
    }
}
