import Cache
import Cluster
import Testing

@testable import Renditions

@Suite("A node's part in purges of the cluster") struct ClusterPurgeTests {
    /// A tier whose queue takes no more deletions.
    private struct FullTier: SharedTier {
        func load(_ id: ObjectID, fileExtension: String, into file: StagedFile) async -> SharedLookUp { .absent }
        func save(_ rendition: CachedRendition) async -> Bool { false }
        func remove(_ id: ObjectID) async -> Bool { false }
        func awaitRemoval(of id: ObjectID) async {}
    }

    @Test func aPurgeThatIsNotDurableHasNoCounts() async throws {
        try await PipelineFixture.run { fixture in
            fixture.answer("/a", .content([1]))
            let id = try await fixture.find("/a").rendition.objectID
            let full = LocalPurger(cache: fixture.cache, state: fixture.renditionState, tier: FullTier())
            #expect(await PurgeHandlers(full).apply(.object(id.description)) == nil)
            // Without the tier there is nothing that could fail, and the rendition is gone.
            #expect(await PurgeHandlers(fixture.purger).apply(.object(id.description)) == PurgeCounts(purged: 0, bytes: 0))
            #expect(await PurgeHandlers(full).apply(.all) == PurgeCounts(purged: 0, bytes: 0))
        }
    }
}
