import Ledger
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Cluster

@Suite("The purge stream is followed over one connection", .enabled(if: RedisServer.isAvailable))
struct PurgeFollowerTests {
    @Test func aNewConnectionEndsTheRunSoThatTheNodeCatchesUp() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let follower = Mutex<PurgeFollower?>(nil)
        let commands = ReplacedConnection(base: link) { follower.withLock { $0?.connected() } }
        let made = PurgeFollower.test(commands, try TestDisk())
        follower.withLock { $0 = made }
        // Without an error: the connection was replaced between two reads, and no command has failed.
        try await made.follow()
        #expect(!made.isTakingPart && commands.reads == 1)
    }

    @Test func thePositionIsSavedAlthoughTheAcknowledgementFails() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let stream = PurgeStream.test(link)
        let genesis = try await stream.oldest()
        let added = try await stream.add(
            [RecordedPurge(.url("https://origin.test/a.gif"), time: 1)], to: genesis.text("s") ?? ""
        ).ids
        let disk = try TestDisk()
        // One that has followed the stream before, so that it acknowledges.
        try disk.ledger.write(.full) {
            try PurgeTables($0).setPosition(PurgePosition(stream: genesis.text("s") ?? "", id: genesis.id))
        }
        let commands = UnacknowledgedConnection(base: link)
        await #expect(throws: RedisError.unavailable("an acknowledgement")) {
            try await PurgeFollower.test(commands, disk).follow()
        }
        #expect(try disk.ledger.read { try PurgeTables($0).position().id } == added.last)
    }

    @Test func aNodeThatLeavesWaitsUntilItsPositionIsSaved() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        let stream = try await RedisLink.connected(server.unixAddress)
        defer { for link in [link, stream] { link.close() } }
        let disk = try TestDisk()
        let isWriting = Mutex<Bool?>(nil)
        let node = ClusterNode(
            name: "one", keys: ClusterKeys(name: "test"), commands: link, stream: stream, ledger: disk.ledger,
            disk: WorkThreads(count: 1, limit: 64, name: "test-disk"),
            handlers: PurgeHandlers(
                purgeLocalCache: { _, _, _ in nil }, revalidateEverything: { _ in },
                record: { _ in
                    isWriting.withLock { $0 = true }
                    let never = AsyncSignal()
                    // The wait of a task that is cancelled ends at once.
                    await never.wait(for: .seconds(60))
                    await Task { await never.wait(for: .milliseconds(300)) }.value
                    isWriting.withLock { $0 = false }
                }),
            timings: .patient, time: TimeSource.system, meter: ClusterMeter())
        node.start()
        node.streamConnected()
        try await waitUntil("the write to disk") { isWriting.withLock { $0 != nil } }
        await node.leave()
        #expect(isWriting.withLock { $0 } == false)
    }

    // MARK: Purges made alone

    private func url(_ number: Int) -> ClusterPurge { .url("https://origin.test/\(number)") }

    private func purge(_ number: Int) -> RecordedPurge { RecordedPurge(url(number), time: Int64(number)) }

    private func pending(_ disk: TestDisk) throws -> [ClusterPurge] {
        try disk.ledger.read { try PurgeTables($0).pending(after: 0, limit: 1 << 20).map(\.purge.scope) }
    }

    @Test func purgesMadeAloneWaitInTheirOrderAndOneOfEverythingStandsForTooMany() async throws {
        let disk = try TestDisk()
        let meter = ClusterMeter()
        let follower = PurgeFollower.test(UnavailableCommands(), disk, meter)
        for number in 1...3 { _ = await follower.applyAlone(url(number)) }
        #expect(try pending(disk) == (1...3).map(url) && meter.snapshot.purgesPending == 3)
        _ = await follower.applyAlone(.all)
        _ = await follower.applyAlone(url(4))
        #expect(try pending(disk) == [.all, url(4)])
        try disk.ledger.write(.full) { database in
            for number in 2..<PurgeTables.maxPending { try PurgeTables(database).addPending(purge(Int(number))) }
        }
        #expect(try pending(disk).count == Int(PurgeTables.maxPending))
        _ = await follower.applyAlone(url(0))
        #expect(try pending(disk) == [.all])
    }

    @Test func purgesOfAFormerProcessAreCountedWithoutTheServer() async throws {
        let disk = try TestDisk()
        try disk.ledger.write(.full) { try PurgeTables($0).addPending(purge(1)) }
        let meter = ClusterMeter()
        await #expect(throws: RedisError.self) { try await PurgeFollower.test(UnavailableCommands(), disk, meter).follow() }
        #expect(meter.snapshot.purgesPending == 1)
    }

    @Test func aPositionThatCanNeverBeReadCountsAsLost() async throws {
        let disk = try TestDisk()
        try disk.ledger.write(.full) { try $0.run("INSERT INTO position VALUES (1, 's', 'x')") }
        let follower = PurgeFollower.test(UnavailableCommands(), disk)
        for _ in 0..<9 {
            let error = await #expect(throws: RedisError.self) { try await follower.follow() }
            #expect(error != .unavailable("test"))
        }
        // The server is asked.
        await #expect(throws: RedisError.unavailable("test")) { try await follower.follow() }
    }

    @Test func pendingPurgesAreAddedInBatches() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let disk = try TestDisk()
        try disk.ledger.write(.full) { for number in 0..<450 { try PurgeTables($0).addPending(purge(number)) } }
        let follower = PurgeFollower.test(link, disk)
        let isReady = Mutex(false)
        let task = Task { try await follower.follow { isReady.withLock { $0 = true } } }
        defer { task.cancel() }
        try await waitUntil("the node takes part") { isReady.withLock { $0 } }
        #expect(try pending(disk) == [])
        #expect(try server.run("XLEN", "{test}:v1:purges") == ":451\r\n")
        let last = try server.run("XREVRANGE", "{test}:v1:purges", "+", "-", "COUNT", "1")
        #expect(last.contains("https://origin.test/449"))
    }

    @Test func purgesThatTheServerRefusesStayPending() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let disk = try TestDisk()
        try disk.ledger.write(.full) { for number in 0..<5 { try PurgeTables($0).addPending(purge(number)) } }
        let follower = PurgeFollower.test(RefusingCommands(base: link, accepted: 2), disk)
        await #expect(throws: RedisError.self) { try await follower.follow() }
        #expect(try pending(disk) == (2..<5).map(url))
    }

    @Test func aPurgeMadeAloneThatIsNotRecordedIsAddedWhileTheProcessLives() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let disk = try TestDisk(volatile: url(1))
        let follower = PurgeFollower.test(link, disk)
        _ = await follower.applyAlone(url(1))
        #expect(try pending(disk) == [])
        let isReady = Mutex(false)
        let task = Task { try await follower.follow { isReady.withLock { $0 = true } } }
        defer { task.cancel() }
        try await waitUntil("the node takes part") { isReady.withLock { $0 } }
        #expect(try server.run("XLEN", "{test}:v1:purges") == ":2\r\n")
    }
}

/// A server that cannot be reached.
private struct UnavailableCommands: RedisCommands {
    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue] {
        throw .unavailable("test")
    }
}

/// A server that is full: of the purges in a pipeline, it accepts only the first ones.
private struct RefusingCommands: RedisCommands {
    let base: any RedisCommands
    let accepted: Int

    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue] {
        guard commands.count > accepted, commands.allSatisfy({ $0.arguments[0] == Array("XADD".utf8) }) else {
            return try await base.replies(to: commands, within: limit)
        }
        let refused = commands.dropFirst(accepted).map { _ in RedisValue.error(RedisRefusal("OOM command not allowed".utf8)) }
        return try await base.replies(to: Array(commands.prefix(accepted)), within: limit) + refused
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
