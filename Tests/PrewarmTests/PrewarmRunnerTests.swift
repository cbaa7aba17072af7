import Fleet
import Logging
import Renditions
import Synchronization
import SystemIO
import Telemetry
import TestSupport
import Testing

@testable import Fetch
@testable import Prewarm
@testable import Store

@Suite("Entries that wait leave their places to others") struct PrewarmRunnerTests {
    /// An origin with one GIF. Some of its hosts are slow or busy.
    private final class Origin: Sendable {
        let gate = AsyncGate()
        private let counts = Mutex<[String: Int]>([:])

        /// The cache's disk waits for it in the first attempt at the GIF. The second one signals it.
        let disk = Semaphore()
        var stallsDisk: Bool { count("stalling.test") == 1 }

        /// The number of fetches from a host.
        func count(_ host: String) -> Int { counts.withLock { $0[host] ?? 0 } }

        func fetch(_ url: SourceURL) async throws(FetchError) -> FetchOutcome {
            counts.withLock { $0[url.host, default: 0] += 1 }
            switch url.host {
            case "slow.test": await gate.pass()
            case "busy.test": throw .failed(.status(503, retryAfter: .seconds(300)))
            case "brief.test": throw .failed(.status(503, retryAfter: .seconds(3)))
            case "stalling.test":
                if !stallsDisk { disk.signal() }
                return try gif()
            case "failing.test": throw .failed(.status(500, retryAfter: nil))
            default: break
            }
            throw .notFound
        }

        private func gif() throws(FetchError) -> FetchOutcome {
            let bytes = Array("GIF89a".utf8)
            guard var file = try? MemoryFile(name: "test"), Self.append(bytes, to: &file), let sealed = try? file.seal() else {
                throw .exhausted(cause: "no file")
            }
            return .fetched(
                FetchedSource(
                    bytes: sealed, count: bytes.count, sha256: [UInt8](repeating: 1, count: 32),
                    validators: SourceValidators(), cacheDirectives: CacheDirectives(), duration: .zero))
        }

        private static func append(_ bytes: [UInt8], to file: inout MemoryFile) -> Bool {
            (try? bytes.withUnsafeBytes { try file.append($0) }) != nil
        }
    }

    private let directory: ScratchDirectory
    private let cache: Cache
    private let origin = Origin()
    private let pipeline: RenditionPipeline
    private let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
    private let meter = LabelledCounter(MetricFamily.prewarmed, label: "result", factory: PrometheusRegistry([]))

    init() throws {
        directory = try ScratchDirectory()
        var configuration = CacheConfiguration()
        (configuration.directory, configuration.minFreeBytes) = (directory.path, 0)
        let system = TimeSource.system
        let clock = TimeSource(
            unixNanoseconds: system.unixNanoseconds, monotonicNanoseconds: system.monotonicNanoseconds,
            timers: { Deadline(after: $0 / 50, $1) })
        cache = try Cache(
            configuration: configuration, owners: [PrewarmQueue.owned], clock: clock,
            onStep: { [origin] step in
                if step == .publishMeasured, origin.stallsDisk { origin.disk.wait() }
            })
        let state = RenditionState(
            RenditionState.Limits(
                queueTimeout: .seconds(300), fetchLifetime: .seconds(300), missLifetime: .seconds(300), jobs: 64,
                bytes: 1 << 30, fetches: 64),
            cache: cache, clock: .system)
        pipeline = RenditionPipeline(
            RenditionPipeline.Policy(originRules: OriginRules(), maxSourceBytes: 1000), state: state, cache: cache,
            fetch: { [origin] url, _, _ async throws(FetchError) in try await origin.fetch(url) },
            convert: { _, _, _ async throws(RenditionError) in throw .overloaded(cause: nil) }, logger: logger)
    }

    private func withQueue(_ concurrency: Int, _ body: (PrewarmQueue) async throws -> Void) async throws {
        let threads = WorkThreads(count: 1, limit: 64, name: "prewarm")
        defer {
            threads.close()
            cache.close()
        }
        let queue = PrewarmQueue(
            limits: PrewarmQueue.Limits(concurrency: concurrency, urls: 100), ledger: cache.ledger,
            threads: threads, meter: meter, logger: logger)
        queue.start(
            { [pipeline] in pipeline }, describe: { .init(code: "failed", detail: "\($0)") },
            report: { _, _, ended in ended() })
        defer { queue.stop() }
        try await body(queue)
    }

    private func order(_ id: String, _ urls: [String], retries: Int = 2, concurrency: Int = 1) -> PrewarmOrder {
        PrewarmOrder(
            id: id,
            payloads: urls.enumerated().map {
                PrewarmEntry(url: $1).queued($0, retries: retries, concurrency: concurrency)
            }, concurrency: concurrency)
    }

    @Test func anEntryThatPausesLeavesItsPlaceToOtherLists() async throws {
        try await withQueue(1) { queue in
            _ = try await queue.add(order("busy", ["https://busy.test/1.gif", "https://busy.test/2.gif"]))
            try await waitUntil("the fetch") { origin.count("busy.test") == 1 }
            _ = try await queue.add(order("other", ["https://other.test/1.gif", "https://other.test/2.gif"]))
            try await waitUntil("the other list") { try await queue.report("other", from: nil)?.state == "done" }
            // The pause counts for its origin.
            #expect(try await queue.report("busy", from: nil)?.done == 0 && origin.count("busy.test") == 1)
        }
    }

    @Test func anEntryThatPausesDelaysNoOtherOriginOfItsList() async throws {
        try await withQueue(2) { queue in
            let hosts = ["busy", "busy", "busy", "other", "busy", "other", "busy", "other"]
            _ = try await queue.add(order("list", hosts.enumerated().map { "https://\($1).test/\($0).gif" }, concurrency: 2))
            try await waitUntil("the other origins") { try await queue.report("list", from: nil)?.done == 3 }
            // As many as the concurrency pause.
            #expect(origin.count("busy.test") == 2)
        }
    }

    @Test func anEntryIsTriedAgainAfterItsPauseAndThenFails() async throws {
        try await withQueue(1) { queue in
            _ = try await queue.add(order("list", ["https://failing.test/1.gif"], retries: 1))
            try await waitUntil("the end of the list") { try await queue.report("list", from: nil)?.state == "done" }
            #expect(try await queue.report("list", from: nil)?.failed == 1)
        }
    }

    @Test func anEntryIsTriedAgainAfterAStallOfTheDisk() async throws {
        defer { cache.close() }
        defer { origin.disk.signal() }
        let backend = LocalBackend(
            pipeline: pipeline, describe: { .init(code: "failed", detail: "\($0)") }, concurrency: 1, retries: 0)
        let outcomes = Mutex<[PrewarmOutcome]>([])
        try await backend.run([PrewarmEntry(url: "https://stalling.test/1.gif", format: "original")]) { _, outcome in
            outcomes.withLock { $0.append(outcome) }
        }
        #expect(outcomes.withLock { $0.map(\.code) } == [nil] && origin.count("stalling.test") >= 2)
    }

    @Test func anEntryThatPausesIsNotTriedAgainAfterItsListIsCancelled() async throws {
        try await withQueue(4) { queue in
            _ = try await queue.add(order("cancelled", ["https://brief.test/1.gif"], retries: 1))
            try await waitUntil("the fetch") { origin.count("brief.test") == 1 }
            #expect(try await queue.report("cancelled", from: nil, isCancelling: true)?.state == "cancelled")
            // The pause of another entry ends later.
            _ = try await queue.add(order("other", ["https://brief.test/2.gif"], retries: 1))
            try await waitUntil("the other list") { try await queue.report("other", from: nil)?.state == "done" }
            #expect(try await queue.report("cancelled", from: nil)?.done == 0)
        }
    }

    @Test func anEntryThatPausesDelaysNoOtherOfARunWithoutAServer() async throws {
        defer { cache.close() }
        let backend = LocalBackend(
            pipeline: pipeline, describe: { .init(code: "failed", detail: "\($0)") }, concurrency: 1, retries: 2)
        let hosts = ["busy", "failing", "other", "busy", "other"]
        let finished = Mutex<[Int]>([])
        let run = Task {
            try await backend.run(hosts.enumerated().map { PrewarmEntry(url: "https://\($1).test/\($0).gif") }) { number, _ in
                finished.withLock { $0.append(number) }
            }
        }
        try await waitUntil("the entries without a long pause") { finished.withLock { $0.sorted() } == [1, 2, 4] }
        run.cancel()
        try await run.value
        #expect(finished.withLock { $0.sorted() } == [1, 2, 4])
    }

    @Test func anOriginThatRefusesGetsNoMoreOfARunThanItsConcurrency() async throws {
        defer { cache.close() }
        let backend = LocalBackend(
            pipeline: pipeline, describe: { .init(code: "failed", detail: "\($0)") }, concurrency: 2, retries: 1)
        let hosts = Array(repeating: "busy", count: 5) + ["other"] + Array(repeating: "brief", count: 5) + ["other"]
        let finished = Mutex<[Int]>([])
        let run = Task {
            try await backend.run(hosts.enumerated().map { PrewarmEntry(url: "https://\($1).test/\($0).gif") }) { number, _ in
                finished.withLock { $0.append(number) }
            }
        }
        // A place that an entry leaves goes to the next one of its origin.
        try await waitUntil("the origins with short pauses") { finished.withLock { $0.sorted() } == [5, 6, 7, 8, 9, 10, 11] }
        #expect(origin.count("busy.test") == 2)
        // Entries after those of an origin that refuses do not wait for it.
        #expect(finished.withLock { $0.prefix(2) } == [5, 11])
        run.cancel()
        try await run.value
    }

    /// Lists of a cluster, which give out entries in the order of their arrival whatever the concurrency of their lists.
    private final class OrderedLists: PrewarmLists {
        private struct State {
            var tickets: [PrewarmTicket] = []
            var finished: [PrewarmTicket] = []
            var removed: Set<String> = []
            var asked: [String] = []
            var claims = 0
        }

        typealias Fault = Never

        let arrivals = AsyncSignal()
        private let state = Mutex(State())

        var finished: [String] { state.withLock { $0.finished.map(\.list) } }
        /// The lists whose reports were asked for.
        var asked: [String] { state.withLock { $0.asked } }
        /// The number of attempts to claim entries.
        var claims: Int { state.withLock { $0.claims } }

        /// - Parameter isNew: Whether runners learn of the list; not if its entries were claimed by a node that has died since.
        func add(_ order: PrewarmOrder, isNew: Bool = true) {
            state.withLock { state in
                for (number, payload) in order.payloads.enumerated() {
                    state.tickets.append(PrewarmTicket(id: "\(number)", list: order.id, payload: payload))
                }
            }
            if isNew { arrivals.signal() }
        }

        func remove(_ list: String) {
            state.withLock { state in
                state.removed.insert(list)
                state.tickets.removeAll { $0.list == list }
            }
        }

        func claim(_ count: Int, except lists: Set<String>) async -> [PrewarmTicket] {
            state.withLock { state in
                state.claims += 1
                let claimed = state.tickets.filter { !lists.contains($0.list) }.prefix(count)
                state.tickets.removeAll { claimed.contains($0) }
                return Array(claimed)
            }
        }

        func renew(_ tickets: [PrewarmTicket]) async {}

        func finish(_ ticket: PrewarmTicket, _ result: PrewarmReport.Result?, url: String) async -> Bool {
            state.withLock { $0.finished.append(ticket) }
            return true
        }

        func report(_ id: String, from first: Int?) async -> PrewarmReport? {
            state.withLock { state in
                state.asked.append(id)
                if state.removed.contains(id) { return nil }
                return PrewarmReport(
                    id: id, added: nil, state: "running", total: 9, done: 0, failed: 0, hits: 0, bytes: 0, saved: 0)
            }
        }
    }

    @Test func aLongListOfABusyOriginDelaysNoOther() async throws {
        defer { cache.close() }
        let lists = OrderedLists()
        let runner = PrewarmRunner(concurrency: 4, meter: meter)
        lists.add(order("busy", (0..<2000).map { "https://busy.test/\($0).gif" }, concurrency: 2))
        lists.add(order("other", (0..<9).map { "https://other.test/\($0).gif" }))
        let prewarmer = Prewarmer(pipeline: { [pipeline] in pipeline }, describe: { .init(code: "", detail: "\($0)") })
        runner.start(lists, prewarmer) { _, _, ended in ended() }
        defer { runner.stop() }
        try await waitUntil("the other list") { lists.finished == Array(repeating: "other", count: 9) }
        #expect(origin.count("busy.test") == 2)
    }

    @Test func aNodeThatHasStartedTakesTheEntriesOfADeadNodeSoon() async throws {
        defer { cache.close() }
        let lists = OrderedLists()
        let runner = PrewarmRunner(concurrency: 4, meter: meter)
        let prewarmer = Prewarmer(pipeline: { [pipeline] in pipeline }, describe: { .init(code: "", detail: "\($0)") })
        runner.start(lists, prewarmer) { _, _, ended in ended() }
        defer { runner.stop() }
        try await waitUntil("the first claim") { lists.claims > 0 }
        lists.add(order("dead", ["https://other.test/0.gif"]), isNew: false)
        try await waitUntil("the entry", within: .seconds(20)) { lists.finished == ["dead"] }
    }

    @Test func aListAtItsConcurrencyDelaysNoOtherAndItsWaitingEntriesEndWithIt() async throws {
        defer { cache.close() }
        let lists = OrderedLists()
        let runner = PrewarmRunner(concurrency: 4, meter: meter)
        lists.add(order("slow", (0..<9).map { "https://slow.test/\($0).gif" }))
        lists.add(order("other", (0..<9).map { "https://other.test/\($0).gif" }, concurrency: 2))
        let prewarmer = Prewarmer(pipeline: { [pipeline] in pipeline }, describe: { .init(code: "", detail: "\($0)") })
        runner.start(lists, prewarmer) { _, _, ended in ended() }
        defer { runner.stop() }
        try await waitUntil("the other list") { lists.finished == Array(repeating: "other", count: 9) }
        #expect(origin.count("slow.test") == 1 && origin.gate.count == 1)
        lists.remove("slow")
        origin.gate.open()
        try await waitUntil("the entries that were claimed with the first") {
            lists.asked.count { $0 == "slow" } == 3 && lists.finished.last == "slow"
        }
        #expect(origin.count("slow.test") == 1 && lists.finished.count == 10)
    }
}
