import Foundation
import Ledger
import TestSupport
import Testing

@testable import Prewarm

@Suite("Prewarm jobs survive restarts") struct PrewarmTablesTests {
    private let directory: ScratchDirectory

    init() throws {
        directory = try ScratchDirectory()
    }

    private func id(_ digit: Character) -> String { String(repeating: digit, count: 32) }

    private func order(_ digit: Character, _ entries: [PrewarmEntry]) -> PrewarmJob.Order {
        PrewarmJob.Order(id: id(digit), entries: entries, retries: 3, concurrency: 4)
    }

    private func ledger() throws -> Ledger { try Ledger(directory: directory.path, owners: [PrewarmTables.owned]) }
    private func tables() throws -> PrewarmTables { PrewarmTables(try ledger()) }

    private let entries = ["a", "b"].map { PrewarmEntry(url: "https://a.test/\($0).gif", options: ["width": "40"]) }
    private let outcome = PrewarmOutcome(kind: .new, bytes: 3, sourceBytes: 9)

    @Test func jobsAndTheirOutcomesAreReadBack() throws {
        let written = try tables()
        try written.create(order("b", entries))
        try written.create(order("a", [entries[0]]))
        try written.note(1, outcome, of: id("b"))
        try written.noteCancelled(id("a"))
        let (jobs, dropped) = try tables().load()
        #expect(dropped.isEmpty)
        // The older one first, whatever the ids are.
        #expect(jobs.map(\.order.id) == [id("b"), id("a")])
        #expect(jobs[0].order.entries == entries && jobs[0].order.retries == 3 && jobs[0].order.concurrency == 4)
        #expect(jobs[0].progress.outcomes.map(\.number) == [1] && jobs[0].progress.outcomes.first?.outcome == outcome)
        #expect(jobs[0].take() == 0 && jobs[1].progress.state == .cancelled)
    }

    @Test func outcomesAreReadBackInTheOrderOfTheirArrival() throws {
        let written = try tables()
        try written.create(order("a", entries + entries))
        for number in [2, 0, 3] { try written.note(number, outcome, of: id("a")) }
        #expect(try tables().load().jobs.first?.progress.outcomes.map(\.number) == [2, 0, 3])
    }

    @Test func aCallbackIsReadBackAndWhetherItGotTheReport() throws {
        let callback = "https://hooks.test/a?b=c"
        try tables().create(PrewarmJob.Order(id: id("a"), entries: entries, retries: 0, concurrency: 1, callback: callback))
        for number in [0, 1] { try tables().note(number, outcome, of: id("a")) }
        let first = try #require(try tables().load().jobs.first)
        #expect(first.order.callback == callback && first.takeReport() && !first.takeReport())
        try tables().noteReported(id("a"))
        let (jobs, dropped) = try tables().load()
        #expect(dropped.isEmpty && jobs.first?.takeReport() == false && jobs.first?.progress.state == .done)
    }

    @Test func theJobsOfADamagedDatabaseAreKeptAsFarAsTheyCanBeRead() throws {
        let written = try ledger()
        let many = (0..<60).map { PrewarmEntry(url: "https://a.test/\($0)\(String(repeating: "x", count: 60)).gif") }
        for digit in "abcdef" { try PrewarmTables(written).create(order(digit, many)) }
        for number in [7, 3] { try PrewarmTables(written).note(number, outcome, of: id("b")) }
        try PrewarmTables(written).noteCancelled(id("c"))
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
            let damaged = try Ledger(directory: other.path, owners: [PrewarmTables.owned])
            defer { damaged.close() }
            if damaged.replacedBecause == nil { try damaged.replaceDamaged() }
            let (jobs, dropped) = PrewarmTables(damaged).load()
            #expect(dropped.isEmpty)
            kept += jobs.count
            for job in jobs {
                #expect(job.order.entries == many)
                #expect(job.order.id != id("b") || job.progress.outcomes.map(\.number) == [7, 3])
                #expect((job.progress.state == .cancelled) == (job.order.id == id("c")))
            }
        }
        // Most pages hold entries of one or two jobs.
        #expect(kept > 3 * (whole.count / 4096 - 1))
    }

    @Test func aRemovedJobIsNotReadBackAndRemovingItAgainIsNoError() throws {
        let ledger = try ledger()
        let tables = PrewarmTables(ledger)
        try tables.create(order("a", entries))
        for _ in 0..<2 { tables.remove(id("a")) }
        #expect(tables.load().jobs.isEmpty)
        #expect(try ledger.read { try $0.all("SELECT * FROM entries") { _ in 1 } }.isEmpty)
    }

    @Test(arguments: [
        "UPDATE jobs SET retries = -1", "UPDATE jobs SET concurrency = 0", "UPDATE jobs SET concurrency = 'x'",
        "UPDATE jobs SET cancelled = 7", "DELETE FROM entries", "DELETE FROM entries WHERE number = 0",
        "UPDATE entries SET entry = x'7b7d'", "UPDATE entries SET entry = 'text'", "UPDATE entries SET number = number - 1",
    ])
    func aDamagedJobIsDroppedWithItsCauseAndNoOther(damage: String) throws {
        let ledger = try ledger()
        let tables = PrewarmTables(ledger)
        try tables.create(order("a", entries))
        try ledger.write(.full) { try $0.execute(damage) }
        try tables.create(order("b", entries))
        let (jobs, dropped) = tables.load()
        #expect(jobs.map(\.order.id) == [id("b")])
        #expect(dropped.map(\.id) == [id("a")] && dropped.allSatisfy { !$0.cause.isEmpty })
        #expect(tables.load().dropped.isEmpty)
    }

    @Test(arguments: [
        #"{"result":"hit","bytes":-1,"source_bytes":9}"#,
        #"{"result":"hit","bytes":9223372036854775807,"source_bytes":-9223372036854775808}"#, "garbage",
    ])
    func theEntryOfAnUnusableOutcomeIsPendingAgain(text: String) throws {
        let ledger = try ledger()
        let tables = PrewarmTables(ledger)
        try tables.create(order("a", entries))
        try ledger.write(.full) {
            try $0.run("UPDATE entries SET outcome = ?, arrival = 1 WHERE number = 0", [Array(text.utf8)])
        }
        try tables.note(1, outcome, of: id("a"))
        let job = try #require(tables.load().jobs.first)
        #expect(job.progress.outcomes.map(\.number) == [1] && job.take() == 0)
    }

    @Test func anyEntryAndOutcomeComesBack() throws {
        try withPrintedSeed { numbers in
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
                    ? PrewarmOutcome(PrewarmFailure(code: text(), detail: text()))
                    : PrewarmOutcome(
                        kind: Bool.random(using: &numbers) ? .hit : .new, bytes: Int.random(in: 0...1 << 40, using: &numbers),
                        sourceBytes: Int.random(in: 0...1 << 40, using: &numbers))
            }
            let written = try tables()
            try written.create(order("d", entries))
            for (number, outcome) in outcomes.enumerated() { try written.note(number, outcome, of: id("d")) }
            let (jobs, dropped) = try tables().load()
            #expect(dropped.isEmpty && jobs.first?.order.entries == entries)
            #expect(jobs.first?.progress.outcomes.map(\.outcome) == outcomes)
        }
    }
}
