import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("A disk that stalls stops only the storing", .timeLimit(.minutes(5))) struct StalledDiskTests {
    let directory: TemporaryDirectory
    /// Its publishes wait until ``disk`` is signalled.
    private let cache: Cache
    private let disk = Semaphore()

    init() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        self.directory = directory
        let system = TimeSource.system
        cache = try Cache(
            configuration: .test(directory),
            clock: TimeSource(
                unixNanoseconds: system.unixNanoseconds, monotonicNanoseconds: system.monotonicNanoseconds,
                timers: { Deadline(after: $0 / 10, $1) }),
            onStep: { [disk] step in
                guard step == .publishMeasured else { return }
                disk.wait()
                disk.signal()
            })
    }

    private func resume() {
        disk.signal()
    }

    private func stall() {
        disk.wait()
    }

    /// Timers that the test fires.
    private final class Timers: Sendable {
        private let actions = Mutex<[@Sendable () -> Void]>([])

        var count: Int { actions.withLock(\.count) }

        func add(_ action: @escaping @Sendable () -> Void) -> any AnyObject & Sendable {
            actions.withLock { $0.append(action) }
            return self
        }

        func fire() {
            let due = actions.withLock { actions in
                defer { actions = [] }
                return actions
            }
            for action in due { action() }
        }
    }

    @Test func aSlowDiskIsWaitedForAsLongAsItEndsWork() async throws {
        defer { cache.close() }
        let timers = Timers()
        let seconds = Mutex<UInt64>(1)
        let threads = WorkThreads(count: 2, limit: 8, name: "test")
        let work = DiskWork(
            threads,
            clock: TimeSource(
                unixNanoseconds: TimeSource.system.unixNanoseconds,
                monotonicNanoseconds: { seconds.withLock { $0 * 1_000_000_000 } },
                timers: { timers.add($1) }))
        let begun = Mutex(0)
        let gates = (first: Semaphore(), second: Semaphore())
        defer {
            gates.first.signal()
            gates.second.signal()
            resume()
            threads.close()
        }
        let wait: @Sendable (Semaphore) -> Bool = { gate in
            begun.withLock { $0 += 1 }
            gate.wait()
            return true
        }
        async let first = work.run { wait(gates.first) }
        async let second = work.run { wait(gates.second) }
        try await waitUntil("the beginning of both") { begun.withLock { $0 == 2 } }
        // One timer for both.
        #expect(timers.count == 1)
        seconds.withLock { $0 += 4 }
        gates.first.signal()
        #expect(await first == true)
        // Four seconds after the end of the first.
        for elapsed: UInt64 in [1, 3] {
            seconds.withLock { $0 += elapsed }
            timers.fire()
            #expect(!work.isOverdue && timers.count == 1)
        }
        gates.second.signal()
        #expect(await second == true)
        timers.fire()
        #expect(timers.count == 0)

        async let third = work.run { [disk] in wait(disk) }
        try await waitUntil("the beginning of the third") { begun.withLock { $0 == 3 } }
        seconds.withLock { $0 += 5 }
        timers.fire()
        #expect(work.isOverdue)
        #expect(await third == nil)
        #expect(await work.run { true } == nil)
        resume()
        try await waitUntil("the end of what was given up") { !work.isOverdue }
        #expect(await work.run { true } == true)
    }

    @Test func renditionsAreUsedAtOnceAndStoredLater() async throws {
        defer { cache.close() }
        defer { resume() }
        let late = Mutex<[ObjectID]>([])
        cache.observeLateRenditions { rendition in late.withLock { $0.append(rendition.objectID) } }
        let stalled = try await cache.put([1, 2, 3], url: "https://a/1")
        #expect(stalled.unstoredReason == .unavailable && late.withLock(\.self) == [])
        // Counted in the memory for renditions.
        #expect(try stalled.rendition.object.memory?.readAll() == [1, 2, 3])
        #expect(try stalled.rendition.descriptor.readAll() == [1, 2, 3])
        #expect(cache.statistics().refusal == .unavailable)

        // Nothing waits for the disk now.
        let staged = try await cache.stage(expecting: 10)
        #expect(staged.isInMemory)
        let source = try await cache.stage(copyOf: stalled.rendition.descriptor, count: 2)
        #expect(try source.isInMemory && source.descriptor.readAll() == [1, 2])
        let second = try await cache.put([4], url: "https://a/2")
        #expect(try second.unstoredReason == .unavailable && second.rendition.descriptor.readAll() == [4])
        #expect(await cache.link(.test("https://a/3"), to: .test("https://a/1"), epoch: cache.epoch) == nil)
        #expect(await cache.alias(.test("https://a/1")) == nil)
        #expect(try await cache.onThread { 1 } == 1)

        resume()
        try await waitUntil("the end of the first publish") { await cache.alias(.test("https://a/1")) != nil }
        #expect(try await cache.bytes(url: "https://a/1") == [1, 2, 3])
        try await waitUntil("storing") { try await cache.put([4], url: "https://a/2").isStored }
        #expect(cache.statistics().refusal == nil)
        #expect(late.withLock(\.self) == [.test("https://a/1")])
    }

    /// The same bytes at another URL, or of a source without validators.
    @Test func whatIsStoredIsUsedUnderFurtherAliases() async throws {
        defer { cache.close() }
        resume()
        try await cache.put([1, 2], url: "https://a/1")
        stall()
        defer { resume() }
        try await cache.put([3], url: "https://a/3")
        let before = cache.epoch
        let linked = try #require(await cache.link(.test("https://a/2"), to: .test("https://a/1"), epoch: before))
        #expect(try linked.unstoredReason == .unavailable && linked.rendition.descriptor.readAll() == [1, 2])
        _ = try await cache.purge(.url("https://a/2"))
        let overtaken = await cache.link(.test("https://a/2"), to: .test("https://a/1"), epoch: before)
        #expect(overtaken?.unstoredReason == .purged)
    }

    /// A conversion that began while the disk stalled has its rendition in memory.
    @Test func aDiskThatHasCaughtUpIsNotBlamedForWhatCameTooEarly() async throws {
        defer { cache.close() }
        defer { resume() }
        try await cache.put([1], url: "https://a/1")
        let staged = try cache.stageInMemory(because: .unavailable, containing: [2])
        #expect(cache.statistics().refusal == .unavailable)
        resume()
        try await waitUntil("the end of the stall") { cache.statistics().refusal == nil }
        let outcome = try await cache.publish(
            staged, as: .test("https://a/2"), fileExtension: "mp4", alias: .test("https://a/2"), epoch: cache.epoch)
        #expect(outcome.unstoredReason == .unavailable && cache.statistics().refusal == nil)
    }

    @Test func whatAPurgeOvertakesMeanwhileIsNeitherStoredNorStorable() async throws {
        defer { cache.close() }
        defer { resume() }
        let epoch = cache.epoch
        async let outcome = cache.put([1], url: "https://a/1", epoch: epoch)
        _ = try await cache.purge(.all)
        let stalled = try await outcome
        let after = try await cache.publish(
            try cache.staged([2]), as: .test("https://a/2"), fileExtension: "mp4", alias: .test("https://a/2"),
            epoch: cache.epoch)
        #expect(stalled.unstoredReason == .purged && after.unstoredReason == .unavailable)
        resume()
        try await waitUntil("storing") { try await cache.put([3], url: "https://a/3").isStored }
        #expect(await cache.alias(.test("https://a/1")) == nil)
    }

    @Test func aPurgeTakesEffectBeforeTheDiskAnswers() async throws {
        let urls = (1...3).map { "https://a/\($0)" }
        resume()
        do {
            defer { cache.close() }
            for url in urls { try await cache.put([1], url: url) }
            let before = cache.epoch
            let stall = Stall()
            try await stall.begin { [cache] wait in _ = try? cache.ledger.write(.normal) { _ in wait() } }
            defer { stall.end() }

            let failure = Mutex<CacheError?>(nil)
            let purge = Task { [cache] in
                do throws(CacheError) {
                    _ = try await cache.purge(.url(urls[0]))
                } catch {
                    failure.withLock { $0 = error }
                }
            }
            try await waitUntil("the effect") { cache.hotAlias(.test(urls[0])) == nil }
            #expect(cache.hotAlias(.test(urls[1])) != nil)
            #expect(cache.purges.overtook(before, sourceURL: urls[0]) && !cache.purges.overtook(before, sourceURL: urls[1]))
            #expect(await cache.alias(.test(urls[0])) == nil)
            #expect(await cache.object(.test(urls[0])) == nil)
            await purge.value
            guard case .purgeNotDurable? = failure.withLock({ $0 }) else {
                Issue.record("a purge that is not durable has to fail")
                return
            }

            // Only the disk knows that this object belongs to the source. The disk has not answered yet.
            cache.forgetHot()
            #expect(await cache.object(.test(urls[1])) != nil)
            await #expect(throws: CacheError.self) { try await cache.purge(.url(urls[1])) }
            #expect(cache.hotObject(.test(urls[1])) == nil)
            #expect(await cache.object(.test(urls[1])) == nil)
            #expect(await cache.alias(.test(urls[2])) != nil)

            stall.end()
            try await waitUntil("the end of the stall") { (try? await cache.purge(.url("https://b/"))) != nil }
            #expect(try await cache.put([2], url: urls[0], object: .test("new")).isStored)
        }
        let again = try Cache.open(directory)
        defer { again.close() }
        #expect(try await again.bytes(url: urls[0]) == [2])
        #expect(await again.alias(.test(urls[1])) == nil)
        #expect(await again.alias(.test(urls[2])) != nil)
    }

    @Test func whatIsAnnouncedTakesEffectAtOnceAndIsWrittenInOrder() async throws {
        let urls = (1...3).map { "https://a/\($0)" }
        resume()
        do {
            defer { cache.close() }
            for url in urls { try await cache.put([1], url: url) }
            let stall = Stall()
            try await stall.begin { [cache] wait in _ = try? cache.ledger.write(.normal) { _ in wait() } }
            defer { stall.end() }
            let written = Mutex<[String]>([])
            for (number, url) in urls.prefix(2).enumerated() {
                let purge = Purge(
                    .url(url), madeAt: cache.sharedClock.latest, isLocal: false, token: "\(number)", entry: "\(number + 1)-0")
                #expect(cache.announce(purge) && !cache.announce(purge))
                #expect(cache.unrecordedPurges.contains(purge))
                #expect(cache.hotAlias(.test(url)) == nil)
                #expect(await cache.alias(.test(url)) == nil)
                cache.writeAnnounced([purge]) { database in
                    guard try PurgeTable(database).purge(withToken: purge.token) == purge else { throw CacheError.busy }
                } completion: { result in
                    if case .success = result { written.withLock { $0.append(url) } }
                }
            }
            #expect(await cache.alias(.test(urls[2])) != nil)
            #expect(written.withLock(\.self) == [])
            stall.end()
            try await waitUntil("the writes") { written.withLock { $0 == Array(urls.prefix(2)) } }
            #expect(cache.unrecordedPurges == [])
        }
        let again = try Cache.open(directory)
        defer { again.close() }
        for url in urls { #expect((await again.alias(.test(url)) != nil) == (url == urls[2])) }
    }

    private func isFresh(_ rendition: CachedRendition, _ cache: Cache) -> Bool {
        if case .fresh = cache.freshness(of: rendition) { true } else { false }
    }

    @Test func aDoubtTakesEffectBeforeTheDiskAnswers() async throws {
        resume()
        let (url, now) = ("https://a/1", TimeSource.system.steadySeconds)
        do {
            defer { cache.close() }
            let stored = try await cache.put([1], url: url, fetchedAt: now).rendition
            #expect(isFresh(stored, cache))
            let stall = Stall()
            // As a publish that waits for the disk.
            try await stall.begin { [cache] wait in cache.context.changes.withLock { _ in wait() } }
            defer { stall.end() }
            await cache.doubtAliases()
            #expect(cache.freshness(of: stored) == .unconfirmed)
            cache.confirmAliases()
            #expect(isFresh(stored, cache))
            await cache.revalidateAll(.possible)
            #expect(cache.freshness(of: stored) == .unconfirmed)
            #expect(cache.hotObject(.test(url)) != nil)
            await cache.revalidateAll(.certain)
            #expect(cache.freshness(of: stored) == .expired)
            #expect(cache.hotObject(.test(url)) == nil)
            #expect(await cache.object(.test(url)) == nil)
            // One that is not stored is newer.
            let unstored = try await cache.put([2], url: "https://a/2", fetchedAt: now)
            #expect(isFresh(unstored.rendition, cache) && unstored.unstoredReason == .unavailable)

            stall.end()
            try await waitUntil("storing") {
                let later = try await cache.put([3], url: "https://a/3", fetchedAt: now)
                return isFresh(later.rendition, cache) && later.unstoredReason == nil
            }
            #expect(cache.freshness(of: stored) == .expired)
        }
        let again = try Cache.open(directory)
        defer { again.close() }
        let stored = try #require(await again.alias(.test(url)))
        let later = try #require(await again.alias(.test("https://a/3")))
        #expect(again.freshness(of: stored) == .expired)
        #expect(isFresh(later, again))
    }

    @Test func whatAnOriginForbidsStaysUnstorable() async throws {
        defer { cache.close() }
        defer { resume() }
        for number: UInt8 in 1...2 {
            let outcome = try await cache.publish(
                try cache.staged([number]), as: .test("a"), fileExtension: "mp4", facts: [], alias: nil, epoch: cache.epoch,
                storing: false)
            #expect(outcome.unstoredReason == .unwanted)
        }
    }
}
