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
            """
        ])

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

    /// The first pending purges after a number.
    func pending(after number: Int64, limit: Int) throws -> [(number: Int64, scope: ClusterPurge)] {
        try database.all(
            "SELECT number, kind, argument FROM pending WHERE number > ? ORDER BY number LIMIT ?", [number, limit]
        ) {
            row in
            // A purge that cannot be read may cover anything.
            (try row.value(0), ClusterPurge(kind: try row.value(1), argument: try row.value(2)) ?? .all)
        }
    }

    func pendingCount() throws -> Int64 {
        try database.first("SELECT count(*) FROM pending") { try $0.value(0) } ?? 0
    }

    /// Adds a purge. A purge of everything replaces all others, and so does one beyond ``maxPending``.
    func addPending(_ scope: ClusterPurge) throws {
        let isTooMany = try pendingCount() >= Self.maxPending
        if scope == .all || isTooMany { try database.run("DELETE FROM pending") }
        let scope = isTooMany ? .all : scope
        try database.run("INSERT INTO pending (kind, argument) VALUES (?, ?)", [scope.kind, scope.argument])
    }

    /// Removes the pending purges up to a number.
    func removePending(through number: Int64) throws {
        try database.run("DELETE FROM pending WHERE number <= ?", [number])
    }

    static let maxPending: Int64 = 16_384
}
