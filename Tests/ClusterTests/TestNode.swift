import Foundation
import Synchronization
import TestSupport

@testable import Cluster

/// A node of a cluster over a real server, with a model of a local cache behind it.
final class TestNode: Sendable {
    let cluster: Cluster
    let folder: URL
    private let record: TestNodeRecord
    private let ownsFolder: Bool

    /// - Parameters:
    ///   - folder: The directory of an earlier run of the node; nil for a new one.
    ///   - volatile: A purge that the local cache cannot make durable.
    ///   - attempts: The number of times that it cannot.
    init(
        _ name: String, _ address: String, folder: URL? = nil, timings: ClusterTimings = .patient,
        volatile: ClusterPurge? = nil, attempts: Int = .max
    ) throws {
        self.folder =
            folder ?? FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-node-\(UUID().uuidString)")
        ownsFolder = folder == nil
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
        let configuration = try ClusterConfiguration(
            address: address, name: "test", node: name, purgeFile: self.folder.path + "/purges")
        let record = TestNodeRecord()
        self.record = record
        cluster = Cluster(
            configuration,
            handlers: PurgeHandlers(
                purgeLocalCache: { scope in
                    record.add(scope)
                    let isVolatile = scope == volatile && record.purges.count { $0 == scope } <= attempts
                    return isVolatile ? nil : PurgeCounts(purged: 1, bytes: 100)
                }, revalidateEverything: { record.revalidated() }),
            timings: timings, onEvent: { record.add($0) }, onPrewarm: { record.signalled() })
        cluster.start()
    }

    deinit {
        cluster.close()
        if ownsFolder { try? FileManager.default.removeItem(at: folder) }
    }

    var events: [ClusterEvent] { record.events }
    var purges: [ClusterPurge] { record.purges }
    var revalidations: Int { record.revalidations }
    var prewarmSignals: Int { record.prewarmSignals }

    /// Waits until the node takes part in the cluster.
    func joined() async throws {
        try await waitUntil("the node to join: \(cluster.state)") { cluster.isSharing }
    }
}

extension PurgeFollower {
    /// A follower without a node around it.
    static func test(
        _ stream: any RedisCommands, _ memory: any PurgeMemory, _ meter: ClusterMeter = ClusterMeter()
    ) -> PurgeFollower {
        let time = SystemTime()
        let handlers = PurgeHandlers(purgeLocalCache: { _ in PurgeCounts(purged: 0, bytes: 0) }, revalidateEverything: {})
        let registry = NodeRegistry(name: "one", keys: ClusterKeys(name: "test"), timings: .patient, time: time)
        return PurgeFollower(.test(stream), registry, memory, handlers, time, meter, onGap: {})
    }
}

extension PurgeStream {
    /// The stream of node `one`.
    static func test(_ commands: any RedisCommands) -> PurgeStream {
        PurgeStream(commands, ClusterKeys(name: "test"), nodeName: "one", .patient, SystemTime())
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
        var revalidations = 0
        var prewarmSignals = 0
    }

    private let state = Mutex(State())

    var events: [ClusterEvent] { state.withLock { $0.events } }
    var purges: [ClusterPurge] { state.withLock { $0.purges } }
    var revalidations: Int { state.withLock { $0.revalidations } }
    var prewarmSignals: Int { state.withLock { $0.prewarmSignals } }

    func add(_ event: ClusterEvent) { state.withLock { $0.events.append(event) } }
    func add(_ scope: ClusterPurge) { state.withLock { $0.purges.append(scope) } }
    func revalidated() { state.withLock { $0.revalidations += 1 } }
    func signalled() { state.withLock { $0.prewarmSignals += 1 } }
}

extension SharedRecord {
    /// A record of an object.
    static func test(_ id: String, facts: [UInt8] = []) -> SharedRecord {
        SharedRecord(
            outcome: .object(id: id, fileExtension: "mp4"), etag: "\"\(id)\"", fetchedAt: 1_700_000_000, freshFor: 60,
            facts: facts)
    }
}

extension FlightStart {
    var lease: Lease? { if case .lead(let lease) = self { lease } else { nil } }
    var record: SharedRecord? { if case .found(let record, _) = self { record } else { nil } }
    var isFollowed: Bool { if case .found(_, true) = self { true } else { false } }
    var error: RedisError? { if case .alone(let error) = self { error } else { nil } }
}
