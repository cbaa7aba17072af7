internal import Glibc
internal import SystemIO

/// The end of an attempt to send an entry of the outbox, and what follows from it.
enum OutboxOutcome: Sendable {
    case sent
    case failed(StoreError)

    /// Whether the entry stays in the outbox. An outage ends, and credentials can be replaced. A purge must reach the store,
    /// however long that takes.
    func isRetried(_ entry: OutboxEntry) -> Bool {
        guard case .failed(let error) = self else { return false }
        if entry.isDeletion { return true }
        return switch error {
        case .file(let cause): [EMFILE, ENFILE, ENOMEM].contains(cause.code)
        case .rejected, .tooLarge, .damaged: false
        default: true
        }
    }

    /// Whether the store may be gone.
    func isOutage(_ entry: OutboxEntry) -> Bool {
        guard case .failed(let error) = self else { return false }
        return error == .suspended || error.isOutage(of: entry.isDeletion ? .delete : .put)
    }

    /// Removes or delays the entry.
    ///
    /// - Parameters:
    ///   - isDraining: Whether each entry is tried once more and then given up.
    ///   - due: When an entry with a number of failures may be sent again.
    /// - Returns: False if the entry was withdrawn.
    func record(
        of entry: OutboxEntry, in tables: OutboxTables, isDraining: Bool, due: (_ failures: Int) -> Int64
    ) throws -> Bool {
        guard case .failed(let error) = self else { return try tables.finish(entry) }
        guard isRetried(entry) else { return try tables.remove(entry.sequence) }
        let isOutage = isOutage(entry)
        var turn = OutboxTables.Turn.now
        if isDraining {
            if !isOutage { turn = OutboxTables.Turn.never }
        } else if error != .suspended {
            turn = due(entry.failures + 1)
        }
        // Without a request nothing is known about the entry.
        return try tables.delay(entry, until: turn, isRefused: !isOutage, isAttempt: error != .suspended)
    }
}
