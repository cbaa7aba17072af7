/// The table of purges, one row each, and the statements on it, for use within one transaction.
///
/// A row records what a purge covers (see the cache), and whether the cluster's stream contains it.
package struct PurgeTable {
    package static let owned = Ledger.Tables(
        owner: "purges",
        steps: [
            """
            CREATE TABLE purges (
                sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, argument TEXT NOT NULL, made INTEGER NOT NULL,
                local INTEGER NOT NULL, token TEXT NOT NULL UNIQUE,
                -- Null until the stream has it, empty for a purge of this node only.
                entry TEXT,
                -- Whether no row is left that it covers.
                swept INTEGER NOT NULL
            );
            CREATE INDEX purges_pending ON purges (sequence) WHERE entry IS NULL;
            CREATE INDEX purges_to_sweep ON purges (sequence) WHERE swept = 0;
            -- The latest purge whose row was removed, and the latest time of one.
            CREATE TABLE purge_floor (
                only INTEGER PRIMARY KEY CHECK (only = 1), sequence INTEGER NOT NULL, made INTEGER NOT NULL);
            INSERT INTO purge_floor VALUES (1, 0, 0);
            """
        ],
        // Copies purges that other nodes may not know, and purges of objects, which the shared store must not return.
        salvage: { damaged, new in
            try damaged.forEach(
                """
                SELECT sequence, kind, argument, made, local, token, entry FROM purges
                WHERE entry IS NULL OR kind = 'o' ORDER BY sequence
                """
            ) { row in
                guard let (sequence, purge) = try? Self.read(row) else { return }
                try new.run(
                    "INSERT OR IGNORE INTO purges VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
                    [
                        sequence, purge.scope.kind, purge.scope.argument, purge.madeAt, purge.isLocal, purge.token, purge.entry,
                    ])
            }
        })

    struct Row: Sendable, Equatable {
        let sequence: Int64
        let purge: Purge
        let isSwept: Bool
    }

    /// The number of purges whose rows are kept after completion, so that a redelivered purge is recognised.
    static let kept: Int64 = 10_000

    private let database: SQLiteConnection

    package init(_ database: SQLiteConnection) {
        self.database = database
    }

    private func rows(_ rest: String, _ values: [any SQLiteValue] = []) throws -> [Row] {
        let sql = "SELECT sequence, kind, argument, made, local, token, entry, swept FROM purges \(rest)"
        return try database.all(sql, values) { row in
            let (sequence, purge) = try Self.read(row)
            return Row(sequence: sequence, purge: purge, isSwept: try row.value(7))
        }
    }

    /// Reads a purge with its sequence from the first seven columns.
    private static func read(_ row: SQLiteRow) throws -> (sequence: Int64, purge: Purge) {
        let kind: String = try row.value(1)
        guard let scope = PurgeScope(kind: kind, argument: try row.value(2)) else {
            throw LedgerError(.damage, "a purge of the kind \(kind) cannot be read")
        }
        let purge = Purge(
            scope, madeAt: try row.number(3), isLocal: try row.value(4), token: try row.value(5), entry: try row.value(6))
        return (try row.sequence(0), purge)
    }

    // MARK: Adding

    /// Adds a purge with rows to remove. That of ``boundPending(token:)`` gets them when the node applies its entry.
    func insert(_ purge: Purge, _ sequence: Int64) throws {
        try database.run("UPDATE purges SET sequence = ?, swept = 0 WHERE token = ?", [sequence, purge.token])
        guard database.changedRows == 0 else { return }
        try database.run(
            "INSERT INTO purges VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
            [sequence, purge.scope.kind, purge.scope.argument, purge.madeAt, purge.isLocal, purge.token, purge.entry])
    }

    // MARK: Queries

    func all() throws -> [Row] { try rows("ORDER BY sequence") }

    /// The latest sequence whose row was removed, and the latest time of any removed row.
    func floor() throws -> (sequence: Int64, madeAt: Int64) {
        try database.first("SELECT sequence, made FROM purge_floor") { (try $0.sequence(0), try $0.number(1)) } ?? (0, 0)
    }

    /// The oldest purge with rows left to remove whose sequence is not in `held`.
    func nextToSweep(except held: Set<Int64>) throws -> Row? {
        try rows("WHERE swept = 0 ORDER BY sequence LIMIT ?", [held.count + 1]).first { !held.contains($0.sequence) }
    }

    /// Up to `limit` purges that the stream does not contain yet, in order.
    package func pending(limit: Int) throws -> [Purge] {
        try rows("WHERE entry IS NULL ORDER BY sequence LIMIT ?", [limit]).map(\.purge)
    }

    package func pendingCount() throws -> Int64 {
        try database.first("SELECT count(*) FROM purges WHERE entry IS NULL") { try $0.value(0) } ?? 0
    }

    /// The latest purges that the stream contains or contained, in order.
    package func latestSent(limit: Int) throws -> [Purge] {
        try rows("WHERE entry <> '' ORDER BY sequence DESC LIMIT ?", [limit]).map(\.purge).reversed()
    }

    package func purge(withToken token: String) throws -> Purge? {
        try rows("WHERE token = ?", [token]).first?.purge
    }

    // MARK: Changing

    func markSwept(_ sequence: Int64) throws {
        try database.run("UPDATE purges SET swept = 1 WHERE sequence = ?", [sequence])
    }

    /// Records a purge's entry in the stream; nil to send the purge again.
    package func setEntry(_ entry: String?, ofToken token: String) throws {
        try database.run("UPDATE purges SET entry = ? WHERE token = ?", [entry, token])
    }

    /// Replaces all pending purges in the stream by one purge of everything if there are more than ``mostPending``.
    package func boundPending(token: String) throws {
        guard try pendingCount() > Self.mostPending else { return }
        let latest = try pending(limit: Int.max).map(\.madeAt).max() ?? 0
        try database.run("UPDATE purges SET entry = '' WHERE entry IS NULL")
        // Until this node applies its entry, it covers no row. No row or later purge has its sequence.
        try database.run(
            "INSERT INTO purges SELECT min(0, min(sequence)) - 1, 'a', '', ?, 0, ?, NULL, 1 FROM purges", [latest, token])
    }

    static let mostPending: Int64 = 4096

    /// Notes that purges up to a time may have been missed.
    package func raiseFloor(toTime time: Int64) throws {
        try database.run("UPDATE purge_floor SET made = max(made, ?)", [time])
    }

    private func count() throws -> Int64 {
        try database.first("SELECT count(*) FROM purges") { try $0.value(0) } ?? 0
    }

    func hasManyDone() throws -> Bool { try count() > Self.kept + Self.kept / 4 }

    /// Removes the rows of the oldest completed purges beyond ``kept``, and records the floor.
    func removeDone() throws {
        let count = try count()
        let done = try database.all(
            "SELECT sequence, made FROM purges WHERE swept = 1 AND entry IS NOT NULL ORDER BY sequence LIMIT ?",
            [max(0, count - Self.kept)]
        ) { (sequence: try $0.value(0) as Int64, madeAt: try $0.value(1) as Int64) }
        guard let last = done.last else { return }
        for row in done { try database.run("DELETE FROM purges WHERE sequence = ?", [row.sequence]) }
        try database.run(
            "UPDATE purge_floor SET sequence = max(sequence, ?), made = max(made, ?)",
            [last.sequence, done.map(\.madeAt).max() ?? 0])
    }
}
