/// A write queued in the outbox.
struct OutboxEntry: Sendable, Equatable {
    enum Change: Sendable, Equatable {
        case put(RenditionName, StoredRecord, mediaType: String)
        /// Deletes the rendition under each extension if it began until this time, in milliseconds of the cluster's clock.
        case delete(until: Int64)
    }

    let sequence: Int64
    /// The rendition's content id.
    let id: ObjectID
    let change: Change
    let failures: Int
    /// Whether the entry itself may have caused a failure.
    let isRefused: Bool

    var isDeletion: Bool {
        if case .delete = change { true } else { false }
    }
}

/// The table of writes that wait to be sent, and the statements on it, for use within one transaction.
///
/// A deletion withdraws the earlier entries of its id that it covers, and blocks later puts until it is sent. So an id has at
/// most one deletion, and a name at most one put.
struct OutboxTables {
    static let owned = Ledger.Tables(
        owner: "store", firstVersion: 3,
        steps: [
            """
            CREATE TABLE outbox (
                sequence INTEGER PRIMARY KEY, id TEXT NOT NULL,
                -- The name, the media type and the record of a put; null for a deletion.
                extension TEXT, media TEXT, record BLOB, length INTEGER NOT NULL,
                -- When the entry may be sent, by a clock of the process; see OutboxTables.Turn.
                due INTEGER NOT NULL, failures INTEGER NOT NULL, refused INTEGER NOT NULL,
                -- For a deletion: it covers only what began until this time, in milliseconds of the cluster's clock.
                until INTEGER
            );
            CREATE INDEX outbox_by_id ON outbox (id);
            CREATE INDEX outbox_by_turn ON outbox (refused, sequence);
            CREATE INDEX outbox_by_due ON outbox (due, refused, sequence);
            CREATE TABLE outbox_totals (
                only INTEGER PRIMARY KEY CHECK (only = 1), sequence INTEGER NOT NULL, puts INTEGER NOT NULL,
                deletions INTEGER NOT NULL, bytes INTEGER NOT NULL
            );
            INSERT INTO outbox_totals VALUES (1, 0, 0, 0, 0);
            CREATE TRIGGER outbox_added AFTER INSERT ON outbox BEGIN
                UPDATE outbox_totals SET
                    sequence = max(sequence, NEW.sequence), bytes = bytes + NEW.length,
                    puts = puts + (NEW.extension IS NOT NULL), deletions = deletions + (NEW.extension IS NULL);
            END;
            CREATE TRIGGER outbox_removed AFTER DELETE ON outbox BEGIN
                UPDATE outbox_totals SET
                    bytes = bytes - OLD.length, puts = puts - (OLD.extension IS NOT NULL),
                    deletions = deletions - (OLD.extension IS NULL);
            END;
            """
        ],
        // Copies only deletions: each is a confirmed purge. The renditions of puts are created again.
        salvage: { damaged, new in
            try damaged.forEach(
                "SELECT sequence, id, ifnull(until, unixepoch() * 1000) FROM outbox WHERE extension IS NULL"
            ) { row in
                guard let sequence = try? row.sequence(0), let id = try? Self.id(row, 1), let until: Int64 = try? row.number(2)
                else { return }
                try new.run(
                    "INSERT OR IGNORE INTO outbox VALUES (?, ?, NULL, NULL, NULL, 0, 0, 0, 0, ?)",
                    [sequence, id.description, until])
            }
        })

    /// Values of the column `due` that are not times.
    enum Turn {
        static let now: Int64 = 0
        /// A drain has given up the entry.
        static let never = Int64.max
        /// A put of a former process: a purge that this node has missed may still withdraw it.
        static let held = Int64.max - 1
        /// A put after a deletion of its id.
        static let blocked = Int64.max - 2
    }

    private let database: SQLiteConnection

    init(_ database: SQLiteConnection) {
        self.database = database
    }

    /// - Returns: `sequence` is the latest of any entry.
    func totals() throws -> (puts: Int, deletions: Int, bytes: Int, sequence: Int64) {
        try database.first("SELECT puts, deletions, bytes, sequence FROM outbox_totals") {
            (try $0.number(0), try $0.number(1), try $0.number(2), try $0.sequence(3))
        } ?? (0, 0, 0, 0)
    }

    /// Reads everything.
    ///
    /// - Throws: An error of damage, which would otherwise stop all sending.
    func check() throws {
        _ = try totals()
        try database.forEach("SELECT \(Self.columns) FROM outbox") { _ = try entry($0) }
    }

    /// Clears the pauses that a former process recorded.
    ///
    /// - Returns: The sequences of all puts, and the latest sequence of any entry.
    func begin(holdingPuts: Bool) throws -> (puts: Set<Int64>, latest: Int64) {
        try database.run("UPDATE outbox SET due = ?, failures = 0, refused = 0 WHERE due <> ?", [Turn.now, Turn.blocked])
        if holdingPuts { try database.run("UPDATE outbox SET due = ? WHERE extension IS NOT NULL", [Turn.held]) }
        let puts = try database.all("SELECT sequence FROM outbox WHERE extension IS NOT NULL") { try $0.value(0) as Int64 }
        return (Set(puts), try totals().sequence)
    }

    // MARK: Adding

    /// Adds a put and returns its sequence. If a put with the same name is queued, records when its bytes were requested last,
    /// and returns the sequence of that put.
    func add(_ name: RenditionName, _ record: StoredRecord, mediaType: String, _ sequence: Int64) throws -> Int64 {
        let fields = FieldLines.encode(record.fields)
        if let queued = try entries("id = ? AND extension = ?", [name.id.description, name.fileExtension]).first {
            if case .put(_, let older, _) = queued.change, older.digest == record.digest, older.began < record.began {
                try database.run("UPDATE outbox SET record = ? WHERE sequence = ?", [fields, queued.sequence])
            }
            return queued.sequence
        }
        try database.run(
            """
            INSERT INTO outbox
            SELECT ?1, ?2, ?3, ?4, ?5, ?6, CASE WHEN EXISTS (\(Self.deletion)) THEN \(Turn.blocked) ELSE 0 END, 0, 0, NULL
            """,
            [sequence, name.id.description, name.fileExtension, mediaType, fields, record.length])
        return sequence
    }

    private static let deletion = "SELECT 1 FROM outbox AS other WHERE other.id = ?2 AND other.extension IS NULL"

    /// Adds a deletion, and withdraws the entries of the id that it covers.
    ///
    /// - Parameter time: Only what began until this time is deleted, in milliseconds of the cluster's clock.
    /// - Returns: The sequences of the withdrawn puts.
    func addDeletion(of id: ObjectID, until time: Int64, _ sequence: Int64) throws -> [Int64] {
        let puts = try entries("id = ? AND extension IS NOT NULL", [id.description])
        let withdrawn = puts.filter { put in
            if case .put(_, let record, _) = put.change { record.began(until: time) } else { true }
        }.map(\.sequence)
        for put in withdrawn { try database.run("DELETE FROM outbox WHERE sequence = ?", [put]) }
        let until = max(time, try deletion(of: id) ?? time)
        try database.run("DELETE FROM outbox WHERE id = ? AND extension IS NULL", [id.description])
        try database.run(
            "INSERT INTO outbox VALUES (?, ?, NULL, NULL, NULL, 0, 0, 0, 0, ?)", [sequence, id.description, until])
        return withdrawn
    }

    func contains(_ sequence: Int64) throws -> Bool {
        try database.first("SELECT 1 FROM outbox WHERE sequence = ?", [sequence]) { _ in true } ?? false
    }

    /// Returns the time of the queued deletion of an id, including one being sent; nil if there is none.
    func deletion(of id: ObjectID) throws -> Int64? {
        try database.first("SELECT until FROM outbox WHERE id = ? AND extension IS NULL", [id.description]) {
            try $0.number(0)
        }
    }

    /// Returns the times of all queued deletions, including those being sent, by id.
    func deletions() throws -> [ObjectID: Int64] {
        let rows = try database.all("SELECT id, until FROM outbox WHERE extension IS NULL") { row in
            (try Self.id(row, 0), try row.number(1) as Int64)
        }
        return Dictionary(rows) { $1 }
    }

    // MARK: Removing

    /// Removes and returns the oldest put whose sequence is not in `sequences`.
    func removeOldestPut(except sequences: Set<Int64>) throws -> OutboxEntry? {
        let oldest = try entries("extension IS NOT NULL ORDER BY sequence LIMIT ?", [sequences.count + 1])
        guard let entry = oldest.first(where: { !sequences.contains($0.sequence) }) else { return nil }
        _ = try remove(entry.sequence)
        return entry
    }

    /// Returns false if the entry was withdrawn.
    func remove(_ sequence: Int64) throws -> Bool {
        try database.run("DELETE FROM outbox WHERE sequence = ?", [sequence])
        return database.changedRows > 0
    }

    /// Removes a sent entry, and releases the puts that it blocked. Returns false if the entry was withdrawn.
    func finish(_ entry: OutboxEntry) throws -> Bool {
        let wasThere = try remove(entry.sequence)
        if wasThere, entry.isDeletion {
            try database.run("UPDATE outbox SET due = 0 WHERE id = ? AND due = ?", [entry.id.description, Turn.blocked])
        }
        return wasThere
    }

    func removeHeld() throws -> [Int64] {
        let held = try database.all("SELECT sequence FROM outbox WHERE due = ?", [Turn.held]) { try $0.value(0) as Int64 }
        try database.run("DELETE FROM outbox WHERE due = ?", [Turn.held])
        return held
    }

    // MARK: Sending

    /// Returns the entries that may be sent, in order: entries that were not refused first, then older entries first.
    func next(at now: Int64, limit: Int) throws -> [OutboxEntry] {
        // Entries without a pause, and entries whose pause is over: each an index range scan.
        let ready = try entries("due = 0 ORDER BY refused, sequence LIMIT ?", [limit])
        let rested = try entries("due > 0 AND due <= ? ORDER BY refused, sequence LIMIT ?", [now, limit])
        if rested.isEmpty { return ready }
        let all = (ready + rested).sorted { ($0.isRefused ? 1 : 0, $0.sequence) < ($1.isRefused ? 1 : 0, $1.sequence) }
        return Array(all.prefix(limit))
    }

    /// Returns when the next entry after `now` may be sent; nil if no entry is paused.
    func nextTurn(after now: Int64) throws -> Int64? {
        try database.first("SELECT min(due) FROM outbox WHERE due > ? AND due < ?", [now, Turn.blocked]) {
            try $0.value(0) as Int64?
        } ?? nil
    }

    /// Notes a failed attempt. Returns false if the entry was withdrawn.
    func delay(_ entry: OutboxEntry, until due: Int64, isRefused: Bool, isAttempt: Bool) throws -> Bool {
        try database.run(
            "UPDATE outbox SET due = ?, failures = failures + ?, refused = max(refused, ?) WHERE sequence = ?",
            [due, isAttempt, isRefused, entry.sequence])
        return database.changedRows > 0
    }

    /// Makes failed entries ready to be sent at once, including, if requested, those that a drain has given up.
    func endPauses(includesRefused: Bool = false) throws {
        try database.run(
            "UPDATE outbox SET due = 0 WHERE due > 0 AND due < ? OR due = ?",
            [Turn.blocked, includesRefused ? Turn.never : Turn.now])
    }

    func releaseHeld() throws {
        try database.run(
            """
            UPDATE outbox SET due =
                CASE WHEN EXISTS (SELECT 1 FROM outbox AS other WHERE other.id = outbox.id AND other.extension IS NULL)
                THEN ?1 ELSE 0 END
            WHERE due = ?2
            """, [Turn.blocked, Turn.held])
    }

    private func entries(_ condition: String, _ values: [any SQLiteValue]) throws -> [OutboxEntry] {
        try database.all("SELECT \(Self.columns) FROM outbox WHERE \(condition)", values) { try entry($0) }
    }

    private static let columns = "sequence, id, extension, media, record, failures, refused, until"

    private func entry(_ row: SQLiteRow) throws -> OutboxEntry {
        let id = try Self.id(row, 1)
        let change: OutboxEntry.Change
        if let fileExtension = try row.value(2) as String? {
            guard let name = RenditionName(id: id, fileExtension: fileExtension), let media = try row.value(3) as String?,
                let record = StoredRecord(fields: FieldLines.decode(try row.value(4)))
            else { throw LedgerError(.damage, "an entry of the outbox cannot be read") }
            change = .put(name, record, mediaType: media)
        } else {
            change = .delete(until: try row.number(7))
        }
        return OutboxEntry(
            sequence: try row.sequence(0), id: id, change: change, failures: try row.number(5), isRefused: try row.value(6))
    }

    private static func id(_ row: SQLiteRow, _ column: Int) throws -> ObjectID {
        guard let id = ObjectID(hex: try row.value(column) as String) else {
            throw LedgerError(.damage, "an entry of the outbox cannot be read")
        }
        return id
    }
}
