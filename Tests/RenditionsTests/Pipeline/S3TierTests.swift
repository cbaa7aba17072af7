import Store
import Synchronization
import TestSupport
import Testing

@testable import Renditions

@Suite("The shared tier keeps its deadlines", .timeLimit(.minutes(10))) struct S3TierTests {
    /// Other nodes wait for the lease of a rendition until it is saved.
    @Test func theSaveOfARenditionEndsAlthoughTheDiskStalls() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content([1]))
            let rendition = try await world.find("/a.gif").rendition
            let directory = try ScratchDirectory()
            let endpoint = try S3Endpoint(url: "http://127.0.0.1:9", region: "us-east-1", usesPathStyle: true)
            let configuration = try SharedStoreConfiguration(
                bucket: S3Bucket(endpoint: endpoint, name: "gifreel", keys: .none), prefix: "", timeout: .seconds(1),
                lookupTimeout: .seconds(1),
                outbox: OutboxConfiguration(directory: directory.path("outbox"), maxBytes: 1 << 20))
            let store = try SharedStore(configuration, ledger: world.cache.ledger) { _ in }
            defer { store.close() }
            let tier = S3Tier(store, cache: world.cache)
            let stall = Stall()
            try await stall.begin { [ledger = world.cache.ledger] wait in _ = try? ledger.write(.normal) { _ in wait() } }
            defer { stall.end() }
            let isSaved = Mutex<Bool?>(nil)
            Task {
                let result = await tier.save(rendition)
                isSaved.withLock { $0 = result }
            }
            try await waitUntil("the end of the save") { isSaved.withLock { $0 != nil } }
            #expect(isSaved.withLock(\.self) == false)
        }
    }
}
