import Fleet
import Store
import Synchronization
import TestSupport
import Testing

@testable import Renditions

/// A tier without objects, which records its changes in their order.
private final class RecordingTier: SharedTier {
    enum Change: Sendable, Equatable {
        case recordRemoval, sendRemoval, dropHeldWrites
    }

    private let recorded = Mutex<[Change]>([])
    private let noted = Mutex<[Int64]>([])
    /// Whether the removal cannot be recorded.
    let isBroken = Mutex(false)

    var changes: [Change] { recorded.withLock { $0 } }
    /// The times of the purges whose objects were removed.
    var times: [Int64] { noted.withLock { $0 } }

    private func add(_ change: Change) {
        recorded.withLock { $0.append(change) }
    }

    func load(_ id: ObjectID, fileExtension: String, into file: StagedFile, isOnlySource: Bool) async -> SharedLookUp {
        .absent
    }
    func save(_ rendition: CachedRendition) async -> Bool { true }
    func sendRemoval(of id: ObjectID) { add(.sendRemoval) }
    func awaitRemoval(of id: ObjectID) async {}
    func dropHeldWrites(in database: SQLiteConnection) { add(.dropHeldWrites) }

    func recordRemoval(of id: ObjectID, until time: Int64, in database: SQLiteConnection) throws {
        if isBroken.withLock({ $0 }) { throw LedgerError(.failure, "a test") }
        noted.withLock { $0.append(time) }
        add(.recordRemoval)
    }
}

@Suite("The purge of an object covers the shared tier", .timeLimit(.minutes(10))) struct SharedPurgeTests {
    /// Runs `body` with a stored object, and purges that include a tier.
    private func run(_ body: (PipelineFixture, ObjectID, Purges, RecordingTier) async throws -> Void) async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content([1]))
            let id = try await world.find("/a.gif").rendition.objectID
            let tier = RecordingTier()
            try await body(world, id, Purges(cache: world.cache, state: world.renditionState, tier: tier), tier)
        }
    }

    @Test func theRemovalIsOnceInTheTransactionOfThePurge() async throws {
        try await run { world, id, purges, tier async throws in
            #expect(try await purges.purge(.object(id)).counts.purged == 1)
            #expect(tier.changes == [.recordRemoval, .sendRemoval])
            // Other purges leave the tier alone.
            _ = try await purges.purge(.all)
            #expect(tier.changes.count == 2)
        }
    }

    @Test func aPurgeOfAnotherNodeLeavesWhatIsNewerAndRemovesOlderObjectsFromTheTier() async throws {
        try await run { world, id, purges, tier async throws in
            let began = try #require(try await world.cache.look(for: id, isFirstLook: false)).epoch.began
            func purge(madeAt time: Int64) async throws -> PurgeCounts {
                try await world.cache.purge(
                    [Purge(.object(id), madeAt: time, isLocal: false, token: "\(time)", entry: "1-0")])
            }
            #expect(try await purge(madeAt: began - 100_000).purged == 0)
            #expect(try await world.cache.look(for: id, isFirstLook: false) != nil)
            // What other nodes had sent before the purge is removed.
            #expect(tier.changes == [.recordRemoval, .sendRemoval] && tier.times == [began - 100_000])
            #expect(try await purge(madeAt: began + 100_000).purged == 1)
            #expect(try await world.cache.look(for: id, isFirstLook: false) == nil)
        }
    }

    @Test func aRemovalThatCannotBeRecordedMakesThePurgeNotDurableAndIsRecordedWithTheNext() async throws {
        try await run { world, id, purges, tier async throws in
            tier.isBroken.withLock { $0 = true }
            let error = await #expect(throws: CacheError.self) { try await purges.purge(.object(id)) }
            if case .purgeNotDurable = error {} else { Issue.record("\(String(describing: error))") }
            #expect(try await world.cache.look(for: id, isFirstLook: false) == nil)
            tier.isBroken.withLock { $0 = false }
            _ = try await purges.purge(.url("http://other.example/"))
            #expect(tier.changes == [.sendRemoval, .recordRemoval])
        }
    }

    @Test func nothingIsRecordedForAnObjectThatWasPurged() async throws {
        try await run { world, id, purges, _ async throws in
            let epoch = world.cache.epoch(for: nil)
            let isCommitted = Mutex(false)
            func record() async -> Bool {
                await world.cache.record(of: id, since: epoch) { _ in isCommitted.withLock { $0 = true } }
            }
            #expect(await record())
            _ = try await purges.purge(.object(id))
            isCommitted.withLock { $0 = false }
            #expect(await !record())
            #expect(isCommitted.withLock { !$0 })
        }
    }

    @Test func writesOfAFormerProcessAreDroppedWherePurgesMayHaveBeenMissed() async throws {
        try await run { _, _, purges, tier async throws in
            await purges.revalidateAll(.possible)
            #expect(tier.changes == [.dropHeldWrites])
        }
    }
}
