import Cluster
import Ledger
import Logging
import Synchronization
import SystemIO
import Telemetry
import TestSupport
import Testing

@testable import Prewarm

@Suite("The prewarm queue is bounded") struct PrewarmQueueTests {
    private let directory: ScratchDirectory

    init() throws {
        directory = try ScratchDirectory()
    }

    /// A queue that does not start its jobs.
    private func queue(urls: Int = 10, jobs: Int = 200) throws -> PrewarmQueue {
        var limits = PrewarmQueue.Limits(concurrency: 2, urls: urls)
        limits.jobs = jobs
        return PrewarmQueue(
            limits: limits, tables: try tables(), threads: WorkThreads(count: 1, limit: 8, name: "prewarm"),
            meter: LabelledCounter(Families.prewarmed, label: "result", factory: PrometheusRegistry([])),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    }

    private func tables() throws -> PrewarmTables {
        PrewarmTables(try Ledger(directory: directory.path, owners: [PrewarmTables.owned]))
    }

    private func order(_ number: Int, _ count: Int) -> PrewarmJob.Order {
        let digits = String(number)
        return PrewarmJob.Order(
            id: String(repeating: "0", count: 32 - digits.count) + digits,
            entries: (0..<count).map { PrewarmEntry(url: "https://a.test/\($0).gif") }, retries: 0, concurrency: 1)
    }

    @Test func aJobThatWouldExceedTheLimitOfPendingEntriesIsRefused() throws {
        let queue = try queue(urls: 10)
        try queue.add(order(1, 6))
        #expect(throws: PrewarmRefusal.full(waiting: 6, limit: 10)) { try queue.add(order(2, 5)) }
        #expect(queue.waiting == 6 && queue.job(order(2, 5).id) == nil)
        try queue.add(order(3, 4))
        #expect(queue.waiting == 10)
    }

    @Test func aRepeatedRequestAddsNoJobEvenAfterARestart() throws {
        func order(_ id: String, _ content: String) -> PrewarmJob.Order {
            PrewarmJob.Order(
                id: String(repeating: id, count: 32), entries: [PrewarmEntry(url: "https://a.test/a.gif")], retries: 0,
                concurrency: 1, request: PrewarmRequest(key: "k", content: content), added: 5)
        }
        try queue().add(order("1", "c"))
        let queue = try queue()
        queue.restore()
        #expect(throws: PrewarmRefusal.known(id: order("1", "c").id)) { try queue.add(order("2", "c")) }
        #expect(throws: PrewarmRefusal.conflict) { try queue.add(order("3", "d")) }
        #expect(queue.job(order("1", "c").id)?.order.added == 5 && queue.waiting == 1)
    }

    @Test func newerJobsComeFirst() throws {
        func summaries(_ times: [Int64]) throws -> [PrewarmReport] {
            times.map { time in
                let order = PrewarmJob.Order(id: "\(time)", entries: [], retries: 0, concurrency: 1, added: time)
                return PrewarmReport(PrewarmJob(order), from: nil).summary(added: time)
            }
        }
        let newest = PrewarmReport.newest(try summaries([1000, 5000]), try summaries([3000, 9000]), limit: 3)
        #expect(newest.map(\.id) == ["9000", "5000", "3000"])
    }

    @Test func aCancelledJobMakesRoomForAnother() throws {
        let queue = try queue(urls: 3)
        try queue.add(order(1, 3))
        let job = try #require(queue.job(order(1, 3).id))
        try queue.cancel(job)
        #expect(queue.waiting == 0)
        try queue.add(order(2, 3))
    }

    @Test func aQueueThatStopsRefusesJobs() throws {
        let queue = try queue()
        queue.stop()
        #expect(throws: PrewarmRefusal.stopping) { try queue.add(order(1, 1)) }
    }

    @Test func theOldestFinishedJobsAreForgottenAndUnfinishedOnesNever() throws {
        let queue = try queue(jobs: 2)
        for number in 1...3 { try queue.add(order(number, 1)) }
        // Nothing is finished, so nothing can be forgotten.
        #expect((1...3).allSatisfy { queue.job(order($0, 1).id) != nil })
        for number in [2, 3] { try queue.cancel(try #require(queue.job(order(number, 1).id))) }
        try queue.add(order(4, 1))
        #expect([1, 4].allSatisfy { queue.job(order($0, 1).id) != nil })
        #expect([2, 3].allSatisfy { queue.job(order($0, 1).id) == nil })
        #expect(try tables().load().jobs.map(\.order.id) == [1, 4].map { order($0, 1).id })
    }

    @Test func aJobThatCannotBeWrittenIsRefusedAndLeavesNothingPending() throws {
        let database = try SQLiteConnection(path: directory.path("ledger.sqlite"))
        let queue = try queue()
        try database.execute("CREATE TRIGGER full BEFORE INSERT ON jobs BEGIN SELECT RAISE(ABORT, 'full'); END")
        let refusal = #expect(throws: PrewarmRefusal.self) { try queue.add(order(1, 2)) }
        guard case .notStored(let cause)? = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        #expect(!cause.isEmpty && queue.waiting == 0 && queue.job(order(1, 2).id) == nil)
    }

    @Test func aReportThatWasNotSentBeforeARestartIsSentOnceAfterIt() async throws {
        let order = PrewarmJob.Order(
            id: String(repeating: "a", count: 32), entries: [PrewarmEntry(url: "https://a.test/0.gif")], retries: 0,
            concurrency: 1, callback: "https://hooks.test/")
        let tables = try tables()
        try tables.create(order)
        try tables.note(0, PrewarmOutcome(kind: .new), of: order.id)
        for isReported in [false, true] {
            let queue = try queue()
            queue.restore()
            let reported = Mutex<[String]>([])
            queue.start({ preconditionFailure("there is nothing to process") }, describe: { _ in .init(code: "", detail: "") })
            {
                job in
                reported.withLock { $0.append(job.order.id) }
                queue.noteReported(job)
            }
            #expect(reported.withLock { $0 } == (isReported ? [] : [order.id]))
            try await waitUntil("the note on disk") { tables.load().jobs.first?.takeReport() == false }
        }
    }

    @Test func cancellingAJobThatHasEndedChangesNothing() throws {
        let order = order(1, 1)
        let tables = try tables()
        try tables.create(order)
        try tables.note(0, PrewarmOutcome(kind: .new), of: order.id)
        for _ in 0..<2 {
            let queue = try queue()
            queue.restore()
            let job = try #require(queue.job(order.id))
            #expect(job.progress.state == .done)
            try queue.cancel(job)
        }
    }

    @Test func aCancellationThatCannotBeRecordedIsRefusedAndTriedAgain() throws {
        let queue = try queue()
        try queue.add(order(1, 3))
        let job = try #require(queue.job(order(1, 3).id))
        let database = try SQLiteConnection(path: directory.path("ledger.sqlite"))
        try database.execute("CREATE TRIGGER broken BEFORE UPDATE ON jobs BEGIN SELECT raise(ABORT, 'a test'); END")
        for _ in 0..<2 { #expect(throws: PrewarmRefusal.self) { try queue.cancel(job) } }
        try database.execute("DROP TRIGGER broken")
        try queue.cancel(job)
        let next = try self.queue()
        next.restore()
        #expect(next.waiting == 0)
    }

    @Test func pendingEntriesAreLoadedFromDisk() throws {
        let first = try queue()
        try first.add(order(1, 3))
        try first.cancel(try #require(first.job(order(1, 3).id)))
        try first.add(order(2, 4))
        let second = try queue()
        second.restore()
        #expect(second.waiting == 4)
        #expect(second.job(order(1, 3).id)?.progress.state == .cancelled)
    }
}
