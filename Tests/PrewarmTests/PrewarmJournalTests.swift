import TestSupport
import Testing

@testable import Prewarm

@Suite("The journal of prewarm jobs survives restarts") struct PrewarmJournalTests {
    private let directory: ScratchDirectory

    init() throws {
        directory = try ScratchDirectory()
    }

    private func id(_ digit: Character) -> String { String(repeating: digit, count: 32) }

    private func order(_ digit: Character, _ entries: [PrewarmEntry]) -> PrewarmJob.Order {
        PrewarmJob.Order(id: id(digit), entries: entries, retries: 3, concurrency: 4)
    }

    private func journal() -> PrewarmJournal { PrewarmJournal(cacheDirectory: directory.path) }

    private let entries = ["a", "b"].map { PrewarmEntry(url: "https://a.test/\($0).gif", options: ["width": "40"]) }
    private let outcome = PrewarmOutcome(kind: .new, bytes: 3, sourceBytes: 9)

    @Test func jobsAndTheirOutcomesAreReadBack() throws {
        let written = journal()
        try written.create(order("b", entries))
        try written.create(order("a", [entries[0]]))
        try written.note(1, outcome, of: id("b"))
        try written.noteCancelled(id("a"))
        let (jobs, damages) = journal().load()
        #expect(damages.isEmpty)
        // The older one first, whatever the names of the files are.
        #expect(jobs.map(\.order.id) == [id("b"), id("a")])
        #expect(jobs[0].order.entries == entries && jobs[0].order.retries == 3 && jobs[0].order.concurrency == 4)
        #expect(jobs[0].progress.outcomes.map(\.number) == [1] && jobs[0].progress.outcomes.first?.outcome == outcome)
        #expect(jobs[0].take() == 0 && jobs[1].progress.state == .cancelled)
    }

    @Test func aCallbackIsReadBackAndWhetherItGotTheReport() throws {
        let callback = "https://hooks.test/a?b=c"
        try journal().create(PrewarmJob.Order(id: id("a"), entries: entries, retries: 0, concurrency: 1, callback: callback))
        for number in [0, 1] { try journal().note(number, outcome, of: id("a")) }
        let first = try #require(journal().load().jobs.first)
        #expect(first.order.callback == callback && first.takeReport() && !first.takeReport())
        try journal().noteReported(id("a"))
        let (jobs, damages) = journal().load()
        #expect(damages.isEmpty && jobs.first?.takeReport() == false && jobs.first?.progress.state == .done)
    }

    @Test func outcomesAreAppendedAfterARestartToo() throws {
        try journal().create(order("a", entries))
        try journal().note(0, outcome, of: id("a"))
        let again = journal()
        try again.note(1, outcome, of: id("a"))
        try again.close(id("a"))
        #expect(journal().load().jobs.first?.progress.state == .done)
    }

    @Test func aRemovedJobIsNotReadBackAndRemovingItAgainIsNoError() throws {
        let journal = journal()
        try journal.create(order("a", entries))
        try journal.remove(id("a"))
        try journal.remove(id("a"))
        #expect(journal.load().jobs.isEmpty && directory.names(in: "prewarm").isEmpty)
    }

    @Test func unfinishedFilesAreRemovedAndForeignOnesLeft() throws {
        try directory.write("prewarm/\(id("a")).ndjson.part", "{")
        try directory.write("prewarm/notes.txt", "mine")
        let (jobs, damages) = journal().load()
        #expect(jobs.isEmpty && damages.isEmpty)
        #expect(directory.names(in: "prewarm") == ["notes.txt"])
    }

    @Test func aJobInTheFileOfAnotherIsDropped() throws {
        try journal().create(order("a", entries))
        try directory.write("prewarm/\(id("b")).ndjson", try directory.text("prewarm/\(id("a")).ndjson"))
        let (jobs, damages) = journal().load()
        #expect(jobs.map(\.order.id) == [id("a")])
        #expect(damages.map(\.file) == ["\(id("b")).ndjson"] && damages.allSatisfy(\.isDropped))
        #expect(damages.first?.cause == "its order has the id of another job")
        #expect(directory.names(in: "prewarm") == ["\(id("a")).ndjson"])
    }

    @Test func aFileThatEndsWithinALineLosesThatLineOnly() throws {
        let written = journal()
        try written.create(order("a", entries))
        try written.note(0, outcome, of: id("a"))
        try written.note(1, outcome, of: id("a"))
        try written.close(id("a"))
        let name = "prewarm/\(id("a")).ndjson"
        try directory.write(name, String(try directory.text(name).dropLast(10)))
        let (jobs, damages) = journal().load()
        #expect(jobs.first?.progress.outcomes.map(\.number) == [0] && jobs.first?.take() == 1)
        #expect(
            damages == [PrewarmJournal.Damage(file: "\(id("a")).ndjson", cause: "1 outcomes cannot be read", isDropped: false)])
    }

    @Test(arguments: [
        ("", "its first line is not an order"), ("{}\n", "its first line is not an order"),
        (#"{"id":"ID","created":1,"total":0,"retries":0,"concurrency":1}"#, "its order has a number that is out of range"),
        (#"{"id":"ID","created":1,"total":1,"retries":-1,"concurrency":1}"#, "its order has a number that is out of range"),
        (#"{"id":"ID","created":1,"total":1,"retries":0,"concurrency":0}"#, "its order has a number that is out of range"),
        (
            #"{"id":"ID","created":1,"total":9999999999,"retries":0,"concurrency":1}"#,
            "its order has a number that is out of range"
        ),
        (#"{"id":"ID","created":1,"total":1,"retries":0,"concurrency":1}"#, "entry 0 of 1 is missing or not an entry"),
    ])
    func aJobWhoseOrderCannotBeReadIsDroppedWithTheCause(_ text: String, _ cause: String) throws {
        try directory.write("prewarm/\(id("c")).ndjson", text.replacing("ID", with: id("c")))
        let (jobs, damages) = journal().load()
        #expect(jobs.isEmpty && damages.map(\.cause) == [cause] && directory.names(in: "prewarm").isEmpty)
    }

    @Test func anyEntryAndOutcomeComesBackFromTheFile() throws {
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
            let written = journal()
            try written.create(order("d", entries))
            for (number, outcome) in outcomes.enumerated() { try written.note(number, outcome, of: id("d")) }
            let (jobs, damages) = journal().load()
            #expect(damages.isEmpty && jobs.first?.order.entries == entries)
            #expect(jobs.first?.progress.outcomes.map(\.outcome) == outcomes)
        }
    }
}
