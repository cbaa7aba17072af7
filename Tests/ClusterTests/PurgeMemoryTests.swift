import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Cluster

@Suite("Purges made alone are on disk") struct PurgeMemoryTests {
    private let folder: ScratchDirectory

    init() throws {
        folder = try ScratchDirectory()
    }

    private func url(_ number: Int) -> ClusterPurge { .url("https://origin.test/\(number)") }

    private func makeDirectory() throws -> String {
        try FileManager.default.createDirectory(atPath: folder.path("cache"), withIntermediateDirectories: false)
        return folder.path("cache")
    }

    /// Puts an empty directory in place of the one that ``makeDirectory()`` has made.
    private func replaceDirectory() throws {
        try FileManager.default.moveItem(atPath: folder.path("cache"), toPath: folder.path("old"))
        _ = try makeDirectory()
    }

    private func bringDirectoryBack() throws {
        try FileManager.default.removeItem(atPath: folder.path("cache"))
        try FileManager.default.moveItem(atPath: folder.path("old"), toPath: folder.path("cache"))
    }

    private func saved(_ pending: [ClusterPurge]) -> SavedPurges {
        var saved = SavedPurges()
        saved.stream = "s"
        saved.position = StreamID(5, 6)
        for scope in pending { saved.append(scope) }
        return saved
    }

    @Test func aPurgeIsAppendedToTheFile() async throws {
        let file = PurgeFile(path: folder.path("purges"))
        defer { file.close() }
        // There is nothing to append to.
        #expect(await !file.append(url(0)))
        #expect(await file.save(saved([url(1)])))
        #expect(await file.append(url(2)))
        #expect(await file.append(.object("o")))
        #expect(await file.load() == saved([url(1), url(2), .object("o")]))
        #expect(await file.append(.all))
        #expect(await file.load() == saved([.all]))
        #expect(await file.save(saved([])))
        #expect(await file.load() == saved([]))
    }

    @Test func aPurgeIsNotAppendedToAFileThatWasThereBefore() async throws {
        let file = PurgeFile(path: try makeDirectory() + "/purges")
        defer { file.close() }
        #expect(await file.save(saved([url(1)])))
        #expect(await file.isCurrent())
        try replaceDirectory()
        #expect(await !file.isCurrent())
        #expect(await file.save(saved([url(1), url(2)])))
        #expect(await file.append(url(3)))
        try bringDirectoryBack()
        #expect(await !file.isCurrent())
        #expect(await !file.append(url(4)))
        #expect(await file.load() == saved([url(1)]))
        #expect(await file.save(saved([url(4)])))
        #expect(await file.append(url(5)))
        #expect(await file.load() == saved([url(4), url(5)]))
    }

    @Test(arguments: [2, 3]) func allPurgesAreWrittenWhereADirectoryComesBack(number: Int) async throws {
        let file = PurgeFile(path: try makeDirectory() + "/purges")
        defer { file.close() }
        let follower = PurgeFollower.test(UnavailableCommands(), file)
        _ = await follower.applyAlone(url(1))
        try replaceDirectory()
        _ = await follower.applyAlone(url(2))
        try bringDirectoryBack()
        // Either a new purge, or one that is pending already.
        _ = await follower.applyAlone(url(number))
        #expect(await file.load()?.pending == (1...number).map(url))
    }

    @Test func theStateIsKeptWhileItCannotBeRead() async throws {
        let path = folder.path("purges")
        let file = PurgeFile(path: path)
        defer { file.close() }
        #expect(await file.load() == SavedPurges())
        #expect(await file.save(saved([url(1)])))
        // A directory in its place, of which a read fails.
        try FileManager.default.moveItem(atPath: path, toPath: folder.path("kept"))
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(await file.load() == nil)
        let follower = PurgeFollower.test(UnavailableCommands(), file)
        _ = await follower.applyAlone(url(2))
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.moveItem(atPath: folder.path("kept"), toPath: path)
        _ = await follower.applyAlone(url(3))
        #expect(await file.load() == saved([url(1), url(2), url(3)]))
    }

    @Test func aStateThatCanNeverBeReadCountsAsLost() async throws {
        let path = folder.path("purges")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        let file = PurgeFile(path: path)
        defer { file.close() }
        let follower = PurgeFollower.test(UnavailableCommands(), file)
        for _ in 0..<9 {
            let error = await #expect(throws: RedisError.self) { try await follower.follow() }
            #expect(error != .unavailable("test"))
        }
        // The server is asked.
        await #expect(throws: RedisError.unavailable("test")) { try await follower.follow() }
        try FileManager.default.removeItem(atPath: path)
        _ = await follower.applyAlone(url(1))
        #expect(await file.load()?.pending == [url(1)])
    }

    @Test func pendingPurgesAreCountedAfterARestartWithoutTheServer() async {
        let meter = ClusterMeter()
        let follower = PurgeFollower.test(UnavailableCommands(), RecordingMemory(saved([url(1), url(2)])), meter)
        await #expect(throws: RedisError.self) { try await follower.follow() }
        #expect(meter.snapshot.purgesPending == 2)
    }

    @Test func aDamagedEndIsDropped() {
        let bytes = saved([url(1)]).bytes
        let (one, two) = (SavedPurges.addition(url(2)), SavedPurges.addition(url(3)))
        #expect(SavedPurges(bytes + one + two) == saved([url(1), url(2), url(3)]))
        for count in 0..<one.count { #expect(SavedPurges(bytes + one.prefix(count)) == saved([url(1)])) }
        for count in 0..<two.count {
            #expect(SavedPurges(bytes + one + two.prefix(count)) == saved([url(1), url(2)]))
            // The length of a file can reach the disk before its content.
            let zeros = [UInt8](repeating: 0, count: two.count - count)
            #expect(SavedPurges(bytes + one + two.prefix(count) + zeros) == saved([url(1), url(2)]))
        }
    }

    @Test func aPurgeOnItsWayCoversNoLaterOne() {
        var saved = saved([url(1), url(2)])
        let changes = [
            saved.append(url(2)), saved.append(url(2), behind: 2), saved.append(.all, behind: 2),
            saved.append(url(3), behind: 2),
        ]
        #expect(changes == [.covered, .appended, .replaced, .covered])
        #expect(saved.pending == [url(1), url(2), .all])
        let last = saved.append(.all, behind: 3)
        #expect(last == .appended && saved.pending == [url(1), url(2), .all, .all])
    }

    @Test func aPurgeMadeAloneIsWrittenWithoutTheOthers() async {
        let memory = RecordingMemory()
        let follower = PurgeFollower.test(UnavailableCommands(), memory)
        for number in 0..<100 { _ = await follower.applyAlone(url(number)) }
        _ = await follower.applyAlone(url(99))
        #expect(memory.saves == 1 && memory.appends == 99)
        #expect(memory.saved?.pending == (0..<100).map(url))
        // What the disk refuses is written with the next purge, also where that is covered.
        memory.setFull(true)
        _ = await follower.applyAlone(url(100))
        memory.setFull(false)
        _ = await follower.applyAlone(url(100))
        #expect(memory.saved?.pending == (0...100).map(url))
    }

    @Test(.enabled(if: RedisServer.isAvailable)) func pendingPurgesAreAddedInBatches() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let memory = RecordingMemory(saved((0..<450).map(url)))
        let follower = PurgeFollower.test(link, memory)
        let saves = Mutex<Int?>(nil)
        let task = Task { try await follower.follow { saves.withLock { $0 = memory.saves } } }
        defer { task.cancel() }
        try await waitUntil("the node takes part") { saves.withLock { $0 != nil } }
        // Two for the position, and one for each batch.
        #expect(saves.withLock { $0 ?? .max } <= 5)
        #expect(memory.saved?.pending == [])
        #expect(try server.run("XLEN", "test:v1:purges") == ":451\r\n")
        let last = try server.run("XREVRANGE", "test:v1:purges", "+", "-", "COUNT", "1")
        #expect(last.contains("https://origin.test/449"))
    }

    @Test(.enabled(if: RedisServer.isAvailable)) func purgesOfABatchThatTheServerRefusesStayPending() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let memory = RecordingMemory(saved((0..<5).map(url)))
        let follower = PurgeFollower.test(RefusingCommands(base: link, accepted: 2), memory)
        await #expect(throws: RedisError.self) { try await follower.follow() }
        #expect(memory.saved?.pending == (2..<5).map(url))
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

/// Counts what a disk is asked to write.
private final class RecordingMemory: PurgeMemory {
    private struct State {
        var saved: SavedPurges?
        var saves = 0
        var appends = 0
        var isFull = false
    }

    private let state: Mutex<State>

    init(_ saved: SavedPurges? = nil) {
        state = Mutex(State(saved: saved))
    }

    var saved: SavedPurges? { state.withLock { $0.saved } }
    /// The number of writes of the whole state.
    var saves: Int { state.withLock { $0.saves } }
    /// The number of purges that were appended.
    var appends: Int { state.withLock { $0.appends } }

    /// Whether every write fails.
    func setFull(_ isFull: Bool) {
        state.withLock { $0.isFull = isFull }
    }

    func load() async -> SavedPurges? { saved ?? SavedPurges() }

    func isCurrent() async -> Bool { true }

    func save(_ saved: SavedPurges) async -> Bool {
        state.withLock { state in
            state.saves += 1
            if !state.isFull { state.saved = saved }
            return !state.isFull
        }
    }

    func append(_ scope: ClusterPurge) async -> Bool {
        state.withLock { state in
            if state.isFull { return false }
            state.appends += 1
            state.saved?.append(scope)
            return true
        }
    }
}
