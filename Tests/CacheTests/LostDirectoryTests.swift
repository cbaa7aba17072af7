import Foundation
import Glibc
import TestSupport
import Testing

@testable import Cache

@Suite("A cache directory that was lost and returns has missed no purge") struct LostDirectoryTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Opens a cache without a housekeeping thread, in a directory that can be renamed. Its clock stands still.
    private func open() throws -> Cache {
        var configuration = CacheConfiguration.test(directory)
        configuration.directory += "/cache"
        return try Cache.openWithoutHousekeeping(configuration, clock: ManualClock().cacheClock)
    }

    private func move(_ name: String, to newName: String) {
        #expect(rename("\(directory.path)/\(name)", "\(directory.path)/\(newName)") == 0)
    }

    /// Moves the directory in use away and lets the cache use another one.
    ///
    /// - Parameter returning: The directory that takes its place; a new one for nil.
    private func replaceDirectory(of cache: Cache, keepingItAs name: String, by returning: String? = nil) {
        let lost = cache.store
        move("cache", to: name)
        if let returning { move(returning, to: "cache") }
        cache.housekeeper.runRound()
        #expect(cache.store !== lost)
    }

    @Test func aDirectoryThatReturnsAfterOthersHasMissedNoPurge() async throws {
        let cache = try open()
        defer { cache.close() }
        for number in 1...3 { try await cache.put([UInt8(number)], url: "https://a/\(number)") }
        replaceDirectory(of: cache, keepingItAs: "first")
        #expect(try await cache.bytes(url: "https://a/1") == nil)
        #expect(try await cache.purge(.url("https://a/1")).purged == 0)
        replaceDirectory(of: cache, keepingItAs: "second")
        _ = try await cache.purge(.url("https://a/2"))
        replaceDirectory(of: cache, keepingItAs: "third", by: "first")
        #expect(try await cache.bytes(url: "https://a/1") == nil)
        #expect(try await cache.bytes(url: "https://a/2") == nil)
        #expect(try await cache.bytes(url: "https://a/3") == [3])
        #expect(cache.statistics().objects == 1)
    }

    @Test func aPurgeIsAppliedOnlyToADirectoryThatHasMissedIt() async throws {
        let cache = try open()
        defer { cache.close() }
        let url = "https://a/"
        try await cache.put([1], url: url)
        replaceDirectory(of: cache, keepingItAs: "first")
        _ = try await cache.purge(.url(url))
        try await cache.put([2], url: url)
        replaceDirectory(of: cache, keepingItAs: "second", by: "first")
        #expect(try await cache.bytes(url: url) == nil)
        try await cache.put([3], url: url)
        // Neither the purge nor a change of directories affects what was stored after it.
        replaceDirectory(of: cache, keepingItAs: "first", by: "second")
        #expect(try await cache.bytes(url: url) == [2])
        replaceDirectory(of: cache, keepingItAs: "second", by: "first")
        #expect(try await cache.bytes(url: url) == [3])
    }

    @Test(
        .enabled(if: geteuid() == 0 && WriteProtection.isPossible, "only an immutable file cannot be written while it is open"),
        arguments: [false, true])
    func aPurgeThatCouldNotBeWrittenIsAppliedToADirectoryThatReturns(isWritableAtLoss: Bool) async throws {
        let cache = try open()
        defer { cache.close() }
        for number in 1...2 { try await cache.put([UInt8(number)], url: "https://a/\(number)") }
        // The journal, the index, and the object, whose removal would have the effect of the purge.
        let names = try FileManager.default.subpathsOfDirectory(atPath: "\(directory.path)/cache").filter {
            $0 == "journal" || $0 == "index.sqlite" || $0.hasSuffix("-wal") || $0.hasSuffix(".mp4")
        }
        #expect(names.count == 5)
        let protections = try names.map { try #require(WriteProtection(of: "\(directory.path)/cache/\($0)")) }
        await #expect(throws: CacheError.self) { try await cache.purge(.url("https://a/1")) }
        if isWritableAtLoss { for protection in protections { protection.end() } }
        replaceDirectory(of: cache, keepingItAs: "first")
        for protection in protections { protection.end() }
        replaceDirectory(of: cache, keepingItAs: "second", by: "first")
        #expect(try await cache.bytes(url: "https://a/1") == nil)
        #expect(try await cache.bytes(url: "https://a/2") == [2])
    }

    @Test func aRevalidationThatCouldNotBeWrittenCoversTheAliasesOfADirectoryThatReturns() async throws {
        let cache = try open()
        defer { cache.close() }
        try await cache.put([1], url: "https://a/")
        #expect(mkdir("\(directory.path)/cache/revalidate.new", 0o755) == 0)
        await cache.revalidateAll()
        replaceDirectory(of: cache, keepingItAs: "first")
        replaceDirectory(of: cache, keepingItAs: "second", by: "first")
        try await cache.put([3], url: "https://c/")
        try await expectFreshness(in: cache, expired: "https://a/", fresh: "https://c/")
    }

    @Test func aRevalidationCoversTheAliasesOfADirectoryThatReturns() async throws {
        let cache = try open()
        try await cache.put([1], url: "https://a/")
        replaceDirectory(of: cache, keepingItAs: "first")
        await cache.revalidateAll()
        try await cache.put([2], url: "https://b/")
        replaceDirectory(of: cache, keepingItAs: "second", by: "first")
        try await cache.put([3], url: "https://c/")
        try await expectFreshness(in: cache, expired: "https://a/", fresh: "https://c/")
        replaceDirectory(of: cache, keepingItAs: "first", by: "second")
        try await expectFreshness(in: cache, expired: nil, fresh: "https://b/")
        replaceDirectory(of: cache, keepingItAs: "second", by: "first")
        cache.close()
        // The mark is durable.
        let restarted = try open()
        defer { restarted.close() }
        try await expectFreshness(in: restarted, expired: "https://a/", fresh: "https://c/")
    }

    private func expectFreshness(in cache: Cache, expired: String?, fresh: String) async throws {
        if let expired {
            let rendition = try #require(await cache.alias(.test(expired)))
            #expect(cache.freshness(of: rendition) == .expired)
        }
        let rendition = try #require(await cache.alias(.test(fresh)))
        #expect(cache.freshness(of: rendition) == .fresh(remaining: 86_400))
    }

    @Test func whatHappensWhileNoDirectoryCanBeOpenedIsAppliedToOneThatReturnsLater() async throws {
        let cache = try open()
        defer { cache.close() }
        for number in 1...2 { try await cache.put([UInt8(number)], url: "https://a/\(number)") }
        move("cache", to: "first")
        // A file, which cannot be opened as a directory.
        try directory.create("cache")
        for _ in 0..<2 { cache.housekeeper.runRound() }
        await #expect(throws: CacheError.self) { try await cache.purge(.url("https://a/1")) }
        await cache.revalidateAll()
        try directory.remove("cache")
        cache.housekeeper.runRound()
        #expect(try await cache.put([3], url: "https://b/").isStored)
        replaceDirectory(of: cache, keepingItAs: "second", by: "first")
        #expect(try await cache.bytes(url: "https://a/1") == nil)
        let rendition = try #require(await cache.alias(.test("https://a/2")))
        #expect(cache.freshness(of: rendition) == .expired)
    }

    // MARK: Lost stores

    @Test func aStoreMissesWhatCameAfterItsFirstLossSinceItWasOpen() {
        var stores = LostStores()
        stores.insert("a", lostAt: Epoch(number: 1))
        stores.insert("a", lostAt: Epoch(number: 2))
        stores.insert("b", lostAt: Epoch(number: 3))
        #expect(stores.epoch(of: "a", inPlaceOf: "b") == Epoch(number: 1))
        #expect(stores.epoch(of: "new", inPlaceOf: "b") == Epoch(number: 3))
        stores.remove("a")
        stores.insert("a", lostAt: Epoch(number: 4))
        #expect(stores.epoch(of: "a", inPlaceOf: "a") == Epoch(number: 4))
    }

    @Test func storesBeyondTheLimitHaveMissedEverything() {
        var stores = LostStores(limit: 2)
        for (number, journal) in ["a", "b", "c"].enumerated() { stores.insert(journal, lostAt: Epoch(number: Int64(number))) }
        #expect(stores.epoch(of: "b", inPlaceOf: "c") == Epoch(number: 1))
        #expect(stores.epoch(of: "a", inPlaceOf: "c") == .beforeAll)
        #expect(PurgeLog().missed(since: .beforeAll).purges == [.all])
    }
}
