import Foundation
import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

private let objectCount = ProcessInfo.processInfo.environment["GIFREEL_MEASURE"].flatMap { Int($0) } ?? 0

/// Prints figures and checks nothing: `GIFREEL_MEASURE=100000 swift test -c release -Xswiftc -enable-testing --filter
/// CacheMeasurements`. The number is that of objects, each with a file of 1 KB.
@Suite("Measurements of the cache", .serialized, .enabled(if: objectCount > 0))
struct CacheMeasurements {
    private func measure<Result>(_ what: String, count: Int = 1, _ body: () async throws -> Result) async rethrows -> Result {
        let start = ContinuousClock.now
        let startOfWork = processorTime()
        let result = try await body()
        let time = (ContinuousClock.now - start) / count
        let work = (processorTime() - startOfWork) / count
        let style = Duration.UnitsFormatStyle(
            allowedUnits: [.seconds, .milliseconds, .microseconds, .nanoseconds], width: .narrow, maximumUnitCount: 2)
        print("\(what): \(time.formatted(style)), of the processor \(work.formatted(style))")
        return result
    }

    /// The processor time of this process. Unlike wall-clock time it does not depend on other processes.
    private func processorTime() -> Duration {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return .seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + .microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec)
    }

    @Test func hotLookUps() async throws {
        let directory = try TemporaryDirectory()
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let keys = (0..<1000).map { AliasKey.test("https://a/\($0)") }
        for number in 0..<1000 { try await cache.put([1], url: "https://a/\(number)") }
        for threads in [1, 2] {
            for (what, spread) in [("1000 keys", 1000), ("one key", 1)] {
                let rounds = 2_000_000
                await measure("hot lookup, \(threads) threads, \(what)", count: rounds) {
                    let missed = Atomic(0)
                    let running = (0..<threads).map { thread in
                        SystemThread.start(name: "hot") {
                            for round in 0..<rounds where cache.hotAlias(keys[(round &* 7 + thread) % spread]) == nil {
                                missed.add(1, ordering: .relaxed)
                            }
                        }
                    }
                    for thread in running { thread?.join() }
                    #expect(missed.load(ordering: .relaxed) == 0)
                }
            }
        }
        await measure("alias key", count: 100_000) {
            for number in 0..<100_000 {
                _ = AliasKey(sourceURL: "https://media.example.com/uploads/2024/\(number).gif", rendition: "mp4,width=480")
            }
        }
    }

    @Test func publishes() async throws {
        for (what, inMemory) in [("disk", false), ("memory", true)] {
            let directory = try TemporaryDirectory(inMemory: inMemory)
            let cache = try Cache.open(directory)
            defer { cache.close() }
            let bytes = noise(200_000, seed: 1)
            try await measure("publish of 200 KB, \(what)", count: 200) {
                for number in 0..<200 { try await cache.put(bytes, url: "https://a/\(number)") }
            }
            try await measure("purge of one, \(what)", count: 50) {
                for number in 0..<50 { _ = try await cache.purge(.url("https://a/\(number)")) }
            }
            await measure("renewal, \(what)", count: 100) {
                for number in 100..<200 {
                    let url = "https://a/\(number)"
                    let epoch = cache.epoch
                    _ = await cache.renew(.test(url), validators: Validators(), times: OriginTimes(fetchedAt: 5), epoch: epoch)
                }
            }
        }
    }

    @Test func manyObjects() async throws {
        let directory = try TemporaryDirectory()
        var configuration = CacheConfiguration.test(directory)
        configuration.scrubBytesPerSecond = 0
        try fill(directory, objects: objectCount, aliases: 1)
        var cache = try await measure("start after a crash (returns)") { try Cache(configuration: configuration) }
        #expect(cache.statistics().objects == Int64(objectCount))
        try await measure("compared after a crash") {
            try await waitUntil("end", within: .seconds(300)) { cache.context.changes.withLock { $0.scanNumber } == nil }
        }
        #expect(cache.statistics().objects == Int64(objectCount))
        cache.close()

        cache = try await measure("start after a close") { try Cache(configuration: configuration) }
        try await measure("lookup on disk", count: 10_000) {
            for number in 0..<10_000 {
                let found = await cache.alias(.test("https://a/\(number * 7 % objectCount)"))
                try #require(found != nil)
            }
        }
        print("bytes an object: \(try directory.contents("ledger.sqlite").count / objectCount)")
        await measure("eviction of 10000", count: 1) {
            var evicted = 0
            while evicted < 10_000 {
                cache.evictor.evictBatch(atLeast: 64_000)
                evicted = Int(cache.statistics().evictions)
            }
        }
        _ = try await measure("purge of 1000 by a prefix") { try await cache.purge(.prefix("https://a/900")) }
        _ = try await measure("purge of a tenth by a prefix") { try await cache.purge(.prefix("https://a/8")) }
        _ = try await measure("purge of the rest") { try await cache.purge(.all) }
        try await measure("its files") {
            try await waitUntil("the files to go", within: .seconds(300)) {
                !directory.files().contains { $0.hasSuffix(".mp4") }
            }
        }
        cache.close()
    }

    /// The longest waits while an object with many aliases is evicted.
    @Test func oneObjectWithManyAliases() async throws {
        let directory = try TemporaryDirectory()
        try fill(directory, objects: 1000, aliases: objectCount)
        let cache = try Cache(configuration: .test(directory))
        defer { cache.close() }
        try await waitUntil("the comparison of files and rows") { cache.context.changes.withLock { $0.scanNumber } == nil }
        _ = await cache.alias(.test("https://a/999"))
        let hit = longestWait { try #require(cache.hotAlias(.test("https://a/999")) != nil) }
        let lookUp = longestWait { _ = await cache.alias(.test("https://nowhere/")) }
        try await measure("eviction of an object with \(objectCount) aliases") {
            try await waitUntil("its end", within: .seconds(300)) {
                _ = cache.evictor.evictBatch(atLeast: 1)
                return cache.statistics().evictions > 0
            }
        }
        hit.cancel()
        lookUp.cancel()
        try await print("longest wait of a hit in memory \(hit.value), of a lookup on disk \(lookUp.value)")
    }

    /// The longest run of `body`, which is repeated until the task is cancelled.
    private func longestWait(_ body: @escaping @Sendable () async throws -> Void) -> Task<Duration, any Error> {
        Task {
            var longest = Duration.zero
            while !Task.isCancelled {
                let start = ContinuousClock.now
                try await body()
                longest = max(longest, ContinuousClock.now - start)
                await Task.yield()
            }
            return longest
        }
    }

    /// Creates the files and the rows of a full cache without syncs.
    ///
    /// - Parameters:
    ///   - aliases: Those of the first object. Others have one.
    private func fill(_ directory: TemporaryDirectory, objects: Int, aliases: Int) throws {
        let store = try CacheContext(configuration: .test(directory))
        let bytes = noise(1000, seed: 3)
        let content = ContentDigest(digest: SourceDigest(of: bytes).digest)
        for start in stride(from: 0, to: objects, by: 10_000) {
            try store.ledger.write(.normal) { database in
                let tables = CacheTables(database, PurgeIndex())
                for number in start..<min(start + 10_000, objects) {
                    let url = "https://a/\(number)"
                    let staged = try store.directory.objects.createStaged()
                    try #require(bytes.withUnsafeBytes { write(staged.number, $0.baseAddress, $0.count) } == bytes.count)
                    try store.directory.objects.link(staged, as: .test(url))
                    let record = ObjectRecord(
                        id: .test(url), fileExtension: "mp4", length: 1000, content: content, created: 5,
                        facts: Array(repeating: 7, count: 60))
                    let sequence = Int64(number) * 2 + 1
                    try tables.insert(record, sequence, uploadBegan: nil)
                    try tables.insert(.test(url), leadingTo: sequence, sequence + 1, began: 0)
                    try tables.setSequence(sequence + 1)
                }
            }
        }
        for start in stride(from: 1, to: aliases, by: 10_000) {
            try store.ledger.write(.normal) { database in
                let tables = CacheTables(database, PurgeIndex())
                for number in start..<min(start + 10_000, aliases) {
                    let sequence = Int64(2 * objects + number)
                    try tables.insert(.test("https://b/\(number)"), leadingTo: 1, sequence, began: 0)
                    try tables.setSequence(sequence)
                }
            }
        }
        // Without a close, as after a crash.
        store.ledger.close()
        store.directory.unlock()
    }
}
