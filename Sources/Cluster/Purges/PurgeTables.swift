package import Ledger

/// How far a node has applied the stream of purges.
struct PurgePosition: Sendable, Equatable {
    /// The identity of the stream; empty before the first one.
    var stream = ""
    /// All purges up to here are applied.
    var id = StreamID.zero
}

/// What a node remembers of purges over restarts, and the statements on it, for use within one transaction.
package struct PurgeTables {
    package static let owned = Ledger.Tables(
        owner: "cluster",
        steps: [
            """
            CREATE TABLE position (only INTEGER PRIMARY KEY CHECK (only = 1), stream TEXT NOT NULL, id TEXT NOT NULL);
            -- Purges made without the server, to be added to the stream in their order.
            CREATE TABLE pending (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, argument TEXT NOT NULL);
            """,
            """
            ALTER TABLE pending ADD COLUMN time INTEGER;
            -- A row with a token stays after it was added, until this node has passed its entry.
            ALTER TABLE pending ADD COLUMN token TEXT;
            ALTER TABLE pending ADD COLUMN entry TEXT;
            CREATE INDEX pending_by_token ON pending (token);
            """,
        ],
        // Purges that other nodes may not know. The position is not needed: nothing is stored that an earlier purge covers.
        salvage: { damaged, new in
            try damaged.forEach("SELECT kind, argument, time, token FROM pending WHERE entry IS NULL ORDER BY number") { row in
                let values: [any SQLiteValue] = [
                    try row.value(0) as String, try row.value(1) as String, try row.value(2) as Int64?,
                    try row.value(3) as String?,
                ]
                try new.run("INSERT INTO pending (kind, argument, time, token) VALUES (?, ?, ?, ?)", values)
            }
        })

    private let database: SQLiteConnection

    init(_ database: SQLiteConnection) {
        self.database = database
    }

    func position() throws -> PurgePosition {
        try database.first("SELECT stream, id FROM position") { row in
            guard let id = StreamID(try row.value(1)) else { throw LedgerError(.damage, "the position is no id") }
            return PurgePosition(stream: try row.value(0), id: id)
        } ?? PurgePosition()
    }

    func setPosition(_ position: PurgePosition) throws {
        try database.run("INSERT OR REPLACE INTO position VALUES (1, ?, ?)", [position.stream, position.id.description])
    }

    /// The first pending purges after a number that the stream does not have.
    func pending(after number: Int64, limit: Int) throws -> [(number: Int64, purge: RecordedPurge)] {
        try database.all(
            """
            SELECT number, kind, argument, time, token FROM pending
            WHERE number > ? AND entry IS NULL ORDER BY number LIMIT ?
            """, [number, limit]
        ) { row in
            let scope = ClusterPurge(kind: try row.value(1), argument: try row.value(2))
            // A purge that cannot be read may cover anything, and was not applied as that.
            let token: String? = try row.value(4)
            return (
                try row.value(0), RecordedPurge(scope ?? .all, time: try row.value(3), token: scope == nil ? nil : token)
            )
        }
    }

    /// The number of pending purges that the stream does not have.
    func pendingCount() throws -> Int64 {
        try database.first("SELECT count(*) FROM pending WHERE entry IS NULL") { try $0.value(0) } ?? 0
    }

    /// Adds a purge. A purge of everything replaces all others that the stream does not have, and so does one beyond
    /// ``maxPending``.
    func addPending(_ purge: RecordedPurge) throws {
        let isTooMany = try pendingCount() >= Self.maxPending
        if purge.scope == .all || isTooMany { try database.run("DELETE FROM pending WHERE entry IS NULL") }
        let purge = isTooMany ? RecordedPurge(.all, time: purge.time) : purge
        try database.run(
            "INSERT INTO pending (kind, argument, time, token) VALUES (?, ?, ?, ?)",
            [purge.scope.kind, purge.scope.argument, purge.time, purge.token])
    }

    /// Notes that the stream has a purge. One that this node has not applied is not needed any more.
    func setEntry(_ id: StreamID, of number: Int64) throws {
        try database.run("UPDATE pending SET entry = ? WHERE number = ?", [id.description, number])
        try database.run("DELETE FROM pending WHERE number = ? AND token IS NULL", [number])
    }

    /// Has purges added again whose entries this node has not found.
    func forgetEntries() throws {
        try database.run("UPDATE pending SET entry = NULL WHERE entry IS NOT NULL")
    }

    /// Whether this node had applied the purge with this token before it added it to the stream.
    func isApplied(_ token: String) throws -> Bool {
        try database.first("SELECT 1 FROM pending WHERE token = ?", [token]) { _ in true } ?? false
    }

    /// Removes a purge whose entry this node has passed.
    func removeApplied(_ token: String) throws {
        try database.run("DELETE FROM pending WHERE token = ?", [token])
    }

    static let maxPending: Int64 = 16_384
}
