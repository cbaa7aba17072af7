internal import Ledger
internal import Synchronization

/// The deletions of the outbox in memory, so that no look-up waits for a disk. Any thread.
final class OutboxDeletions: Sendable {
    private let all = Mutex<[String: OutboxTables.Deletion]>([:])

    subscript(id: String) -> OutboxTables.Deletion? { all.withLock { $0[id] } }

    func load(_ deletions: [String: OutboxTables.Deletion]) {
        all.withLock { $0 = deletions }
    }

    /// Adds a deletion, which may extend one of the same id.
    func add(_ id: String, until time: Int64?) {
        all.withLock { all in
            var until = time
            if let known = all[id] { until = known.until.flatMap { known in time.map { max($0, known) } } }
            all[id] = OutboxTables.Deletion(until: until)
        }
    }

    /// Forgets the deletion of an id that was sent, unless another one waits. Blocks.
    func forget(_ id: String, unlessIn ledger: Ledger) {
        all.withLock { all in
            guard let left = try? ledger.read({ try OutboxTables($0).deletion(of: id) == nil }), left else { return }
            all[id] = nil
        }
    }
}
