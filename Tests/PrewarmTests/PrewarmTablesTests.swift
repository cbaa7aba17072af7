import Fleet
import Foundation
import Logging
import Store
import SystemIO
import TestSupport
import Testing

@testable import Prewarm

@Suite("Prewarm lists survive restarts") struct PrewarmTablesTests {
    private let directory: ScratchDirectory
    private let threads = WorkThreads(count: 1, limit: 64, name: "prewarm")

    init() throws {
        directory = try ScratchDirectory()
    }

    private func id(_ digit: Character) -> String { String(repeating: digit, count: 32) }

    private func order(
        _ digit: Character, _ entries: [PrewarmEntry], concurrency: Int = 4, callback: String? = nil
    ) -> PrewarmOrder {
        PrewarmOrder(
            id: id(digit),
            payloads: entries.enumerated().map { $1.queued($0, retries: 3, concurrency: concurrency) },
            concurrency: concurrency, callback: callback)
    }

    private func ledger() throws -> Ledger { try Ledger(directory: directory.path, owners: [PrewarmQueue.owned]) }
    /// Tables of another process: without the claims of others.
    private func tables(
        _ ledger: Ledger? = nil, readers: WorkThreads? = nil, claimTime: Duration = .seconds(60)
    ) throws -> PrewarmTables {
        PrewarmTables(
            try ledger ?? self.ledger(), threads: threads, readers: readers,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
            claimTime: claimTime)
    }
    private let limits = PrewarmQueue.Limits(concurrency: 8, urls: 10_000)

    private func entries(_ count: Int) -> [PrewarmEntry] {
        (0..<count).map { PrewarmEntry(url: "https://a.test/\($0).gif", options: ["width": "40"]) }
    }

    private let new = PrewarmOutcome(kind: .new, bytes: 10, sourceBytes: 30)
    private let hit = PrewarmOutcome(kind: .hit, bytes: 5, sourceBytes: 0)
    private let failed = PrewarmOutcome(code: "not_an_animation", detail: "The file is not a GIF.")

    private func finish(_ number: Int, _ outcome: PrewarmOutcome, of digit: Character, _ tables: PrewarmTables) async throws
        -> Bool
    {
        try await tables.finish(
            PrewarmTicket(id: "\(number)", list: id(digit), payload: []),
            PrewarmReport.Result(number: number, outcome: outcome),
            url: "https://a.test/\(number).gif")
    }

    @Test(.timeLimit(.minutes(1))) func reportsDoNotWaitForADiskThatStalls() async throws {
        let readers = WorkThreads(count: 1, limit: 64, name: "prewarm-read")
        defer { readers.close() }
        let tables = try tables(readers: readers)
        #expect(try await tables.add(order("a", entries(1)), limits) == nil)
        let disk = Semaphore()
        #expect(threads.submit { disk.wait() })
        defer { disk.signal() }
        #expect(try await tables.report(id("a"), from: nil)?.state == "waiting")
        #expect(try await tables.lists().map(\.id) == [id("a")])
    }

    @Test func entriesAreClaimedInTheOrderOfTheirLists() async throws {
        let tables = try tables()
        #expect(try await tables.add(order("b", entries(4), concurrency: 2), limits) == nil)
        #expect(try await tables.add(order("a", entries(1)), limits) == nil)
        #expect(try await tables.report(id("b"), from: nil)?.state == "waiting")
        // The older one first, whatever the ids are.
        #expect(try await tables.claim(1).map(\.id) == ["0"])
        let next = try await tables.claim(2)
        #expect(next.map(\.list) == [id("b"), id("b")] && next.map(\.id) == ["1", "2"])
        #expect(try await tables.claim(8, except: [id("b")]).map(\.list) == [id("a")] && tables.waiting == 5)
        #expect(try await tables.report(id("b"), from: nil)?.state == "running")
        let entry = try JSONDecoder().decode(QueuedEntry.self, from: Data(next[0].payload))
        #expect(entry.entry == entries(2)[1] && entry.number == 1 && entry.retries == 3 && entry.concurrency == 2)
        #expect(try await finish(1, new, of: "b", tables))
        #expect(try await tables.claim(8).map(\.id) == ["3"] && tables.waiting == 4)
    }

    @Test func aListIsDoneWhenItsLastEntryIsFinishedAndEachCountsOnce() async throws {
        let tables = try tables()
        _ = try await tables.add(order("a", entries(3)), limits)
        for (number, outcome) in [(1, failed), (0, new)] { #expect(try await finish(number, outcome, of: "a", tables)) }
        #expect(try await !finish(0, hit, of: "a", tables))
        #expect(try await tables.report(id("a"), from: nil)?.state == "running")
        #expect(try await finish(2, hit, of: "a", tables))
        let report = try #require(try await self.tables().report(id("a"), from: 0))
        #expect(report.state == "done" && report.total == 3 && report.done == 3 && report.failed == 1 && report.added == nil)
        // A rendition whose source's size is unknown saves nothing.
        #expect(report.hits == 1 && report.new == 1 && report.bytes == 15 && report.saved == 20)
        #expect(report.results?.map(\.number) == [1, 0, 2] && report.results?.map(\.outcome) == [failed, new, hit])
        #expect(tables.waiting == 0)
        // It cannot be cancelled.
        try await tables.cancel(id("a"))
        #expect(try await tables.report(id("a"), from: nil)?.state == "done")
    }

    @Test func anEntryThatWasInterruptedIsPendingAgain() async throws {
        let tables = try tables(claimTime: .milliseconds(50))
        _ = try await tables.add(order("a", entries(1)), limits)
        #expect(try await tables.claim(2).count == 1)
        try await waitUntil("the claim expires") { try await tables.claim(2).map(\.id) == ["0"] }
        // So it is in another process.
        #expect(try await self.tables().claim(2).map(\.id) == ["0"])
    }

    @Test func aClaimThatIsRenewedDoesNotExpire() async throws {
        let tables = try tables(claimTime: .seconds(2))
        _ = try await tables.add(order("a", entries(2)), limits)
        let tickets = try await tables.claim(2)
        try await waitUntil("the other claim expires") {
            try await tables.renew([tickets[0]])
            let claimed = try await tables.claim(2)
            #expect(claimed.isEmpty || claimed == [tickets[1]])
            return !claimed.isEmpty
        }
    }

    @Test func aCancelledListDropsPendingEntriesAndCountsThoseInProgress() async throws {
        let tables = try tables()
        _ = try await tables.add(order("a", entries(3), callback: "https://hooks.test/"), limits)
        #expect(try await tables.claim(1).count == 1)
        try await tables.cancel(id("a"))
        #expect(try await tables.claim(1).isEmpty && tables.waiting == 0)
        #expect(try await finish(0, new, of: "a", tables))
        let restarted = try self.tables()
        let report = try await restarted.report(id("a"), from: nil)
        #expect(report?.state == "cancelled" && report?.done == 1)
        #expect(try await restarted.claim(1).isEmpty)
    }

    @Test func aReportNamesTheFirstFailuresAndTheRequestedOutcomes() async throws {
        let tables = try tables()
        let count = 2_500
        _ = try await tables.add(order("a", entries(count)), limits)
        for number in 0..<count { _ = try await finish(number, number.isMultiple(of: 2) ? failed : new, of: "a", tables) }
        let report = try #require(try await tables.report(id("a"), from: 3))
        #expect(report.state == "done" && report.total == count && report.done == count && report.failed == count / 2)
        #expect(report.errors?.count == 100 && report.errors?.last?.url == "https://a.test/198.gif")
        #expect(report.errors?.first?.code == "not_an_animation" && report.errors?.first?.detail == "The file is not a GIF.")
        #expect(report.results?.count == 1000 && report.results?.first?.number == 3 && report.results?.last?.number == 1002)
        #expect(try await tables.report(id("a"), from: nil)?.results == nil)
        #expect(try await tables.report(id("a"), from: count)?.results?.isEmpty == true)
        #expect(try await tables.report(id("a"), from: .max)?.results?.isEmpty == true)
        #expect(try await tables.report(id("b"), from: nil) == nil)
    }

    @Test func aReportWithACallbackIsClaimedUntilItHasEnded() async throws {
        let callback = "https://hooks.test/a?b=c"
        let tables = try tables()
        _ = try await tables.add(order("a", entries(1), callback: callback), limits)
        _ = try await finish(0, new, of: "a", tables)
        let report = try #require(try await tables.claim(1).first)
        #expect(report.callback == callback && report.list == id("a"))
        #expect(try await tables.claim(1).isEmpty)
        // The process has ended before the receiver has accepted it.
        let restarted = try self.tables()
        #expect(try await restarted.claim(1) == [report])
        #expect(try await restarted.finish(report, nil, url: ""))
        #expect(try await !restarted.finish(report, nil, url: ""))
        #expect(try await self.tables().claim(1).isEmpty)
    }

    /// They are not decoded, neither before the server listens nor later, and they are removed in bounded steps.
    @Test func ofListsThatHaveEndedLongAgoOnlySumsAndTheFirstFailuresStay() async throws {
        let ledger = try ledger()
        let tables = try tables(ledger)
        for digit in "abc" { _ = try await tables.add(order(digit, entries(3)), limits) }
        for number in 0..<3 { _ = try await finish(number, number == 1 ? failed : new, of: "a", tables) }
        _ = try await finish(0, new, of: "b", tables)
        _ = try await finish(0, new, of: "c", tables)
        try await tables.cancel(id("c"))
        try ledger.write(.normal) { database in
            // Many entries that no decoder accepts.
            try database.execute(
                """
                WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
                INSERT INTO entries SELECT jobs.number, i, x'00', x'00', i + 1 FROM n, jobs WHERE ended IS NOT NULL;
                UPDATE jobs SET total = 40001, finished = 40001 WHERE number = 1; UPDATE jobs SET ended = 1 WHERE ended IS NOT NULL
                """)
        }
        ledger.close()
        let reopened = try self.ledger()
        let restarted = try self.tables(reopened)
        let summary = try #require(try await restarted.report(id("a"), from: nil))
        #expect(summary.state == "done" && summary.done == 40_001 && summary.errors?.count == 1)
        // Even while there is work.
        #expect(try await restarted.claim(8).map(\.id) == ["1", "2"])
        try await waitUntil("the outcomes are removed") {
            try reopened.read { try $0.first("SELECT count(*) FROM entries", []) { try $0.value(0) as Int } } == 3
        }
        let after = try #require(try await restarted.report(id("a"), from: 0))
        #expect(after.results == [] && after.done == 40_001 && after.hits == 0 && after.bytes == 20)
        #expect(after.errors == summary.errors)
        #expect(try await restarted.report(id("b"), from: 0)?.results?.count == 1)
        #expect(try await restarted.report(id("c"), from: nil)?.state == "cancelled")
    }

    @Test func theListsOfADamagedDatabaseAreKeptAsFarAsTheyCanBeRead() async throws {
        let written = try ledger()
        let many = (0..<60).map { PrewarmEntry(url: "https://a.test/\($0)\(String(repeating: "x", count: 60)).gif") }
        let tables = try tables(written)
        for digit in "abcdef" { _ = try await tables.add(order(digit, many, concurrency: 100), limits) }
        for number in [7, 3] { _ = try await finish(number, new, of: "b", tables) }
        try await tables.cancel(id("c"))
        written.close()
        let file = URL(filePath: directory.path(Ledger.fileName))
        let whole = try [UInt8](Data(contentsOf: file))
        var kept = 0
        // Each page but the first, which has the schema, is damaged in turn.
        for page in stride(from: 4096, to: whole.count, by: 4096) {
            var bytes = whole
            bytes.replaceSubrange(page..<page + 4096, with: [UInt8](repeating: 0xa5, count: 4096))
            let other = try ScratchDirectory()
            try Data(bytes).write(to: URL(filePath: other.path(Ledger.fileName)))
            let damaged = try Ledger(directory: other.path, owners: [PrewarmQueue.owned])
            defer { damaged.close() }
            if damaged.replacedBecause == nil { try damaged.replaceDamaged() }
            let salvaged = try self.tables(damaged)
            let reports = try await salvaged.lists()
            kept += reports.count
            // The cache is empty, so that what was made has to be made again.
            #expect(reports.allSatisfy { $0.id != id("c") && $0.state == "waiting" && $0.total == 60 && $0.done == 0 })
            let tickets = try await salvaged.claim(1000)
            #expect(tickets.count == 60 * reports.count)
            for (number, ticket) in tickets.enumerated() {
                let entry = try JSONDecoder().decode(QueuedEntry.self, from: Data(ticket.payload))
                #expect(entry.entry == many[number % 60] && entry.number == number % 60)
            }
        }
        // Most pages hold entries of one or two lists.
        #expect(kept > 2 * (whole.count / 4096 - 1))
    }

    @Test(arguments: [
        "UPDATE jobs SET concurrency = 0", "UPDATE jobs SET concurrency = 'x'", "DELETE FROM entries",
        "UPDATE entries SET entry = 'text'", "UPDATE entries SET number = 'x' WHERE number = 0",
        "UPDATE jobs SET total = 9223372036854775807", "UPDATE jobs SET finished = -9223372036854775808",
        "UPDATE jobs SET total = 'x'",
    ])
    func aDamagedListIsDroppedAndNoOther(damage: String) async throws {
        let ledger = try ledger()
        let tables = try tables(ledger)
        _ = try await tables.add(order("a", entries(2)), limits)
        try ledger.write(.full) { try $0.execute(damage) }
        _ = try await tables.add(order("b", entries(2)), limits)
        #expect(try await tables.claim(8).map(\.list) == [id("b"), id("b")])
        #expect(try await tables.report(id("a"), from: nil) == nil)
        #expect(try ledger.read { try $0.all("SELECT job FROM entries", []) { _ in 1 } }.count == 2)
    }

    @Test(arguments: ["total", "finished", "failed", "hits", "bytes", "saved"], [Int64.min, .max])
    func aDamagedReportDoesNotHideTheOthers(column: String, number: Int64) async throws {
        let ledger = try ledger()
        let tables = try tables(ledger)
        for list: Character in ["a", "b"] {
            _ = try await tables.add(order(list, entries(1)), limits)
            _ = try await finish(0, new, of: list, tables)
        }
        try ledger.write(.full) { try $0.execute("UPDATE jobs SET \(column) = \(number) WHERE id = '\(id("a"))'") }
        #expect(try await tables.lists().map(\.id) == [id("b")])
        #expect(try await tables.report(id("a"), from: nil) == nil)
        #expect(try await tables.report(id("b"), from: nil)?.done == 1)
    }

    @Test func anyEntryAndOutcomeComesBack() async throws {
        let (entries, outcomes) = withPrintedSeed { numbers in
            func text() -> String {
                let letters = Array("aé \"\\\n\u{1}/,=😀")
                return String(
                    (0..<Int.random(in: 0...12, using: &numbers)).map { _ in letters.randomElement(using: &numbers) ?? "a" })
            }
            let entries = (0..<50).map { _ in
                PrewarmEntry(
                    url: text(), format: text(),
                    options: Dictionary((0..<3).map { _ in ("o" + text(), text()) }, uniquingKeysWith: { $1 }))
            }
            let outcomes = entries.map { _ in
                Bool.random(using: &numbers)
                    ? PrewarmOutcome(code: text(), detail: text())
                    : PrewarmOutcome(
                        kind: Bool.random(using: &numbers) ? .hit : .new, bytes: Int.random(in: 0...1 << 40, using: &numbers),
                        sourceBytes: Int.random(in: 0...1 << 40, using: &numbers))
            }
            return (entries, outcomes)
        }
        let tables = try tables()
        _ = try await tables.add(order("d", entries, concurrency: 50), limits)
        let tickets = try await tables.claim(50)
        for (number, ticket) in tickets.enumerated() {
            let entry = try JSONDecoder().decode(QueuedEntry.self, from: Data(ticket.payload))
            #expect(entry.entry == entries[number])
            _ = try await finish(number, outcomes[number], of: "d", tables)
        }
        #expect(try await self.tables().report(id("d"), from: 0)?.results?.map(\.outcome) == outcomes)
    }
}
