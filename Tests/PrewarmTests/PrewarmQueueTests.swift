import Logging
import Store
import Synchronization
import SystemIO
import Telemetry
import TestSupport
import Testing

@testable import Fleet
@testable import Prewarm

@Suite("The prewarm queue is bounded") struct PrewarmQueueTests {
    private let directory: ScratchDirectory

    init() throws {
        directory = try ScratchDirectory()
    }

    /// A queue that is not started.
    private func queue(urls: Int = 10, jobs: Int = 200, cluster: SharedPrewarm? = nil) throws -> PrewarmQueue {
        var limits = PrewarmQueue.Limits(concurrency: 2, urls: urls)
        limits.jobs = jobs
        return PrewarmQueue(
            limits: limits, ledger: try Ledger(directory: directory.path, owners: [PrewarmQueue.owned]),
            threads: WorkThreads(count: 1, limit: 64, name: "prewarm"), cluster: cluster,
            meter: LabelledCounter(MetricFamily.prewarmed, label: "result", factory: PrometheusRegistry([])),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    }

    private func id(_ number: Int) -> String { String(repeating: "0", count: 31) + String(number) }

    /// A list of entries that cannot be read.
    private func order(_ number: Int, _ count: Int, callback: String? = nil, request: PrewarmRequest? = nil) -> PrewarmOrder {
        PrewarmOrder(
            id: id(number), payloads: Array(repeating: [UInt8(ascii: "?")], count: count), callback: callback, request: request)
    }

    private func start(_ queue: PrewarmQueue, _ report: @escaping PrewarmQueue.Report = { _, _, ended in ended() }) {
        queue.start(
            { preconditionFailure("there is nothing to process") }, describe: { _ in .init(code: "", detail: "") },
            report: report)
    }

    @Test func aListThatWouldExceedTheLimitOfPendingEntriesIsRefused() async throws {
        let queue = try queue(urls: 10)
        #expect(try await queue.add(order(1, 6)) == id(1))
        await #expect(throws: PrewarmRefusal.full(waiting: 6, limit: 10)) { try await queue.add(order(2, 5)) }
        #expect(try await queue.report(id(2), from: nil) == nil)
        #expect(queue.waiting == 6)
        _ = try await queue.add(order(3, 4))
        #expect(queue.waiting == 10)
    }

    @Test func aRepeatedRequestAddsNoListEvenAfterARestart() async throws {
        func request(_ content: String) -> PrewarmRequest { PrewarmRequest(key: "k", content: content) }
        _ = try await queue().add(order(1, 1, request: request("c")))
        let queue = try queue()
        #expect(try await queue.add(order(2, 1, request: request("c"))) == id(1))
        await #expect(throws: PrewarmRefusal.conflict) { try await queue.add(order(3, 1, request: request("d"))) }
        #expect(queue.waiting == 1)
    }

    /// The first request came while the server of the cluster was away.
    @Test(.enabled(if: RedisServer.isAvailable)) func aRepeatedRequestAddsNoListToTheCluster() async throws {
        func request(_ content: String) -> PrewarmRequest { PrewarmRequest(key: "k", content: content) }
        _ = try await queue().add(order(1, 1, request: request("c")))
        let server = try await RedisServer()
        defer { server.stop() }
        let link = RedisLink(try RedisAddress(server.unixAddress), name: "test")
        link.start()
        defer { link.close() }
        try await waitUntil("the connection") { link.isConnected }
        var timings = ClusterTimings()
        timings.commandLimit = .seconds(20)
        let queue = try queue(
            cluster: SharedPrewarm(
                ClusterContext(
                    commands: link, keys: ClusterKeys(name: "test"), nodeName: "one", timings: timings, time: .system,
                    meter: ClusterMeter())))
        #expect(try await queue.add(order(2, 1, request: request("c"))) == id(1))
        await #expect(throws: PrewarmRefusal.conflict) { try await queue.add(order(3, 1, request: request("d"))) }
        #expect(try server.run("DBSIZE") == ":0\r\n")
        // Others are added to the cluster.
        #expect(try await queue.add(order(4, 1, request: PrewarmRequest(key: "l", content: "c"))) == id(4))
        #expect(try server.run("XLEN", "{test}:v1:prewarm") == ":1\r\n" && queue.waiting == 1)
    }

    @Test func anEntryThatMayNeverStartIsOneThatCannotBeRead() async throws {
        let queue = try queue()
        let entry = PrewarmEntry(url: "https://a.test/a.gif").queued(0, retries: 0, concurrency: 0)
        _ = try await queue.add(PrewarmOrder(id: id(1), payloads: [entry, entry, entry]))
        start(queue)
        defer { queue.stop() }
        try await waitUntil("the end of the list") { try await queue.report(id(1), from: nil)?.state == "done" }
        #expect(try await queue.report(id(1), from: nil)?.failed == 3)
    }

    @Test func newerListsComeFirst() async throws {
        let queue = try queue()
        for number in 1...3 { _ = try await queue.add(order(number, 1)) }
        let lists = try await queue.lists()
        #expect(lists.map(\.id) == [3, 2, 1].map(id))
        #expect(lists.allSatisfy { $0.errors == nil && $0.results == nil && $0.added ?? 0 > 1_700_000_000 })
    }

    @Test func aCancelledListMakesRoomForAnother() async throws {
        let queue = try queue(urls: 3)
        _ = try await queue.add(order(1, 3))
        #expect(try await queue.report(id(1), from: nil, isCancelling: true)?.state == "cancelled")
        #expect(queue.waiting == 0)
        _ = try await queue.add(order(2, 3))
    }

    @Test func aQueueThatStopsRefusesLists() async throws {
        let queue = try queue()
        queue.stop()
        await #expect(throws: PrewarmRefusal.stopping) { try await queue.add(order(1, 1)) }
    }

    @Test func theOldestFinishedListsAreForgottenAndUnfinishedOnesNever() async throws {
        let queue = try queue(jobs: 2)
        for number in 1...3 { _ = try await queue.add(order(number, 1)) }
        // Nothing is finished, so nothing can be forgotten.
        #expect(try await queue.lists().count == 3)
        for number in [2, 3] { _ = try await queue.report(id(number), from: nil, isCancelling: true) }
        _ = try await queue.add(order(4, 1))
        #expect(try await queue.lists().map(\.id) == [id(4), id(1)])
    }

    @Test func aListThatCannotBeWrittenIsRefusedAndLeavesNothingPending() async throws {
        let queue = try queue()
        let database = try SQLiteConnection(path: directory.path("ledger.sqlite"))
        try database.execute("CREATE TRIGGER full BEFORE INSERT ON jobs BEGIN SELECT RAISE(ABORT, 'full'); END")
        let refusal = await #expect(throws: PrewarmRefusal.self) { try await queue.add(order(1, 2)) }
        guard case .notStored(let cause)? = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        #expect(try await queue.report(id(1), from: nil) == nil)
        #expect(!cause.isEmpty && queue.waiting == 0)
    }

    @Test func aCancellationThatCannotBeRecordedIsRefusedAndTriedAgain() async throws {
        let queue = try queue()
        _ = try await queue.add(order(1, 3))
        let database = try SQLiteConnection(path: directory.path("ledger.sqlite"))
        try database.execute("CREATE TRIGGER broken BEFORE UPDATE ON jobs BEGIN SELECT raise(ABORT, 'a test'); END")
        for _ in 0..<2 {
            await #expect(throws: PrewarmRefusal.self) { try await queue.report(id(1), from: nil, isCancelling: true) }
        }
        try database.execute("DROP TRIGGER broken")
        _ = try await queue.report(id(1), from: nil, isCancelling: true)
        #expect(try self.queue().waiting == 0)
    }

    @Test func listsOfAnEarlierProcessAreProcessedAndReportedOnce() async throws {
        _ = try await queue().add(order(1, 5, callback: "https://hooks.test/"))
        for isReported in [false, true] {
            let queue = try queue()
            let reported = Mutex<[String]>([])
            start(queue) { report, callback, ended in
                #expect(callback == "https://hooks.test/" && report.state == "done" && report.failed == 5)
                reported.withLock { $0.append(report.id) }
                ended()
            }
            _ = try await queue.add(order(isReported ? 3 : 2, 1))
            try await waitUntil("the lists are done") { try await queue.lists().allSatisfy { $0.state == "done" } }
            if !isReported { try await waitUntil("the report") { reported.withLock { !$0.isEmpty } } }
            try await waitUntil("the note on disk") {
                try SQLiteConnection(path: directory.path("ledger.sqlite"))
                    .first("SELECT reported FROM jobs WHERE id = ?", [id(1)]) { try $0.value(0) as Bool } == true
            }
            queue.stop()
            #expect(reported.withLock { $0 } == (isReported ? [] : [id(1)]))
            let errors = try await queue.report(id(1), from: nil)?.errors
            #expect(errors?.map(\.code) == Array(repeating: "bad_request", count: 5))
        }
    }

    @Test func anOutcomeThatCannotBeRecordedIsTriedAgain() async throws {
        let queue = try queue()
        let database = try SQLiteConnection(path: directory.path("ledger.sqlite"))
        try database.execute("CREATE TRIGGER broken BEFORE UPDATE ON entries BEGIN SELECT raise(ABORT, 'a test'); END")
        start(queue)
        defer { queue.stop() }
        _ = try await queue.add(order(1, 1))
        try await waitUntil("the entry is in progress") { try await queue.report(id(1), from: nil)?.state == "running" }
        try database.execute("DROP TRIGGER broken")
        try await waitUntil("the list is done") { try await queue.report(id(1), from: nil)?.state == "done" }
    }
}
