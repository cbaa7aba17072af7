import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Cluster

@Suite("The purge stream is followed over one connection", .enabled(if: RedisServer.isAvailable))
struct PurgeFollowerTests {
    @Test func aNewConnectionEndsTheRunSoThatTheNodeCatchesUp() async throws {
        let (server, folder) = (try await RedisServer(), try ScratchDirectory())
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let follower = Mutex<PurgeFollower?>(nil)
        let commands = ReplacedConnection(base: link) { follower.withLock { $0?.connected() } }
        let made = PurgeFollower.test(commands, PurgeFile(path: folder.path("purges")))
        follower.withLock { $0 = made }
        // Without an error: the connection was replaced between two reads, and no command has failed.
        try await made.follow()
        #expect(!made.isTakingPart && commands.reads == 1)
    }

    @Test func thePositionIsSavedAlthoughTheAcknowledgementFails() async throws {
        let (server, folder) = (try await RedisServer(), try ScratchDirectory())
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let stream = PurgeStream.test(link)
        let genesis = try await stream.oldest()
        let added = try await stream.add([.url("https://origin.test/a.gif")], to: genesis.text("s") ?? "").ids
        let memory = PurgeFile(path: folder.path("purges"))
        // One that has followed the stream before, so that it acknowledges.
        var saved = SavedPurges()
        (saved.stream, saved.position) = (genesis.text("s") ?? "", genesis.id)
        #expect(await memory.save(saved))
        let commands = UnacknowledgedConnection(base: link)
        await #expect(throws: RedisError.unavailable("an acknowledgement")) {
            try await PurgeFollower.test(commands, memory).follow()
        }
        #expect(await memory.load()?.position == added.last)
    }

    @Test func aNodeThatLeavesWaitsUntilItsPositionIsSaved() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        let stream = try await RedisLink.connected(server.unixAddress)
        defer { for link in [link, stream] { link.close() } }
        let memory = SlowMemory()
        let node = ClusterNode(
            name: "one", keys: ClusterKeys(name: "test"), commands: link, stream: stream, memory: memory,
            handlers: PurgeHandlers(
                purgeLocalCache: { _ in PurgeCounts(purged: 0, bytes: 0) }, revalidateEverything: {}),
            timings: .patient, time: SystemTime(), meter: ClusterMeter())
        node.start()
        node.streamConnected()
        try await waitUntil("the write to disk") { memory.hasBegun }
        await node.leave()
        #expect(memory.hasEnded)
    }
}

/// A link that sends no acknowledgements.
private struct UnacknowledgedConnection: RedisCommands {
    let base: any RedisCommands

    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue] {
        if commands.first?.arguments[0] == Array("HSET".utf8) { throw .unavailable("an acknowledgement") }
        return try await base.replies(to: commands, within: limit)
    }
}

/// A memory whose first write lasts until its task is cancelled, and a while longer.
private final class SlowMemory: PurgeMemory {
    private let isWriting = Mutex<Bool?>(nil)

    var hasBegun: Bool { isWriting.withLock { $0 != nil } }
    var hasEnded: Bool { isWriting.withLock { $0 == false } }

    func load() async -> SavedPurges? { SavedPurges() }
    func append(_ scope: ClusterPurge) async -> Bool { false }
    func isCurrent() async -> Bool { true }

    func save(_ saved: SavedPurges) async -> Bool {
        isWriting.withLock { $0 = true }
        let never = AsyncSignal()
        // The wait of a task that is cancelled ends at once.
        await never.wait(for: .seconds(60))
        await Task { await never.wait(for: .milliseconds(300)) }.value
        isWriting.withLock { $0 = false }
        return true
    }
}

/// A link whose connection is replaced during the first read of new entries. A second read fails.
private final class ReplacedConnection: RedisCommands {
    private let base: any RedisCommands
    private let onReplacement: @Sendable () -> Void
    private let count = Mutex(0)

    init(base: any RedisCommands, onReplacement: @escaping @Sendable () -> Void) {
        self.base = base
        self.onReplacement = onReplacement
    }

    /// The number of reads so far.
    var reads: Int { count.withLock { $0 } }

    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue] {
        guard commands.first?.arguments[0] == Array("XREAD".utf8) else {
            return try await base.replies(to: commands, within: limit)
        }
        let number = count.withLock { count in
            count += 1
            return count
        }
        guard number == 1 else { throw .unavailable("a second read") }
        onReplacement()
        return [.none]
    }
}
