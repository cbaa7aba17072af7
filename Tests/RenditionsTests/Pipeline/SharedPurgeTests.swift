import Fleet
import Synchronization
import TestSupport
import Testing

@testable import Renditions
@testable import Store

@Suite("The purge of an object covers the shared tier", .timeLimit(.minutes(10))) struct SharedPurgeTests {
    /// Runs `body` with a stored object, purges, and the outbox of a shared store, which sends nothing.
    private func run(_ body: (PipelineFixture, ObjectID, Purges, Outbox) async throws -> Void) async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content([1]))
            let id = try await world.find("/a.gif").rendition.objectID
            let directory = try ScratchDirectory()
            let outbox = try Outbox(
                world.cache.ledger, OutboxConfiguration(directory: directory.path("outbox"), maxBytes: 1 << 20), StoreMeter(),
                holdsPuts: false, report: { _ in })
            defer { outbox.close() }
            world.cache.sendDeletions(by: outbox)
            try await body(world, id, Purges(cache: world.cache, state: world.renditionState, outbox: nil), outbox)
        }
    }

    /// The times of the deletions that are recorded, by id.
    private func deletions(_ world: PipelineFixture) throws -> [ObjectID: Int64] {
        try world.cache.ledger.read { try OutboxTables($0).deletions() }
    }

    @Test func theRemovalIsOnceInTheTransactionOfThePurge() async throws {
        try await run { world, id, purges, outbox async throws in
            #expect(try await purges.purge(.object(id)).counts.purged == 1)
            let recorded = try deletions(world)
            #expect(recorded.keys.elementsEqual([id]))
            #expect(outbox.deletion(of: id) == recorded[id])
            #expect(try world.cache.ledger.read { try OutboxTables($0).totals() }.deletions == 1)
            // Other purges leave the store alone.
            _ = try await purges.purge(.all)
            #expect(try deletions(world) == recorded)
        }
    }

    @Test func aPurgeOfAnotherNodeLeavesWhatIsNewerAndRemovesOlderObjectsFromTheTier() async throws {
        try await run { world, id, purges, _ async throws in
            let began = try #require(try await world.cache.rendition(for: id, countsMiss: false)).epoch.began
            func purge(madeAt time: Int64) async throws -> PurgeCounts {
                try await world.cache.purge(
                    [Purge(.object(id), madeAt: time, isLocal: false, token: "\(time)", entry: "1-0")])
            }
            #expect(try await purge(madeAt: began - 100_000).purged == 0)
            #expect(try await world.cache.rendition(for: id, countsMiss: false) != nil)
            // What other nodes had sent before the purge is removed.
            #expect(try deletions(world) == [id: began - 100_000])
            #expect(try await purge(madeAt: began + 100_000).purged == 1)
            #expect(try await world.cache.rendition(for: id, countsMiss: false) == nil)
        }
    }

    @Test func aRemovalThatCannotBeRecordedMakesThePurgeNotDurableAndIsRecordedWithTheNext() async throws {
        try await run { world, id, purges, _ async throws in
            try world.cache.ledger.write(.normal) {
                try $0.execute("CREATE TRIGGER broken BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'a test'); END")
            }
            let error = await #expect(throws: CacheError.self) { try await purges.purge(.object(id)) }
            if case .purgeNotDurable = error {} else { Issue.record("\(String(describing: error))") }
            #expect(try await world.cache.rendition(for: id, countsMiss: false) == nil)
            #expect(try deletions(world).isEmpty)
            try world.cache.ledger.write(.normal) { try $0.execute("DROP TRIGGER broken") }
            _ = try await purges.purge(.url("http://other.example/"))
            #expect(try deletions(world).keys.elementsEqual([id]))
        }
    }

    @Test func nothingIsRecordedForAnObjectThatWasPurged() async throws {
        try await run { world, id, purges, _ async throws in
            let epoch = world.cache.epoch
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
        try await run { world, id, purges, _ async throws in
            let name = try #require(RenditionName(id: id, fileExtension: "mp4"))
            let record = try #require(
                StoredRecord(length: 1, digest: [UInt8](repeating: 0, count: 32), created: 0, facts: [], began: 1))
            try world.cache.ledger.write(.normal) { database in
                _ = try OutboxTables(database).add(name, record, mediaType: "video/mp4", 1)
                _ = try OutboxTables(database).begin(holdingPuts: true)
            }
            await purges.revalidateAll(.possible)
            #expect(try world.cache.ledger.read { try OutboxTables($0).totals() }.puts == 0)
        }
    }
}
