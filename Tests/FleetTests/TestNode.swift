import Foundation
import Synchronization
import SystemIO
import TestSupport

@testable import Fleet
@testable import Store

/// A node of a cluster over a real server, with a cache of its own.
final class TestNode: Sendable {
    let cluster: Cluster
    let cache: Cache
    let folder: URL
    private let record: TestNodeRecord
    private let ownsFolder: Bool

    /// - Parameters:
    ///   - folder: The directory of an earlier run of the node; nil for a new one.
    ///   - volatile: A purge that the cache cannot make durable. Neither can it any later one, until ``mendDisk()``.
    init(
        _ name: String, _ address: String, folder: URL? = nil, timings: ClusterTimings = .patient,
        volatile: PurgeScope? = nil, time: TimeSource = .system
    ) throws {
        self.folder =
            folder ?? FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-node-\(UUID().uuidString)")
        ownsFolder = folder == nil
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
        let configuration = try ClusterConfiguration(address: address, name: "test", node: name, timings: timings)
        let record = TestNodeRecord()
        let cache = try Cache.ofNode(in: self.folder.path, time: time)
        (self.record, self.cache) = (record, cache)
        try cache.ledger.refuse(volatile)
        cache.observePurges { record.add($0) }
        var handlers = ClusterHandlers { doubt in
            record.revalidated(doubt)
            await cache.revalidateAll(doubt)
        }
        handlers.onEvent = { record.add($0) }
        cluster = Cluster(configuration, cache: cache, time: time, handlers: handlers)
        cluster.start { record.addLate($0) }
    }

    deinit {
        cluster.close()
        cache.close()
        if ownsFolder { try? FileManager.default.removeItem(at: folder) }
    }

    var events: [ClusterEvent] { record.events }
    var purges: [PurgeScope] { record.purges }
    var revalidations: Int { record.gaps.count }
    var gaps: [MissedPurges] { record.gaps }
    var latePurges: [PurgeScope] { record.latePurges }

    func mendDisk() throws { try cache.ledger.refuse(nil) }

    /// Waits until the node takes part in the cluster.
    func joined() async throws {
        // Its three connections are independent.
        try await waitUntil("the node to join: \(events)") { cluster.isSharing && cluster.metrics.connections >= 3 }
    }

    /// Publishes a rendition of a source, whose request began at an epoch.
    func put(_ url: String, epoch: Epoch? = nil) async throws { try await cache.put(url, epoch: epoch) }

    /// Whether a rendition of the source is found.
    func has(_ url: String) async -> Bool {
        (try? await cache.rendition(for: AliasKey(sourceURL: url, rendition: "mp4"), countsMiss: true)) ?? nil != nil
    }
}

extension TimeSource {
    /// The system's clocks, with a wall clock that is ahead.
    static func ahead(by duration: Duration) -> TimeSource {
        TimeSource(
            unixNanoseconds: { TimeSource.system.unixNanoseconds() + Int64(duration / .nanoseconds(1)) },
            monotonicNanoseconds: TimeSource.system.monotonicNanoseconds)
    }
}

extension Cache {
    static func ofNode(in folder: String, time: TimeSource = .system) throws -> Cache {
        var configuration = CacheConfiguration()
        configuration.directory = "\(folder)/cache"
        configuration.minFreeBytes = 0
        configuration.housekeepingInterval = .milliseconds(50)
        return try Cache(configuration: configuration, owners: [PurgeTables.owned], clock: time)
    }

    /// Purges, and waits however long the disk takes.
    func purgeSlowly(_ purges: [Purge]) async throws {
        for purge in purges { announce(purge) }
        let result = await withCheckedContinuation { continuation in
            writeAnnounced(purges, completion: { continuation.resume(returning: $0) })
        }
        _ = try result.get()
    }

    /// Publishes a rendition of a source, whose request began at an epoch.
    func put(_ url: String, epoch: Epoch? = nil) async throws {
        let epoch = epoch ?? self.epoch
        let staged = try await stage(expecting: 0)
        _ = Array(url.utf8).withUnsafeBytes { write(staged.number, $0.baseAddress, $0.count) }
        let alias = AliasRecord(
            key: AliasKey(sourceURL: url, rendition: "mp4"), sourceURL: url, rendition: "mp4",
            times: OriginTimes(fetchedAt: 1_700_000_000))
        let source = Array(url.utf8).withUnsafeBytes { SourceDigest(of: $0) }
        _ = try await publish(
            staged, as: ObjectID(source: source, rendition: "mp4", encoderVersion: "1"), fileExtension: "mp4", facts: [],
            alias: alias, epoch: epoch, storing: true)
    }
}

extension Ledger {
    /// Has every transaction with the row of a purge fail, from now on; nil for none.
    func refuse(_ scope: PurgeScope?) throws {
        try write(.normal) { database in
            try database.execute("DROP TRIGGER IF EXISTS refusal")
            guard let scope else { return }
            try database.execute(
                """
                CREATE TRIGGER refusal BEFORE INSERT ON purges WHEN NEW.kind = '\(scope.kind)' AND NEW.argument = '\(scope.argument)'
                BEGIN SELECT RAISE(ABORT, 'the disk is broken'); END
                """)
        }
    }
}

/// A cache of its own for a follower, with its directory.
final class TestDisk: Sendable {
    let cache: Cache
    private let own: ScratchDirectory

    init(volatile: PurgeScope? = nil) throws {
        own = try ScratchDirectory()
        cache = try Cache.ofNode(in: own.path)
        try cache.ledger.refuse(volatile)
    }

    deinit { cache.close() }

    var ledger: Ledger { cache.ledger }
}

/// Runs work at once, and keeps it while it is stalled.
final class StallingDisk: BlockingWork {
    private struct State {
        var isStalled = false
        var waiting: [Work] = []
    }

    private let state = Mutex(State())

    var waiting: Int { state.withLock { $0.waiting.count } }

    func submit(_ work: @escaping Work) -> Bool {
        let isStalled = state.withLock { state in
            if state.isStalled { state.waiting.append(work) }
            return state.isStalled
        }
        if !isStalled { work() }
        return true
    }

    func stall() { state.withLock { $0.isStalled = true } }

    /// Runs what was kept, in order, and then all further work at once.
    func resume() {
        while let work = state.withLock({ state -> Work? in
            state.isStalled = !state.waiting.isEmpty
            return state.isStalled ? state.waiting.removeFirst() : nil
        }) { work() }
    }

    func close() {}
}

extension ClusterPurger {
    /// A purger without a node around it.
    ///
    /// - Parameter commands: The connection over which purges are added; nil for that of the stream.
    static func test(
        _ stream: any RedisCommands, adding commands: (any RedisCommands)? = nil, _ disk: TestDisk,
        _ meter: ClusterMeter = ClusterMeter(), unwrittenLimit: Int = 10_000
    ) -> ClusterPurger {
        let context = ClusterContext.test(commands ?? stream, meter)
        let thread = WorkThreads(count: 1, limit: 64, name: "test-disk")
        return ClusterPurger(
            context, reading: stream, NodeRegistry(context), disk.cache, thread, ClusterHandlers { _ in },
            unwrittenLimit: unwrittenLimit)
    }
}

extension PurgeStream {
    /// The stream of node `one`.
    static func test(_ commands: any RedisCommands) -> PurgeStream {
        PurgeStream(context: .test(commands))
    }
}

extension ClusterContext {
    /// That of a node `one`.
    static func test(
        _ commands: any RedisCommands, _ meter: ClusterMeter = ClusterMeter(), name: String = "one",
        timings: ClusterTimings = .patient
    ) -> ClusterContext {
        ClusterContext(
            commands: commands, keys: ClusterKeys(name: "test"), nodeName: name, timings: timings, time: .system, meter: meter)
    }
}

extension RedisLink {
    /// A link that is connected. The caller closes it.
    static func connected(_ address: String) async throws -> RedisLink {
        let link = RedisLink(try RedisAddress(address), name: "test")
        link.start()
        try await waitUntil("the connection") { link.isConnected }
        return link
    }
}

extension ClusterTimings {
    /// Times with a limit that a busy machine meets, too. A command that misses its limit has another result than the test expects.
    static var patient: ClusterTimings {
        var timings = ClusterTimings()
        timings.commandLimit = .milliseconds(800)
        return timings
    }
}

/// What happened to a ``TestNode``.
final class TestNodeRecord: Sendable {
    private struct State {
        var events: [ClusterEvent] = []
        var purges: [PurgeScope] = []
        var gaps: [MissedPurges] = []
        var latePurges: [PurgeScope] = []
    }

    private let state = Mutex(State())

    var events: [ClusterEvent] { state.withLock { $0.events } }
    var purges: [PurgeScope] { state.withLock { $0.purges } }
    var gaps: [MissedPurges] { state.withLock { $0.gaps } }

    func add(_ scope: PurgeScope) { state.withLock { $0.purges.append(scope) } }

    var latePurges: [PurgeScope] { state.withLock { $0.latePurges } }

    func addLate(_ scope: PurgeScope) { state.withLock { $0.latePurges.append(scope) } }
    func add(_ event: ClusterEvent) { state.withLock { $0.events.append(event) } }
    func revalidated(_ gap: MissedPurges) { state.withLock { $0.gaps.append(gap) } }
}

extension ObjectID {
    /// An id for a name.
    static func test(_ name: String) -> ObjectID { ObjectID(digest: AliasKey(sourceURL: name, rendition: "").digest) }
}

extension RenditionName {
    /// That of an object.
    static func test(_ id: ObjectID) -> RenditionName {
        guard let name = RenditionName(id: id, fileExtension: "mp4") else { preconditionFailure() }
        return name
    }
}

extension SharedRecord {
    /// A record of an object.
    static func test(_ name: String) -> SharedRecord {
        SharedRecord(
            outcome: .object(.test(.test(name))), validators: Validators(etag: "\"\(name)\""),
            times: OriginTimes(fetchedAt: 1_700_000_000, freshFor: 60))
    }
}

extension FlightStart {
    var lease: Lease? { if case .lead(let lease) = self { lease } else { nil } }
    var record: SharedRecord? { if case .found(let record, _) = self { record } else { nil } }
    var isFollowed: Bool { if case .found(_, true) = self { true } else { false } }
    var error: RedisError? { if case .alone(let error) = self { error } else { nil } }
}
