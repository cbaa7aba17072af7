internal import Glibc
internal import SystemIO

/// What follows from the end of an attempt to send an entry: from its error, or from nil if it was sent.
extension OutboxEntry {
    /// Whether the entry stays in the outbox. An outage ends, and credentials can be replaced. A purge must reach the store,
    /// however long that takes.
    func isRetried(after error: StoreError?) -> Bool {
        guard let error else { return false }
        if isDeletion { return true }
        return switch error {
        case .file(let cause): [EMFILE, ENFILE, ENOMEM].contains(cause.code)
        case .rejected, .tooLarge, .damaged: false
        default: true
        }
    }

    /// Whether the store may be gone.
    func isOutage(_ error: StoreError?) -> Bool {
        error == .suspended || error?.isOutage(of: isDeletion ? .delete : .put) == true
    }

    /// Removes or delays the entry.
    ///
    /// - Parameters:
    ///   - isDraining: Whether each entry is tried once more and then given up.
    ///   - due: When an entry with a number of failures may be sent again.
    /// - Returns: False if the entry was withdrawn.
    func record(
        _ error: StoreError?, in tables: OutboxTables, isDraining: Bool, due: (_ failures: Int) -> Int64
    ) throws -> Bool {
        guard let error else { return try tables.finish(self) }
        guard isRetried(after: error) else { return try tables.remove(sequence) }
        let isOutage = isOutage(error)
        var turn = OutboxTables.Turn.now
        if isDraining {
            if !isOutage { turn = OutboxTables.Turn.never }
        } else if error != .suspended {
            turn = due(failures + 1)
        }
        // Without a request nothing is known about the entry.
        return try tables.delay(self, until: turn, isRefused: !isOutage, isAttempt: error != .suspended)
    }
}
