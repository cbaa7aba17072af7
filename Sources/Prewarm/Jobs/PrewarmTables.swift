internal import Cluster
internal import Foundation
package import Ledger
internal import Renditions

/// Prewarm jobs in the ledger.
///
/// A job is durable before it is accepted, and its cancellation before it is answered. Outcomes become durable later: after a crash,
/// the entry of a lost outcome is processed again, as a hit. All functions block. Any thread.
package struct PrewarmTables: Sendable {
    package static let owned = Ledger.Tables(
        owner: "prewarm",
        steps: [
            """
            CREATE TABLE jobs (
                number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, retries INTEGER NOT NULL, concurrency INTEGER NOT NULL,
                callback TEXT, cancelled INTEGER NOT NULL, reported INTEGER NOT NULL,
                -- The number of outcomes.
                finished INTEGER NOT NULL
            );
            CREATE TABLE entries (
                job INTEGER NOT NULL, number INTEGER NOT NULL, entry BLOB NOT NULL,
                -- Null without an outcome; its place in the order of arrival.
                outcome BLOB, arrival INTEGER,
                PRIMARY KEY (job, number)
            ) WITHOUT ROWID;
            CREATE TRIGGER job_removed AFTER DELETE ON jobs BEGIN DELETE FROM entries WHERE job = OLD.number; END;
            """,
            """
            ALTER TABLE jobs ADD COLUMN added INTEGER NOT NULL DEFAULT 0;
            -- The idempotency key of the request, and what it says.
            ALTER TABLE jobs ADD COLUMN request TEXT;
            ALTER TABLE jobs ADD COLUMN content TEXT;
            """,
        ],
        // Whole jobs only: the numbers of outcomes refer to all entries of their job.
        salvage: { damaged, new in
            var ids: [String] = []
            // The rows before the first damaged page count.
            try? damaged.forEach("SELECT id FROM jobs ORDER BY number") { ids.append(try $0.value(0)) }
            for job in ids.compactMap({ try? job($0, in: damaged) }) { try insert(job, into: new) }
        })

    private let ledger: Ledger

    /// - Parameter ledger: Opened with ``owned``.
    package init(_ ledger: Ledger) {
        self.ledger = ledger
    }

    /// Reads the jobs in the order of their creation. Removes those that cannot be read or are out of range: a start never fails for
    /// them.
    ///
    /// - Returns: The jobs, and the ids of those that were removed, with the causes.
    func load() -> (jobs: [PrewarmJob], dropped: [(id: String, cause: String)]) {
        var jobs: [PrewarmJob] = []
        var dropped: [(id: String, cause: String)] = []
        let ids = (try? ledger.read { try $0.all("SELECT id FROM jobs ORDER BY number") { try $0.value(0) as String } }) ?? []
        for id in ids {
            do throws(LedgerError) {
                jobs.append(try ledger.read { try Self.job(id, in: $0) })
            } catch {
                dropped.append((id, error.description))
                remove(id)
            }
        }
        return (jobs, dropped)
    }

    /// Adds a new job durably.
    func create(_ order: PrewarmJob.Order) throws(LedgerError) {
        try ledger.write(.full) { try Self.insert(PrewarmJob(order), into: $0) }
    }

    /// Records the outcome of an entry.
    func note(_ number: Int, _ outcome: PrewarmOutcome, of id: String) throws(LedgerError) {
        try ledger.write(.normal) { database in
            try database.run("UPDATE jobs SET finished = finished + 1 WHERE id = ?", [id])
            try database.run(
                """
                UPDATE entries SET outcome = ?, arrival = jobs.finished FROM jobs
                WHERE jobs.id = ? AND entries.job = jobs.number AND entries.number = ?
                """, [JSONText.encode(outcome), id, number])
        }
    }

    /// Records durably that a job was cancelled.
    func noteCancelled(_ id: String) throws(LedgerError) {
        try ledger.write(.full) { try $0.run("UPDATE jobs SET cancelled = 1 WHERE id = ?", [id]) }
    }

    /// Records that the callback has got the report.
    func noteReported(_ id: String) throws(LedgerError) {
        try ledger.write(.normal) { try $0.run("UPDATE jobs SET reported = 1 WHERE id = ?", [id]) }
    }

    /// Removes a job. If that fails, the next start finds it again.
    func remove(_ id: String) {
        _ = try? ledger.write(.normal) { try $0.run("DELETE FROM jobs WHERE id = ?", [id]) }
    }

    private static func insert(_ job: PrewarmJob, into database: SQLiteConnection) throws {
        let (order, progress) = (job.order, job.progress)
        try database.run(
            """
            INSERT INTO jobs (id, retries, concurrency, callback, cancelled, reported, finished, added, request, content)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                order.id, order.retries, order.concurrency, order.callback, progress.state == .cancelled, job.isReported,
                progress.outcomes.count, order.added, order.request?.key, order.request?.content,
            ])
        for (number, entry) in order.entries.enumerated() {
            try database.run(
                "INSERT INTO entries (job, number, entry) SELECT number, ?, ? FROM jobs WHERE id = ?",
                [number, JSONText.encode(entry), order.id])
        }
        for (arrival, known) in progress.outcomes.enumerated() {
            try database.run(
                """
                UPDATE entries SET outcome = ?, arrival = ? FROM jobs
                WHERE jobs.id = ? AND entries.job = jobs.number AND entries.number = ?
                """, [JSONText.encode(known.outcome), arrival + 1, order.id, known.number])
        }
    }

    private static func job(_ id: String, in database: SQLiteConnection) throws -> PrewarmJob {
        func damage(_ cause: String) -> LedgerError { LedgerError(.damage, cause) }
        let head = try database.first(
            """
            SELECT number, retries, concurrency, callback, cancelled, reported, added, request, content FROM jobs WHERE id = ?
            """, [id]
        ) { row in
            (
                number: try row.value(0) as Int64, retries: try row.value(1) as Int, concurrency: try row.value(2) as Int,
                callback: try row.value(3) as String?, isCancelled: try row.value(4) as Bool,
                isReported: try row.value(5) as Bool, added: try row.value(6) as Int64, key: try row.value(7) as String?,
                content: try row.value(8) as String?
            )
        }
        guard let head, head.retries >= 0, head.concurrency > 0 else { throw damage("it has a number that is out of range") }
        let decoder = JSONDecoder()
        var entries: [PrewarmEntry] = []
        var outcomes: [(arrival: Int64, number: Int, outcome: PrewarmOutcome)] = []
        try database.forEach(
            "SELECT number, entry, outcome, arrival FROM entries WHERE job = ? ORDER BY number", [head.number]
        ) { row in
            let number: Int = try row.value(0)
            guard number == entries.count,
                let entry = try? decoder.decode(PrewarmEntry.self, from: Data(row.value(1) as [UInt8]))
            else { throw damage("entry \(entries.count) is missing or not an entry") }
            entries.append(entry)
            // The entry of an outcome that cannot be used is processed again.
            guard let bytes = try row.value(2) as [UInt8]?, let arrival = try row.value(3) as Int64?,
                let outcome = try? decoder.decode(PrewarmOutcome.self, from: Data(bytes))
            else { return }
            outcomes.append((arrival, number, outcome))
        }
        guard !entries.isEmpty else { throw damage("it has no entries") }
        outcomes.sort { $0.arrival < $1.arrival }
        let order = PrewarmJob.Order(
            id: id, entries: entries, retries: head.retries, concurrency: head.concurrency, callback: head.callback,
            request: head.key.flatMap { key in head.content.map { PrewarmRequest(key: key, content: $0) } },
            added: head.added)
        return PrewarmJob(
            order, outcomes: outcomes.map { ($0.number, $0.outcome) }, isCancelled: head.isCancelled,
            isReported: head.isReported)
    }
}
