import Foundation
import Ledger
import Synchronization
import SystemIO
import TestSupport

@testable import Cluster

/// A node of a cluster over a real server, with a model of a local cache behind it.
final class TestNode: Sendable {
    let cluster: Cluster
    let folder: URL
    private let record: TestNodeRecord
    private let disk: TestDisk
    private let ownsFolder: Bool

    /// - Parameters:
    ///   - folder: The directory of an earlier run of the node; nil for a new one.
    ///   - volatile: A purge that the local cache cannot make durable. Neither can it any later one, until ``mendDisk()``.
    init(
        _ name: String, _ address: String, folder: URL? = nil, timings: ClusterTimings = .patient,
        volatile: ClusterPurge? = nil
    ) throws {
        self.folder =
            folder ?? FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-node-\(UUID().uuidString)")
        ownsFolder = folder == nil
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
        let configuration = try ClusterConfiguration(address: address, name: "test", node: name, timings: timings)
        let (record, disk) = (TestNodeRecord(), try TestDisk(self.folder.path, volatile: volatile))
        self.record = record
        self.disk = disk
        cluster = Cluster(
            configuration, ledger: disk.ledger,
            handlers: PurgeHandlers(
                purgeLocalCache: { scope, time, place in
                    record.add(scope, time)
                    return disk.commit(place, scope) ? PurgeCounts(purged: 1, bytes: 100) : nil
                }, revalidateEverything: { record.revalidated($0) }, record: { disk.commit($0, nil) }),
            onEvent: { record.add($0) }, onPrewarm: { record.signalled() })
        cluster.start { record.addLate($0) }
    }

    deinit {
        cluster.close()
        disk.ledger.close()
        if ownsFolder { try? FileManager.default.removeItem(at: folder) }
    }

    var events: [ClusterEvent] { record.events }
    var purges: [ClusterPurge] { record.purges }
    /// When each of ``purges`` was made; nil for one that was made as it was applied.
    var purgeTimes: [Int64?] { record.purgeTimes }
    var revalidations: Int { record.gaps.count }
    var gaps: [MissedPurges] { record.gaps }
    var prewarmSignals: Int { record.prewarmSignals }
    var latePurges: [ClusterPurge] { record.latePurges }

    func mendDisk() { disk.mend() }

    /// Waits until the node takes part in the cluster.
    func joined() async throws {
        // Its three connections are independent.
        try await waitUntil("the node to join: \(cluster.state)") { cluster.isSharing && cluster.metrics.connections >= 3 }
    }
}

/// A ledger, and what it could not record: the next change that can be recorded includes it, as in a cache.
final class TestDisk: Sendable {
    private struct State {
        var isBroken = false
        var volatile: ClusterPurge?
        var unrecorded: [Ledger.Change] = []
    }

    let ledger: Ledger
    private let own: ScratchDirectory?
    private let state: Mutex<State>

    /// - Parameter directory: Nil for one of its own.
    init(_ directory: String? = nil, volatile: ClusterPurge? = nil) throws {
        let own = try directory == nil ? ScratchDirectory() : nil
        self.own = own
        ledger = try Ledger(directory: directory ?? own?.path ?? "", owners: [PurgeTables.owned])
        state = Mutex(State(volatile: volatile))
    }

    func mend() {
        state.withLock { ($0.isBroken, $0.volatile) = (false, nil) }
    }

    /// Records a change, and those before it. Returns false if that is impossible.
    @discardableResult
    func commit(_ change: @escaping Ledger.Change, _ scope: ClusterPurge?) -> Bool {
        state.withLock { state in
            if let scope, scope == state.volatile { state.isBroken = true }
            state.unrecorded.append(change)
            let changes = state.unrecorded
            let write: (SQLiteConnection) throws -> Void = { database in
                for change in changes { try change(database) }
            }
            guard !state.isBroken, (try? ledger.write(.full, write)) != nil else { return false }
            state.unrecorded = []
            return true
        }
    }

    var handlers: PurgeHandlers {
        PurgeHandlers(
            purgeLocalCache: { self.commit($2, $0) ? PurgeCounts(purged: 0, bytes: 0) : nil },
            revalidateEverything: { _ in },
            record: { self.commit($0, nil) })
    }
}

extension PurgeFollower {
    /// A follower without a node around it.
    static func test(_ stream: any RedisCommands, _ disk: TestDisk, _ meter: ClusterMeter = ClusterMeter()) -> PurgeFollower {
        let time = TimeSource.system
        let registry = NodeRegistry(name: "one", keys: ClusterKeys(name: "test"), timings: .patient, time: time)
        let thread = WorkThreads(count: 1, limit: 64, name: "test-disk")
        return PurgeFollower(.test(stream), registry, disk.ledger, thread, disk.handlers, time, meter, onGap: {})
    }
}

extension PurgeStream {
    /// The stream of node `one`.
    static func test(_ commands: any RedisCommands) -> PurgeStream {
        PurgeStream(commands, ClusterKeys(name: "test"), nodeName: "one", .patient, TimeSource.system)
    }
}

extension RedisLink {
    /// A link that is connected. The caller closes it.
    static func connected(_ address: String) async throws -> RedisLink {
        let link = RedisLink(try RedisAddress(address), name: "test", onEvent: { _ in })
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
        var purges: [ClusterPurge] = []
        var purgeTimes: [Int64?] = []
        var gaps: [MissedPurges] = []
        var prewarmSignals = 0
        var latePurges: [ClusterPurge] = []
    }

    private let state = Mutex(State())

    var events: [ClusterEvent] { state.withLock { $0.events } }
    var purges: [ClusterPurge] { state.withLock { $0.purges } }
    var purgeTimes: [Int64?] { state.withLock { $0.purgeTimes } }
    var gaps: [MissedPurges] { state.withLock { $0.gaps } }
    var prewarmSignals: Int { state.withLock { $0.prewarmSignals } }

    func add(_ scope: ClusterPurge, _ time: Int64?) {
        state.withLock { state in
            state.purges.append(scope)
            state.purgeTimes.append(time)
        }
    }

    var latePurges: [ClusterPurge] { state.withLock { $0.latePurges } }

    func addLate(_ scope: ClusterPurge) { state.withLock { $0.latePurges.append(scope) } }
    func add(_ event: ClusterEvent) { state.withLock { $0.events.append(event) } }
    func revalidated(_ gap: MissedPurges) { state.withLock { $0.gaps.append(gap) } }
    func signalled() { state.withLock { $0.prewarmSignals += 1 } }
}

extension SharedRecord {
    /// A record of an object.
    static func test(_ id: String) -> SharedRecord {
        SharedRecord(outcome: .object(id: id, fileExtension: "mp4"), etag: "\"\(id)\"", fetchedAt: 1_700_000_000, freshFor: 60)
    }
}

extension FlightStart {
    var lease: Lease? { if case .lead(let lease) = self { lease } else { nil } }
    var record: SharedRecord? { if case .found(let record, _) = self { record } else { nil } }
    var isFollowed: Bool { if case .found(_, true) = self { true } else { false } }
    var error: RedisError? { if case .alone(let error) = self { error } else { nil } }
}
