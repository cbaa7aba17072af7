import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("Counters tell hits, misses and refusals apart") struct StatisticsTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory(inMemory: true)
    }

    @Test func lookUpsAreCountedOnceByTheirResult() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        #expect(await cache.alias(.test("https://a/")) == nil)
        #expect(try await cache.rendition(for: AliasKey.test("https://a/"), countsMiss: false) == nil)
        #expect(try await cache.rendition(for: ObjectID.test("x"), countsMiss: false) == nil)
        #expect(cache.statistics().misses == 1)
        try await cache.put([1, 2], url: "https://a/")
        #expect(await cache.alias(.test("https://a/")) != nil)
        #expect(cache.hotAlias(.test("https://a/")) != nil)
        #expect(cache.statistics().hotHits == 2)
        cache.forgetHot()
        #expect(cache.hotAlias(.test("https://a/")) == nil)
        #expect(await cache.alias(.test("https://a/")) != nil)
        let statistics = cache.statistics()
        #expect(statistics.diskHits == 1)
        #expect(statistics.misses == 1)
        #expect(statistics.hits == 3)
        #expect(statistics.published == 1)
        #expect(statistics.limitBytes == cache.configuration.maxBytes)
    }

    @Test func unstoredRenditionsAreCounted() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let epoch = cache.epoch
        _ = try await cache.purge(.all)
        #expect(try await cache.put([1], url: "https://a/", epoch: epoch).unstoredReason == .purged)
        try await cache.put([1], url: "https://b/")
        #expect(await cache.link(.test("https://a/"), to: .test("https://b/"), epoch: epoch)?.unstoredReason == .purged)
        #expect(cache.statistics().unstored == 2)
        // A purge is no problem of the disk.
        #expect(cache.statistics().isStoring)
    }

    /// One thread, which waits within a lookup, and a queue of one.
    @Test(.timeLimit(.minutes(10))) func aLookUpBeyondTheQueueIsAMissAtOnce() async throws {
        var configuration = CacheConfiguration.test(directory)
        configuration.lookupThreads = 1
        configuration.queueLimit = 1
        let entered = Semaphore()
        let gate = Semaphore()
        let cache = try Cache(configuration: configuration, clock: .system) { step in
            guard step == .lookupNotedEpoch else { return }
            entered.signal()
            gate.wait()
        }
        defer { cache.close() }
        // Before that: closing waits for the lookup.
        defer { for _ in 0..<2 { gate.signal() } }
        try await cache.put([1], url: "https://a/")
        cache.forgetHot()
        let running = Task { await cache.alias(.test("https://a/")) }
        try await waitUntil("the lookup on the thread") { entered.wait(for: .zero) }
        let others = (0..<10).map { _ in Task { await cache.alias(.test("https://a/")) } }
        try await waitUntil("refusals") { cache.statistics().refused == 9 }
        for _ in 0..<2 { gate.signal() }
        #expect(await running.value != nil)
        var found = 0
        for other in others { found += await other.value == nil ? 0 : 1 }
        #expect(found == 1)
        // Refusals are no misses of the cache.
        #expect(cache.statistics().misses == 0)
        #expect(cache.statistics().diskHits == 2)
    }
}
