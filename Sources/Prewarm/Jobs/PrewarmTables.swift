internal import Fleet
internal import Foundation
internal import Logging
internal import Renditions
package import Store
internal import Synchronization
internal import SystemIO

/// The lists of this server, in its ledger. Claims are in memory, so entries claimed by an earlier process are pending.
///
/// A list is durable before it is accepted, and its cancellation before it is answered. Outcomes become durable later: after a
/// crash, the entry of a lost outcome is processed again, as a hit. After a list ends, its sums and first failures are kept,
/// and its individual outcomes for ``PrewarmReport/resultTime``.
final class PrewarmTables: PrewarmLists {
    let arrivals = AsyncSignal()
    private let ledger: Ledger
    /// A single thread, so that transactions wait for it and not for one another.
    private let threads: WorkThreads
    private let readers: WorkThreads
    private let logger: Logger
    /// The claimed entries by list: the end of each claim by entry number. ``reportNumber`` denotes a report.
    private let claims = Mutex<[String: [Int: ContinuousClock.Instant]]>([:])

    private let claimTime: Duration
    private static let reportNumber = -1
    /// The number of outcomes that one transaction removes.
    private static let removalSize = 5000
    private static let removalInterval = Duration.seconds(60)
    private let nextRemoval = Mutex(ContinuousClock.now)

    /// - Parameter ledger: Opened with ``PrewarmQueue/owned``.
    init(
        _ ledger: Ledger, threads: WorkThreads, readers: WorkThreads? = nil, logger: Logger,
        claimTime: Duration = ClusterTimings().claimTime
    ) {
        self.readers = readers ?? threads
        self.ledger = ledger
        self.claimTime = claimTime
        self.threads = threads
        self.logger = logger
    }

    /// The number of unfinished entries; 0 if it cannot be read. Blocks.
    var waiting: Int { (try? ledger.read(Self.waiting)) ?? 0 }

    private static func waiting(_ database: SQLiteConnection) throws -> Int {
        // A damaged list is dropped when its entries are to be claimed.
        try database.first(
            """
            SELECT coalesce(sum(total - finished), 0) FROM jobs
            WHERE ended IS NULL AND total - finished BETWEEN 0 AND \(1 << 40)
            """
        ) { try $0.number(0) } ?? 0
    }

    /// Returns why a request does not add a list; nil if the request is the first with its idempotency key.
    func refusal(of request: PrewarmRequest) async throws(LedgerError) -> PrewarmRefusal? {
        try await read { try Self.refusal(of: request, $0) }
    }

    private static func refusal(of request: PrewarmRequest, _ database: SQLiteConnection) throws -> PrewarmRefusal? {
        try database.first("SELECT id, content FROM jobs WHERE request = ? ORDER BY number DESC", [request.key]) { row in
            try row.value(1) as String? == request.content ? .known(id: try row.value(0)) : .conflict
        }
    }

    /// Adds a list durably, and forgets the oldest ones that have ended. Returns why the list was not added; nil if it was.
    func add(_ order: PrewarmOrder, _ limits: PrewarmQueue.Limits) async throws(LedgerError) -> PrewarmRefusal? {
        let refusal: PrewarmRefusal? = try await write(.full) { database in
            if let request = order.request, let refusal = try Self.refusal(of: request, database) { return refusal }
            let waiting = try Self.waiting(database)
            guard waiting + order.payloads.count <= limits.urls else { return .full(waiting: waiting, limit: limits.urls) }
            try Self.insert(order, added: Self.now, into: database)
            try database.run(
                """
                DELETE FROM jobs WHERE number IN (SELECT number FROM jobs WHERE ended IS NOT NULL ORDER BY number
                LIMIT (SELECT max(0, count(*) - ?) FROM jobs))
                """, [limits.jobs])
            return nil
        }
        arrivals.signal()
        return refusal
    }

    /// - Parameter added: When the list was added, in milliseconds since 1970.
    static func insert(_ order: PrewarmOrder, added: Int64, into database: SQLiteConnection) throws {
        try database.run(
            """
            INSERT INTO jobs (id, concurrency, callback, cancelled, reported, finished, added, request, content, total)
            VALUES (?, ?, ?, 0, 0, 0, ?, ?, ?, ?)
            """,
            [
                order.id, order.concurrency, order.callback, added, order.request?.key, order.request?.content,
                order.payloads.count,
            ])
        for (number, payload) in order.payloads.enumerated() {
            try database.run("INSERT INTO entries (job, number, entry) SELECT max(number), ?, ? FROM jobs", [number, payload])
        }
    }

    /// Drops the pending entries of a list durably, unless it has ended. Entries in progress finish.
    func cancel(_ id: String) async throws(LedgerError) {
        try await write(.full) {
            try $0.run("UPDATE jobs SET cancelled = 1, ended = ? WHERE id = ? AND ended IS NULL", [Self.now, id])
        }
    }

    // MARK: Work

    func claim(_ count: Int, except lists: Set<String> = []) async throws(LedgerError) -> [PrewarmTicket] {
        let (tickets, damaged) = try await read { database in
            var (tickets, damaged): ([PrewarmTicket], [(id: String, cause: String)]) = ([], [])
            self.claims.withLock { claims in
                claims = claims.mapValues { $0.filter { $0.value > .now } }.filter { !$0.value.isEmpty }
            }
            let ids = try database.all("SELECT id FROM jobs WHERE ended IS NULL ORDER BY number", []) {
                try $0.value(0) as String
            }
            for id in ids where tickets.count < count && !lists.contains(id) {
                do {
                    tickets += try self.entries(of: id, count - tickets.count, database)
                } catch let error as LedgerError where error.kind == .damage {
                    damaged.append((id, error.description))
                }
            }
            tickets += try self.reports(database)
            self.claim(tickets)
            return (tickets, damaged)
        }
        for (id, cause) in damaged {
            logger.warning("a damaged prewarm job was dropped", metadata: ["job": "\(id)", "cause": "\(cause)"])
            try await write(.normal) { try $0.run("DELETE FROM jobs WHERE id = ?", [id]) }
        }
        let isRemovalDue = nextRemoval.withLock { next in
            if next > .now { return false }
            next = .now + Self.removalInterval
            return true
        }
        if isRemovalDue { removeOutcomes() }
        return tickets
    }

    /// Unclaimed pending entries of a list.
    private func entries(of id: String, _ count: Int, _ database: SQLiteConnection) throws -> [PrewarmTicket] {
        let claimed = claims.withLock { $0[id] ?? [:] }
        let job = try database.first("SELECT number, concurrency, total, finished FROM jobs WHERE id = ?", [id]) {
            // The other columns are read to find damage.
            let _: (Int, Int) = (try $0.number(2), try $0.number(3))
            return (number: try $0.value(0) as Int64, concurrency: try $0.value(1) as Int)
        }
        guard let job, job.concurrency > 0 else { throw LedgerError(.damage, "its concurrency is out of range") }
        let tickets = try database.all(
            "SELECT number, entry FROM entries WHERE job = ? AND outcome IS NULL ORDER BY number LIMIT ?",
            [job.number, count + claimed.count]
        ) { row in
            let number: Int = try row.value(0)
            return claimed[number] == nil ? PrewarmTicket(id: "\(number)", list: id, payload: try row.value(1)) : nil
        }
        if tickets.isEmpty, claimed.isEmpty { throw LedgerError(.damage, "an entry is missing") }
        return Array(tickets.compactMap(\.self).prefix(count))
    }

    /// Reports that are neither delivered nor claimed.
    private func reports(_ database: SQLiteConnection) throws -> [PrewarmTicket] {
        let claimed = claims.withLock { $0.mapValues { $0[Self.reportNumber] != nil } }
        return try database.all(
            """
            SELECT id, callback FROM jobs
            WHERE ended IS NOT NULL AND cancelled = 0 AND reported = 0 AND callback IS NOT NULL ORDER BY number
            """
        ) { PrewarmTicket(id: "\(Self.reportNumber)", list: try $0.value(0), payload: [], callback: try $0.value(1)) }
        .filter { claimed[$0.list] != true }
    }

    private func claim(_ tickets: [PrewarmTicket]) {
        claims.withLock { claims in
            for ticket in tickets { claims[ticket.list, default: [:]][ticket.number] = .now + claimTime }
        }
    }

    func renew(_ tickets: [PrewarmTicket]) async throws(LedgerError) {
        // Skips entries that were finished meanwhile.
        claim(claims.withLock { claims in tickets.filter { claims[$0.list]?[$0.number] != nil } })
    }

    func finish(_ ticket: PrewarmTicket, _ result: PrewarmReport.Result?, url: String) async throws(LedgerError) -> Bool {
        let isFirst: Bool
        let ended: Int?
        do throws(LedgerError) {
            (isFirst, ended) = try await write(.normal) { try Self.finish(ticket, result, url, $0) }
        } catch {
            logger.warning("a prewarm job cannot be written to disk", metadata: ["cause": "\(error)"])
            throw error
        }
        claims.withLock { _ = $0[ticket.list]?.removeValue(forKey: ticket.number) }
        if let ended { logger.info("prewarmed", metadata: ["job": "\(ticket.list)", "urls": .stringConvertible(ended)]) }
        return isFirst
    }

    /// Returns whether the entry or report was not finished before, and the list's length if this call ended the list.
    private static func finish(
        _ ticket: PrewarmTicket, _ result: PrewarmReport.Result?, _ url: String, _ database: SQLiteConnection
    ) throws -> (Bool, Int?) {
        guard let outcome = result?.outcome else {
            try database.run("UPDATE jobs SET reported = 1 WHERE id = ? AND reported = 0", [ticket.list])
            return (database.changedRows == 1, nil)
        }
        try database.run(
            """
            UPDATE entries SET outcome = ?, arrival = jobs.finished + 1 FROM jobs
            WHERE jobs.id = ? AND entries.job = jobs.number AND entries.number = ? AND outcome IS NULL
            """, [JSONText.encode(outcome), ticket.list, ticket.number])
        guard database.changedRows == 1 else { return (false, nil) }
        let isFailure = outcome.kind == .failed
        try database.run(
            """
            UPDATE jobs SET finished = finished + 1, hits = hits + ?, failed = failed + ?, bytes = bytes + ?, saved = saved + ?,
            ended = coalesce(ended, iif(finished + 1 < total, NULL, ?)) WHERE id = ?
            """, [outcome.kind == .hit, isFailure, outcome.bytes, outcome.saved, now, ticket.list])
        if isFailure {
            try database.run(
                "INSERT INTO failures SELECT number, failed, ?, ?, ? FROM jobs WHERE id = ? AND failed <= ?",
                [url, outcome.code ?? "", outcome.detail ?? "", ticket.list, PrewarmReport.errorLimit])
        }
        return (
            true,
            try database.first("SELECT total FROM jobs WHERE id = ? AND finished = total", [ticket.list]) { try $0.value(0) }
        )
    }

    /// Removes the outcomes of lists that ended long ago, in several transactions so that other work can run between them.
    private func removeOutcomes() {
        _ = threads.submit { [self] in
            let removed = try? ledger.write(.normal) { database in
                try database.run(
                    """
                    DELETE FROM entries WHERE (job, number) IN (SELECT old.job, old.number FROM jobs CROSS JOIN entries AS old
                    ON old.job = jobs.number WHERE jobs.ended < ? LIMIT ?)
                    """, [Self.now - PrewarmReport.resultTime.milliseconds, Self.removalSize])
                return database.changedRows
            }
            if removed == Int64(Self.removalSize) { removeOutcomes() }
        }
    }

    // MARK: Reports

    func report(_ id: String, from first: Int?) async throws(LedgerError) -> PrewarmReport? {
        try await read(on: readers) { database in
            guard var report = try self.reports(database, "WHERE id = ?", [id]).first else { return nil }
            report.added = nil
            report.errors = try database.all(
                """
                SELECT url, code, detail FROM failures WHERE job = (SELECT number FROM jobs WHERE id = ?) ORDER BY place
                """, [id]
            ) { PrewarmReport.Failure(url: try $0.value(0), code: try $0.value(1), detail: try $0.value(2)) }
            guard let first else { return report }
            let decoder = JSONDecoder()
            report.results = try database.all(
                """
                SELECT number, outcome FROM entries
                WHERE job = (SELECT number FROM jobs WHERE id = ?) AND arrival > ? ORDER BY arrival LIMIT ?
                """, [id, first, PrewarmReport.resultLimit]
            ) { row in
                let number: Int = try row.value(0)
                let outcome = try? decoder.decode(PrewarmOutcome.self, from: Data(row.value(1) as [UInt8]))
                return outcome.map { PrewarmReport.Result(number: number, outcome: $0) }
            }.compactMap(\.self)
            return report
        }
    }

    /// The latest lists, newest first, without their errors.
    func lists() async throws(LedgerError) -> [PrewarmReport] {
        try await read(on: readers) { try self.reports($0, "ORDER BY number DESC LIMIT ?", [PrewarmReport.listLimit]) }
    }

    private func reports(
        _ database: SQLiteConnection, _ condition: String, _ values: [any SQLiteValue]
    ) throws -> [PrewarmReport] {
        let claimed = claims.withLock { Set($0.filter { !$0.value.isEmpty }.keys) }
        return try database.all(
            "SELECT id, added, total, finished, failed, hits, bytes, saved, cancelled, ended IS NOT NULL FROM jobs \(condition)",
            values
        ) { row in
            // A damaged list does not hide the others.
            try? Self.report(row, claimed)
        }.compactMap(\.self)
    }

    private static func report(_ row: SQLiteRow, _ claimed: Set<String>) throws -> PrewarmReport {
        let (id, added, done): (String, Int64, Int) = (try row.value(0), try row.value(1), try row.number(3))
        let isBegun = done > 0 || claimed.contains(id)
        let state = try row.value(8) ? "cancelled" : try row.value(9) ? "done" : isBegun ? "running" : "waiting"
        return PrewarmReport(
            id: id, added: added / 1000, state: state, total: try row.number(2), done: done, failed: try row.number(4),
            hits: try row.number(5), bytes: try row.number(6), saved: try row.number(7))
    }

    /// Milliseconds since 1970.
    private static var now: Int64 { Int64(Date.now.timeIntervalSince1970 * 1000) }

    private func read<Value: Sendable>(
        on threads: WorkThreads? = nil, _ body: @escaping @Sendable (SQLiteConnection) throws -> Value
    ) async throws(LedgerError) -> Value {
        try await run(on: threads) { ledger throws(LedgerError) in try ledger.read(body) }
    }

    @discardableResult
    private func write<Value: Sendable>(
        _ durability: Ledger.Durability, _ body: @escaping @Sendable (SQLiteConnection) throws -> Value
    ) async throws(LedgerError) -> Value {
        try await run { ledger throws(LedgerError) in try ledger.write(durability, body) }
    }

    private func run<Value: Sendable>(
        on threads: WorkThreads? = nil, _ work: @escaping @Sendable (Ledger) throws(LedgerError) -> Value
    ) async throws(LedgerError) -> Value {
        let result = await (threads ?? self.threads).run { [ledger] in Result { () throws(LedgerError) in try work(ledger) } }
        guard let result else { throw LedgerError(.failure, "too many requests of this kind are waiting") }
        return try result.get()
    }
}

extension PrewarmTicket {
    fileprivate var number: Int { Int(id) ?? 0 }
}

extension PrewarmQueue {
    package static let owned = Ledger.Tables(
        owner: "prewarm", firstVersion: 3,
        steps: [
            """
            CREATE TABLE jobs (
                number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, concurrency INTEGER NOT NULL,
                callback TEXT, cancelled INTEGER NOT NULL, reported INTEGER NOT NULL,
                -- The number of outcomes.
                finished INTEGER NOT NULL,
                added INTEGER NOT NULL,
                -- The idempotency key of the request, and what it says.
                request TEXT, content TEXT,
                -- Sums, so that a list that has ended needs no entries.
                total INTEGER NOT NULL, hits INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
                bytes INTEGER NOT NULL DEFAULT 0, saved INTEGER NOT NULL DEFAULT 0,
                -- In milliseconds since 1970; null before the end.
                ended INTEGER
            );
            CREATE TABLE entries (
                job INTEGER NOT NULL, number INTEGER NOT NULL, entry BLOB NOT NULL,
                -- Null without an outcome; its place in the order of arrival.
                outcome BLOB, arrival INTEGER,
                PRIMARY KEY (job, number)
            ) WITHOUT ROWID;
            CREATE INDEX entries_pending ON entries (job, number) WHERE outcome IS NULL;
            CREATE INDEX entries_arrived ON entries (job, arrival) WHERE arrival IS NOT NULL;
            -- The first failures, numbered from 1.
            CREATE TABLE failures (
                job INTEGER NOT NULL, place INTEGER NOT NULL, url TEXT NOT NULL, code TEXT NOT NULL, detail TEXT NOT NULL,
                PRIMARY KEY (job, place)
            ) WITHOUT ROWID;
            CREATE TRIGGER job_removed AFTER DELETE ON jobs BEGIN
                DELETE FROM entries WHERE job = OLD.number;
                DELETE FROM failures WHERE job = OLD.number;
            END;
            """
        ],
        // Salvages complete lists that have not ended. They start over, because the cache is empty.
        salvage: { damaged, new in
            var ids: [String] = []
            // Keeps the rows before the first damaged page.
            try? damaged.forEach("SELECT id FROM jobs WHERE ended IS NULL ORDER BY number") { ids.append(try $0.value(0)) }
            for id in ids {
                let list = try? damaged.first(
                    "SELECT number, concurrency, callback, request, content, added, total FROM jobs WHERE id = ?", [id]
                ) { row in
                    let (number, key, content): (Int64, String?, String?) = (
                        try row.value(0), try row.value(3), try row.value(4)
                    )
                    let order = PrewarmOrder(
                        id: id,
                        payloads: try damaged.all("SELECT entry FROM entries WHERE job = ? ORDER BY number", [number]) {
                            try $0.value(0)
                        },
                        concurrency: try row.value(1), callback: try row.value(2),
                        request: key.map { PrewarmRequest(key: $0, content: content ?? "") })
                    return (order: order, added: try row.value(5) as Int64, total: try row.value(6) as Int)
                }
                guard let list, list.order.payloads.count == list.total else { continue }
                try PrewarmTables.insert(list.order, added: list.added, into: new)
            }
        })
}
