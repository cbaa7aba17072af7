import Cache
import Cluster
import Testing

@testable import Renditions

@Suite("The purge of an object covers the shared tier") struct SharedPurgeTests {
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
            let error = await #expect(throws: CacheError.self) { try await purger.purge(.object(id)) }
            if case .purgeNotDurable = error {} else { Issue.record("\(String(describing: error))") }
            #expect(try await world.purger.purge(.object(id)).purged == 0)
            // Other purges leave the tier alone.
            _ = try await purger.purge(.all)
        }
    }

    @Test func inAClusterADeletionThatIsNotDurableHasNoCounts() async throws {
        try await run { world, id, purger async throws in
            #expect(await PurgeHandlers(purger).apply(.object(id.description)) == nil)
            // Without the tier there is nothing that could fail, and the rendition is gone.
            #expect(await PurgeHandlers(world.purger).apply(.object(id.description)) == PurgeCounts(purged: 0, bytes: 0))
            #expect(await PurgeHandlers(purger).apply(.all) == PurgeCounts(purged: 0, bytes: 0))
        }
    }
}
