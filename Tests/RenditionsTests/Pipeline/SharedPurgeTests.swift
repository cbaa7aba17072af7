import Cache
import Cluster
import Synchronization
import TestSupport
import Testing

@testable import Renditions

/// A tier without objects, which records its changes in their order.
private final class RecordingTier: SharedTier {
    enum Change: Sendable {
        case save, removal, dropHeldWrites
    }

    private let recorded = Mutex<[Change]>([])
    /// Suspends saves before they are recorded.
    let saveGate = AsyncGate()
    /// Suspends removals after they are recorded.
    let removalGate = AsyncGate()

    var changes: [Change] { recorded.withLock { $0 } }

    func load(_ id: ObjectID, fileExtension: String, into file: StagedFile) async -> SharedLookUp { .absent }

    func save(_ rendition: CachedRendition) async -> Bool {
        await saveGate.pass()
        recorded.withLock { $0.append(.save) }
        return true
    }

    func remove(_ id: ObjectID) async -> Bool {
        recorded.withLock { $0.append(.removal) }
        await removalGate.pass()
        return true
    }

    func dropHeldWrites() async {
        recorded.withLock { $0.append(.dropHeldWrites) }
    }

    func awaitRemoval(of id: ObjectID) async {}
}

@Suite("The purge of an object covers the shared tier", .timeLimit(.minutes(10))) struct SharedPurgeTests {
    /// Runs `body` with a stored object, and a purger whose deletions from the tier are not durable.
    private func run(_ body: (PipelineFixture, ObjectID, LocalPurger) async throws -> Void) async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content([1]))
            let id = try await world.find("/a.gif").rendition.objectID
            let tier = EmptyTier(isDurable: false)
            try await body(world, id, LocalPurger(cache: world.cache, state: world.renditionState, tier: tier))
        }
    }

    @Test func aDeletionThatIsNotDurableIsReportedAfterTheLocalPurge() async throws {
        try await run { world, id, purger async throws in
            let error = await #expect(throws: CacheError.self) { try await purger.purgeThisNode(.object(id)) }
            if case .purgeNotDurable = error {} else { Issue.record("\(String(describing: error))") }
            #expect(try await world.purger.purgeThisNode(.object(id)).purged == 0)
            // Other purges leave the tier alone.
            _ = try await purger.purgeThisNode(.all)
        }
    }

    @Test func anObjectThatIsSavedAgainDuringItsPurgeIsRemovedAfterwards() async throws {
        let tier = RecordingTier()
        tier.saveGate.open()
        try await PipelineFixture.run(tier: tier) { world async throws in
            world.answer("/a.gif", .content([1]))
            world.answer("/b.gif", .content([1]))
            let id = try await world.find("/a.gif").rendition.objectID
            try await waitUntil("the first save") { tier.changes == [.save] }
            let purger = LocalPurger(cache: world.cache, state: world.renditionState, tier: tier)
            async let purge = purger.purgeThisNode(.object(id))
            try await waitUntil("the purge to wait for the tier") { tier.removalGate.count == 1 }
            // The cache still has the object, which is linked to another URL with the same bytes.
            #expect(try await world.find("/b.gif").rendition.objectID == id)
            try await waitUntil("the second save") { tier.changes == [.save, .removal, .save] }
            tier.removalGate.open()
            _ = try await purge
            #expect(tier.changes.last == .removal)
        }
    }

    @Test func aSaveThatIsQueuedAfterThePurgeIsRemoved() async throws {
        let tier = RecordingTier()
        tier.removalGate.open()
        try await PipelineFixture.run(tier: tier) { world async throws in
            world.answer("/a.gif", .content([1]))
            let id = try await world.find("/a.gif").rendition.objectID
            try await waitUntil("the save to begin") { tier.saveGate.count == 1 }
            _ = try await LocalPurger(cache: world.cache, state: world.renditionState, tier: tier).purgeThisNode(.object(id))
            tier.saveGate.open()
            try await waitUntil("the save and its removal") { tier.changes == [.removal, .removal, .save, .removal] }
        }
    }

    @Test func writesOfAFormerProcessAreDroppedWherePurgesMayHaveBeenMissed() async throws {
        let tier = RecordingTier()
        try await PipelineFixture.run { world async throws in
            let purger = LocalPurger(cache: world.cache, state: world.renditionState, tier: tier)
            await PurgeHandlers(purger).revalidateEverything()
            #expect(tier.changes == [.dropHeldWrites])
        }
    }

    @Test func inAClusterADeletionThatIsNotDurableHasNoCounts() async throws {
        try await run { world, id, purger async throws in
            #expect(await PurgeHandlers(purger).purgeLocalCache(.object(id.description)) == nil)
            // Without the tier there is nothing that could fail, and the rendition is gone.
            #expect(
                await PurgeHandlers(world.purger).purgeLocalCache(.object(id.description)) == PurgeCounts(purged: 0, bytes: 0))
            #expect(await PurgeHandlers(purger).purgeLocalCache(.all) == PurgeCounts(purged: 0, bytes: 0))
        }
    }
}
