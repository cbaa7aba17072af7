import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("A purge is one row, and what it covers is removed in parts") struct SweepTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func oneRowStandsForAPurgeUntilItIsSwept() async throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        for number in 0..<200 { try await cache.put([1], url: "https://a/\(number)", object: .test("\(number % 40)")) }
        try await cache.put([1], url: "https://b/", object: .test("1"))
        let purge = cache.newPurge(.prefix("https://a/"))
        let sequence = try #require(cache.context.changes.withLock { $0.purge([purge]) }.purges.first?.sequence)
        let count = cache.context.count(purge, sequence)
        #expect(count.purged == 200 && count.bytes == 39)
        cache.forgetHot()
        // Rows are left, which no lookup finds.
        #expect(cache.statistics().aliases == 201)
        for number in 0..<200 { #expect(await cache.alias(.test("https://a/\(number)")) == nil) }
        #expect(await cache.object(.test("0")) == nil)
        #expect(await cache.object(.test("1")) != nil)
        // What is stored meanwhile stays: a new object, and an alias to one that is kept.
        try await cache.put([7], url: "https://a/new", object: .test("new"))
        _ = await cache.link(.test("https://a/again"), to: .test("1"), epoch: cache.epoch)
        while cache.context.changes.withLock({ $0.sweep() }) {}
        #expect(cache.statistics().objects == 2 && cache.statistics().aliases == 3)
        for url in ["https://a/new", "https://a/again", "https://b/"] { #expect(await cache.alias(.test(url)) != nil) }
        #expect(!cache.purges.hasUnswept)
    }

    @Test func aRestartBeforeTheSweepHidesTheSame() async throws {
        do {
            let cache = try Cache.openWithoutHousekeeping(.test(directory))
            defer { cache.close() }
            for number in 0..<1200 { try await cache.put([1], url: "https://a/\(number)") }
            _ = try await cache.purge(.host("a"))
            #expect(cache.purges.hasUnswept)
        }
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        #expect(cache.purges.hasUnswept)
        for number in 0..<1200 { #expect(await cache.alias(.test("https://a/\(number)")) == nil) }
        while cache.context.changes.withLock({ $0.sweep() }) {}
        #expect(directory.files().isEmpty && cache.statistics().aliases == 0)
    }

    @Test func aPurgeOfAHostCoversAllItsSchemesAndPorts() async throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        let urls = ["http://a.test/1", "https://a.test/1", "https://a.test:8443/1", "http://a.test:80/x"]
        let others = ["https://b.a.test/1", "https://a.test.b/1", "https://b/https://a.test/1"]
        for url in urls + others { try await cache.put([1], url: url) }
        #expect(try await cache.purge(.host("a.test")) == PurgeCounts(purged: 4, bytes: 4))
        for url in urls { #expect(await cache.alias(.test(url)) == nil) }
        for url in others { #expect(await cache.alias(.test(url)) != nil) }
        #expect(directory.files().count == others.count)
    }

    @Test func anObjectWithManyAliasesIsRemovedInParts() async throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        for number in 0..<1000 { try await cache.put([1], url: "https://a/\(number)", object: .test("same")) }
        cache.forgetHot()
        #expect(cache.evictor.evictBatch(atLeast: 1).bytes == 1)
        // Its aliases follow.
        #expect(cache.statistics().objects == 0 && (900..<1000).contains(cache.statistics().aliases))
        #expect(await cache.alias(.test("https://a/1")) == nil)
        try await cache.put([2], url: "https://a/1", object: .test("same"))
        while cache.context.changes.withLock({ $0.sweep() }) {}
        #expect(cache.statistics().aliases == 1)
        #expect(try await cache.bytes(url: "https://a/1") == [2])
    }

    @Test func aPurgeThatIsDeliveredAgainHasNoEffect() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let purge = Purge.test(.all, madeAt: 1 << 53, token: "t")
        _ = try await cache.purge([purge])
        try await cache.put([1], url: "https://a/")
        #expect(try await cache.purge([purge, purge]) == PurgeCounts())
        #expect(try await cache.bytes(url: "https://a/") == [1])
    }

    @Test func aSweepKeepsTheFileOfWhatWasPublishedAgain() async throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        for number in 0..<30 { try await cache.put([1], url: "https://a/\(number)") }
        // In effect, and not swept.
        let purge = cache.newPurge(.prefix("https://a/"))
        let sequence = try #require(cache.context.changes.withLock { $0.purge([purge]) }.purges.first?.sequence)
        #expect(directory.files().count == 30)
        for number in 0..<30 where number != 7 { try await cache.put([2], url: "https://a/\(number)") }
        #expect(cache.context.count(purge, sequence).purged == 1)
        cache.forgetHot()
        while cache.context.changes.withLock({ $0.sweep() }) {}
        #expect(directory.files().count == 29)
        for number in 0..<30 { #expect(try await cache.bytes(url: "https://a/\(number)") == (number == 7 ? nil : [2])) }
    }

    @Test(arguments: [1, 300_000]) func onlyALargeFileIsHashedElsewhere(_ count: Int) async throws {
        let url = "https://a/1"
        do {
            let cache = try Cache.open(directory)
            defer { cache.close() }
            try await cache.put([UInt8](repeating: 7, count: count), url: url)
        }
        let verifications = Verifications()
        let cache = try Cache(
            configuration: .test(directory), clock: .system,
            threads: CacheThreads(
                create: { number, limit, name in
                    let threads = WorkThreads(count: number, limit: limit, name: name)
                    return name == "cache-verify" ? CountedWork(base: threads, counter: verifications) : threads
                }, includeHousekeeping: false), onStep: nil)
        defer { cache.close() }
        for _ in 0..<2 {
            #expect(try await cache.bytes(url: url)?.count == count)
            cache.forgetHot()
        }
        #expect(verifications.count.load(ordering: .relaxed) == (count == 1 ? 0 : 1))
    }

    /// A simulation can repeat a run only if it chooses the tokens.
    @Test func tokensOfPurgesComeFromTheirSource() throws {
        let count = Atomic(0)
        let cache = try Cache(
            configuration: .test(directory), clock: .system,
            purgeToken: { "token \(count.add(1, ordering: .relaxed).newValue)" }, onStep: nil)
        defer { cache.close() }
        #expect([PurgeScope.all, .url("https://a/")].map { cache.newPurge($0).token } == ["token 1", "token 2"])
    }

    @Test func aLookUpThatCannotWaitIsNoMiss() async throws {
        let cache = try Cache(
            configuration: .test(directory), clock: .system,
            threads: CacheThreads(create: { _, _, _ in FullWork() }, includeHousekeeping: false), onStep: nil)
        defer { cache.close() }
        let error = await #expect(throws: CacheError.self) {
            try await cache.rendition(for: AliasKey.test("https://a/1"), countsMiss: true)
        }
        if case .busy = error {} else { Issue.record("\(String(describing: error))") }
        #expect(cache.statistics().misses == 0 && cache.statistics().refused == 1)
    }
}

private final class Verifications: Sendable {
    let count = Atomic(0)
}

private struct CountedWork: BlockingWork {
    let base: WorkThreads
    let counter: Verifications

    func submit(_ work: @escaping Work) -> Bool {
        counter.count.add(1, ordering: .relaxed)
        return base.submit(work)
    }

    func close() { base.close() }
}

private struct FullWork: BlockingWork {
    func submit(_ work: @escaping Work) -> Bool { false }
    func close() {}
}
