import Cache
import Testing

@testable import Renditions

@Suite("The purge of an object covers the shared tier") struct SharedPurgeTests {
    /// A tier whose deletions do not survive a crash.
    private struct VolatileTier: SharedTier {
        func load(_ id: ObjectID, fileExtension: String, into file: StagedFile) async -> SharedLookUp { .absent }
        func save(_ rendition: CachedRendition) async -> Bool { false }
        func remove(_ id: ObjectID) async -> Bool { false }
        func awaitRemoval(of id: ObjectID) async {}
    }

    @Test func aDeletionThatIsNotDurableIsReportedAfterTheLocalPurge() async throws {
        try await PipelineFixture.run { fixture in
            fixture.answer("/a", .content([1]))
            let id = try await fixture.find("/a").rendition.objectID
            let purger = LocalPurger(cache: fixture.cache, state: fixture.renditionState, tier: VolatileTier())
            let error = await #expect(throws: CacheError.self) { try await purger.purge(.object(id)) }
            if case .purgeNotDurable = error {} else { Issue.record("\(String(describing: error))") }
            #expect(try await fixture.purger.purge(.object(id)).purged == 0)
            // Other purges leave the tier alone.
            _ = try await purger.purge(.all)
        }
    }
}
