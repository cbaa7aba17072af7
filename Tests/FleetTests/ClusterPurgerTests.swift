import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Fleet
@testable import Store

@Suite("The purge stream is followed over one connection", .enabled(if: RedisServer.isAvailable))
struct ClusterPurgerTests {
    @Test func aNewConnectionEndsTheRunSoThatTheNodeCatchesUp() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let purger = Mutex<ClusterPurger?>(nil)
        let commands = ReplacedConnection(base: link) { purger.withLock { $0?.connected() } }
        let disk = try TestDisk()
        let made = ClusterPurger.test(commands, disk)
        purger.withLock { $0 = made }
        // Without an error: the connection was replaced between two reads, and no command has failed.
        try await made.follow()
        #expect(!made.isTakingPart && commands.reads == 1)
        withExtendedLifetime(disk) {}
    }

    @Test(arguments: [nil, RedisValue.error(RedisRefusal("OOM command not allowed".utf8))])
    func anAcknowledgementThatFailsIsSentAgainAndThePositionIsSaved(_ refusal: RedisValue?) async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let other = try await RedisLink.connected(server.unixAddress)
        defer { other.close() }
        let stream = PurgeStream.test(other)
        let genesis = try await stream.oldest(at: 1)
        let disk = try TestDisk()
        let purger = ClusterPurger.test(UnacknowledgedConnection(base: link, reply: refusal), disk)
        let isReady = Mutex(false)
        let following = Task { try await purger.follow { isReady.withLock { $0 = true } } }
        try await waitUntil("the node takes part") { isReady.withLock { $0 } }
        let added = try await stream.add([purge(1)], to: genesis.text("s") ?? "", isLate: false).ids
        let last = try #require(added.last)
        await #expect(throws: RedisError.self) { try await following.value }
        #expect(try disk.ledger.read { try PurgeTables($0).position().id } == last)
        #expect(try await stream.acknowledgements(of: last).isEmpty)
        let again = Task {
            // On a busy machine, a command may miss its limit.
            while !Task.isCancelled { try? await purger.follow() }
        }
        defer { again.cancel() }
        try await waitUntil("the acknowledgement") { try await stream.acknowledgements(of: last).count == 1 }
    }

    @Test func theClockIsSavedWithEveryHeartbeatAndOnceAtATimeWhileTheDiskStalls() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (link, stream) = (
            try await RedisLink.connected(server.unixAddress), try await RedisLink.connected(server.unixAddress)
        )
        defer {
            link.close()
            stream.close()
        }
        var timings = ClusterTimings.patient
        timings.beatInterval = .milliseconds(5)
        let (own, disk) = (try TestDisk(), StallingDisk())
        let node = Cluster(
            .test(link, timings: timings), stream: stream, cache: own.cache, disk: disk,
            reporter: StateReporter(server: "test", onChange: { _ in }), handlers: ClusterHandlers { _ in })
        node.start { _ in }
        node.streamConnected()
        try await waitUntil("the node takes part") { node.purger.isTakingPart }
        disk.stall()
        let before = try server.commandCalls()["set", default: 0]
        try await waitUntil("heartbeats") { try server.commandCalls()["set", default: 0] >= before + 20 }
        // One more is a read of the stream.
        #expect(disk.waiting <= 2)
        disk.resume()
        func lastPart() throws -> Int64 {
            try own.ledger.read { try PurgeTables($0).clock(ofBoot: ClusterTime.boot)?.part } ?? 0
        }
        // The second one began after the disk had resumed.
        for _ in 0..<2 {
            let last = try lastPart()
            try await waitUntil("a later save") { try lastPart() > last }
        }
        await node.leave()
    }

    // MARK: Purges made alone

    private func url(_ number: Int) -> PurgeScope { .url("https://origin.test/\(number)") }

    private func purge(_ number: Int) -> Purge {
        Purge(url(number), madeAt: Int64(number), isLocal: true, token: "\(number)", entry: nil)
    }

    private func pending(_ disk: TestDisk) throws -> [PurgeScope] {
        try disk.ledger.read { try PurgeTable($0).pending(limit: 1 << 20).map(\.scope) }
    }

    @Test func purgesMadeAloneWaitInTheirOrder() async throws {
        let disk = try TestDisk()
        let meter = ClusterMeter()
        let purger = ClusterPurger.test(UnavailableCommands(), disk, meter)
        for number in 1...3 { _ = await purger.make(url(number)) }
        #expect(try pending(disk) == (1...3).map(url) && meter.snapshot.purgesPending == 3)
    }

    @Test func purgesOfAFormerProcessAreCountedWithoutTheServer() async throws {
        let disk = try TestDisk()
        _ = try await disk.cache.purge([purge(1)])
        let meter = ClusterMeter()
        await #expect(throws: RedisError.self) { try await ClusterPurger.test(UnavailableCommands(), disk, meter).follow() }
        #expect(meter.snapshot.purgesPending == 1)
    }

    @Test func aPositionThatCanNeverBeReadCountsAsLost() async throws {
        let disk = try TestDisk()
        try disk.ledger.write(.full) { try $0.run("INSERT INTO position VALUES (1, 's', 'x')") }
        let purger = ClusterPurger.test(UnavailableCommands(), disk)
        for _ in 0..<9 {
            let error = await #expect(throws: RedisError.self) { try await purger.follow() }
            #expect(error != .unavailable("test"))
        }
        // The server is asked.
        await #expect(throws: RedisError.unavailable("test")) { try await purger.follow() }
    }

    @Test func pendingPurgesAreAddedInBatches() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let disk = try TestDisk()
        _ = try await disk.cache.purge((0..<450).map(purge))
        let purger = ClusterPurger.test(link, disk)
        let isReady = Mutex(false)
        let task = Task { try await purger.follow { isReady.withLock { $0 = true } } }
        defer { task.cancel() }
        try await waitUntil("the node takes part") { isReady.withLock { $0 } }
        #expect(try pending(disk) == [])
        #expect(try server.run("XLEN", "{test}:v1:purges") == ":451\r\n")
        let last = try server.run("XREVRANGE", "{test}:v1:purges", "+", "-", "COUNT", "1")
        #expect(last.contains("https://origin.test/449"))
    }

    @Test func theFirstPurgeAfterOneOfEverythingStandsForTooManyIsPendingToo() async throws {
        let disk = try TestDisk()
        let purger = ClusterPurger.test(UnavailableCommands(), disk)
        let most = Int(PurgeTable.mostPending)
        try await disk.cache.purgeSlowly((0..<most).map(purge))
        for number in most...most + 1 { _ = await purger.make(url(number)) }
        #expect(try pending(disk) == [.all, url(most + 1)])
    }

    @Test func onePurgeOfEverythingThatStandsForTooManyIsSweptOnItsOwnNode() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let disk = try TestDisk()
        try await disk.cache.put("https://origin.test/other")
        let purger = ClusterPurger.test(link, disk)
        let most = Int(PurgeTable.mostPending)
        try await disk.cache.purgeSlowly((0..<most).map(purge))
        // Thousands of sweeps, each with its transaction, would come before the one that the test waits for.
        try disk.ledger.write(.full) { try $0.run("UPDATE purges SET swept = 1") }
        _ = await purger.make(url(most))
        #expect(try pending(disk) == [.all] && disk.cache.statistics().objects == 1)
        let task = Task {
            // On a busy machine, a command may miss its limit.
            while !Task.isCancelled { try? await purger.follow() }
        }
        defer { task.cancel() }
        try await waitUntil("the rows to go") { disk.cache.statistics().objects == 0 }
    }

    @Test func purgesThatTheServerRefusesStayPending() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let disk = try TestDisk()
        _ = try await disk.cache.purge((0..<5).map(purge))
        let purger = ClusterPurger.test(RefusingCommands(base: link, accepted: 2), disk)
        await #expect(throws: RedisError.self) { try await purger.follow() }
        #expect(try pending(disk) == (2..<5).map(url))
    }

    /// Their rows can be read, and not changed, as on a full disk.
    @Test func pendingPurgesAreAddedOnceAlthoughTheirEntriesCannotBeRecorded() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        // Not delayed by reads that wait for entries.
        let second = try await RedisLink.connected(server.unixAddress)
        defer { second.close() }
        let disk = try TestDisk()
        _ = try await disk.cache.purge((0..<3).map(purge))
        try disk.ledger.write(.normal) { database in
            try database.execute(
                """
                CREATE TRIGGER entries BEFORE UPDATE OF entry ON purges
                BEGIN SELECT RAISE(ABORT, 'the disk is broken'); END
                """)
        }
        let purger = ClusterPurger.test(link, adding: second, disk)
        let isReady = Mutex(false)
        let task = Task { try await purger.follow { isReady.withLock { $0 = true } } }
        defer { task.cancel() }
        try await waitUntil("the node takes part") { isReady.withLock { $0 } }
        // Its own purge, whose entry cannot be recorded either, and then those of another node.
        let other = PurgeStream.test(second)
        _ = await purger.make(url(3))
        let identity = try await other.oldest(at: 1).text("s") ?? ""
        for number in 4...8 {
            let last = try #require(try await other.add([purge(number)], to: identity, isLate: false).ids.last)
            try await waitUntil("the purge to be applied") { purger.position >= last }
        }
        #expect(try server.run("XLEN", "{test}:v1:purges") == ":10\r\n")
    }

    @Test func aPurgeMadeAloneThatIsNotRecordedIsAddedWhileTheProcessLives() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let disk = try TestDisk(volatile: url(1))
        let purger = ClusterPurger.test(link, disk)
        _ = await purger.make(url(1))
        #expect(try pending(disk).isEmpty)
        #expect(disk.cache.unrecordedPurges.count == 1)
        let isReady = Mutex(false)
        let task = Task { try await purger.follow { isReady.withLock { $0 = true } } }
        defer { task.cancel() }
        try await waitUntil("the node takes part") { isReady.withLock { $0 } }
        #expect(try server.run("XLEN", "{test}:v1:purges") == ":2\r\n")
    }

    @Test func aPurgeMadeAloneIsAddedAlthoughTheDiskStalls() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let disk = try TestDisk()
        let purger = ClusterPurger.test(link, disk)
        let stall = Stall()
        try await stall.begin { [ledger = disk.ledger] wait in _ = try? ledger.write(.normal) { _ in wait() } }
        defer { stall.end() }
        // The second waits until the transaction of the first has ended.
        for number in 1...2 { _ = await purger.make(url(number)) }
        let task = Task { try await purger.follow() }
        defer { task.cancel() }
        try await waitUntil("the purge is in the stream") {
            try server.run("XRANGE", "{test}:v1:purges", "-", "+").contains("https://origin.test/2")
        }
    }

    @Test func onePurgeOfEverythingStandsForThoseThatTheMemoryIsNotToHold() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (link, second) = (
            try await RedisLink.connected(server.unixAddress), try await RedisLink.connected(server.unixAddress)
        )
        defer {
            link.close()
            second.close()
        }
        let disk = try TestDisk()
        let (cache, kept) = (disk.cache, "https://origin.test/kept")
        try await cache.put(kept)
        let hasKept = {
            try await cache.rendition(for: AliasKey(sourceURL: kept, rendition: "mp4"), countsMiss: false) != nil
        }
        let purger = ClusterPurger.test(link, disk, unwrittenLimit: 400)
        let isReady = Mutex(false)
        let task = Task {
            // On a busy machine, a command may miss its limit.
            while !Task.isCancelled { try? await purger.follow { isReady.withLock { $0 = true } } }
        }
        defer { task.cancel() }
        try await waitUntil("the node takes part") { isReady.withLock { $0 } }
        let stall = Stall()
        try await stall.begin { [ledger = disk.ledger] wait in _ = try? ledger.write(.normal) { _ in wait() } }
        defer { stall.end() }

        let other = PurgeStream.test(second)
        let identity = try await other.oldest(at: 1).text("s") ?? ""
        var last = StreamID.zero
        for start in stride(from: 0, to: 1200, by: 200) {
            let added = try await other.add((start..<start + 200).map(purge), to: identity, isLate: false)
            last = try #require(added.ids.last)
            if start == 200 {
                try await waitUntil("those that it holds") { purger.position >= last }
                #expect(try await hasKept())
            }
        }
        try await waitUntil("the purge of everything") { try await !hasKept() }
        #expect(purger.position < last)

        stall.end()
        try await waitUntil("all to be read") { purger.position >= last }
        try await cache.put(kept)
        #expect(try await hasKept())
        try await waitUntil("all to be on the disk") {
            try disk.ledger.read { try PurgeTable($0).all().count } == 1201
        }
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

/// A link over which the first acknowledgement fails, or gets a reply of the test.
private final class UnacknowledgedConnection: RedisCommands {
    private let base: any RedisCommands
    private let reply: RedisValue?
    private let isBroken = Atomic(true)

    init(base: any RedisCommands, reply: RedisValue?) {
        (self.base, self.reply) = (base, reply)
    }

    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue] {
        guard commands.first?.arguments[0] == Array("HSET".utf8), isBroken.exchange(false, ordering: .relaxed) else {
            return try await base.replies(to: commands, within: limit)
        }
        guard let reply else { throw .unavailable("an acknowledgement") }
        return commands.map { _ in reply }
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
