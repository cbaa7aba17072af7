import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("A purge removes what it covers, on disk and in memory, for good") struct PurgeTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func aPurgeByURLRemovesThatSourceOnly() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([1, 2, 3], url: "https://a/1")
        try await cache.put([4], url: "https://a/11")
        #expect(try await cache.purge(.url("https://a/1")) == PurgeCounts(purged: 1, bytes: 3))
        #expect(cache.hotAlias(.test("https://a/1")) == nil)
        #expect(cache.hotObject(.test("https://a/1")) == nil)
        #expect(await cache.alias(.test("https://a/1")) == nil)
        #expect(await cache.object(.test("https://a/1")) == nil)
        #expect(try await cache.bytes(url: "https://a/11") == [4])
        #expect(directory.files().count == 1)
        #expect(try await cache.purge(.url("https://a/1")) == PurgeCounts())
    }

    @Test func aPurgeByPrefixComparesBytes() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        for url in ["https://a/x/1", "https://a/x/2", "https://a/y/1", "https://a/X/1", "https://a/x%"] {
            try await cache.put(Array(url.utf8), url: url)
        }
        #expect(try await cache.purge(.prefix("https://a/x/")).purged == 2)
        #expect(try await cache.bytes(url: "https://a/y/1") != nil)
        #expect(try await cache.bytes(url: "https://a/X/1") != nil)
        #expect(try await cache.bytes(url: "https://a/x%") != nil)
        #expect(try await cache.purge(.prefix("https://a/x%")).purged == 1)
    }

    @Test(arguments: [true, false])
    func onePurgeOfEverythingThatStandsForUnrecordedOnesIsSentIfOneOfThemIsNot(hasUnsent: Bool) throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let unrecorded = cache.context.changes.withLock { changes in
            for number: Int64 in 0...16_384 {
                let purge = Purge(
                    .url("https://a/\(number)"), madeAt: number, isLocal: true, token: "\(number)",
                    entry: hasUnsent && number == 0 ? nil : "")
                changes.remember(.init(purges: [(purge, number + 1)]))
            }
            return changes.status.unrecordedPurges.withLock(\.self)
        }
        let all = unrecorded.filter { $0.scope == .all }
        #expect(all.map(\.entry) == [hasUnsent ? nil : ""] && all.map(\.madeAt) == [16_383])
    }

    /// The reason forbids other caches to store the response.
    @Test(arguments: [UnstoredReason.lowSpace, .readOnly, .unavailable])
    func aPurgeIsTheReasonAlthoughTheDiskStoresNothing(_ reason: UnstoredReason) async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let url = "https://a/1"
        try await cache.put([1, 2], url: "https://a/2")
        @Sendable func reasons(_ epoch: Epoch) async throws -> [UnstoredReason?] {
            let published = try await cache.publish(
                try cache.stageInMemory(because: reason, containing: [3]), as: .test(url), fileExtension: "mp4",
                alias: .test(url), epoch: epoch)
            let linked = await cache.link(.test(url), to: .test("https://a/2"), epoch: epoch)
            return [published.unstoredReason, linked?.unstoredReason]
        }
        cache.context.status.setRefusal(reason)
        let before = cache.epoch
        #expect(try await reasons(before) == [reason, reason])
        _ = try await cache.purge(.url(url))
        #expect(try await reasons(before) == [.purged, .purged])
        #expect(try await reasons(cache.epoch) == [reason, reason])
    }

    @Test func anObjectOfAnotherSourceStays() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([1], url: "https://a/", object: .test("same"))
        try await cache.put([1], url: "https://b/", object: .test("same"))
        #expect(try await cache.purge(.url("https://a/")) == PurgeCounts(purged: 1, bytes: 0))
        #expect(try await cache.bytes(url: "https://a/") == nil)
        #expect(try await cache.bytes(url: "https://b/") == [1])
        #expect(try await cache.purge(.url("https://b/")) == PurgeCounts(purged: 1, bytes: 1))
        #expect(directory.files().isEmpty)
    }

    @Test func aFormerRenditionOfASourceIsPurgedWithIt() async throws {
        let cache = try Cache.open(directory)
        try await cache.put([1], url: "https://a/", object: .test("old"))
        try await cache.put([2], url: "https://a/", object: .test("new"))
        try await cache.put([3], url: "https://b/", object: .test("b, old"))
        try await cache.put([4], url: "https://b/", object: .test("b, new"))
        #expect(try await cache.purge(.url("https://a/")) == PurgeCounts(purged: 1, bytes: 2))
        #expect(await cache.object(.test("old")) == nil)
        #expect(await cache.object(.test("new")) == nil)
        #expect(await cache.object(.test("b, old")) != nil)
        cache.close()
        let again = try Cache.open(directory)
        defer { again.close() }
        #expect(await again.object(.test("b, old")) != nil)
        #expect(try await again.purge(.prefix("https://b")) == PurgeCounts(purged: 1, bytes: 2))
        #expect(await again.object(.test("b, old")) == nil)
        #expect(directory.files().isEmpty)
    }

    @Test func aPurgeOfAllRemovesUploadsToo() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([1], url: "https://a/")
        try await cache.put([2, 2], url: nil)
        #expect(try await cache.purge(.all) == PurgeCounts(purged: 2, bytes: 3))
        #expect(directory.files().isEmpty)
        #expect(cache.statistics().objects == 0)
        #expect(cache.statistics().bytes == 0)
        #expect(cache.statistics().purges == 1)
        #expect(cache.statistics().purged == 2)
    }

    // MARK: Uploads

    @Test func anUploadOfTheSameBytesSurvivesAPurgeOfTheURL() async throws {
        let cache = try Cache.open(directory)
        try await cache.put([1, 2], url: nil, object: .test("same"))
        try await cache.put([1, 2], url: "https://a/", object: .test("same"))
        #expect(try await cache.purge(.url("https://a/")) == PurgeCounts(purged: 1, bytes: 0))
        #expect(try await cache.bytes(url: "https://a/") == nil)
        #expect(try await cache.object(.test("same"))?.descriptor.readAll() == [1, 2])
        cache.close()
        try await expectTheUpload()
    }

    @Test func anUploadOfBytesThatAURLBroughtFirstSurvivesItsPurge() async throws {
        let cache = try Cache.open(directory)
        try await cache.put([1, 2], url: "https://a/", object: .test("same"))
        #expect(try await cache.uploadedObject(.test("none")) == nil)
        // The second call finds the upload recorded.
        for _ in 0..<2 {
            #expect(try await cache.uploadedObject(.test("same"))?.descriptor.readAll() == [1, 2])
        }
        #expect(try await cache.purge(.prefix("https://")) == PurgeCounts(purged: 1, bytes: 0))
        #expect(try await cache.object(.test("same"))?.descriptor.readAll() == [1, 2])
        cache.close()
        try await expectTheUpload()
    }

    /// After a restart, a purge of the URL leaves the upload.
    private func expectTheUpload() async throws {
        for _ in 0..<2 {
            let cache = try Cache.open(directory)
            try await cache.put([1, 2], url: "https://a/", object: .test("same"))
            #expect(try await cache.purge(.url("https://a/")).bytes == 0)
            #expect(try await cache.object(.test("same"))?.descriptor.readAll() == [1, 2])
            cache.close()
        }
        let cache = try Cache.open(directory)
        defer { cache.close() }
        #expect(try await cache.purge(.all).bytes == 2)
        #expect(await cache.object(.test("same")) == nil)
    }

    @Test func anObjectStoredAgainAfterItsUploadWasPurgedIsNoUpload() async throws {
        let cache = try Cache.open(directory)
        try await cache.put([1], url: nil, object: .test("same"))
        _ = try await cache.purge(.object(.test("same")))
        try await cache.put([1], url: "https://a/", object: .test("same"))
        cache.close()
        let again = try Cache.open(directory)
        defer { again.close() }
        #expect(try await again.purge(.url("https://a/")) == PurgeCounts(purged: 1, bytes: 1))
        #expect(await again.object(.test("same")) == nil)
    }

    // MARK: Objects

    @Test func aPurgeOfAnObjectRemovesItAndEveryAliasToIt() async throws {
        let cache = try Cache.open(directory)
        try await cache.put([1, 1], url: "https://a/", object: .test("same"))
        try await cache.put([1, 1], url: "https://b/", object: .test("same"))
        try await cache.put([1, 1], url: nil, object: .test("same"))
        try await cache.put([2], url: "https://c/")
        #expect(try await cache.purge(.object(.test("same"))) == PurgeCounts(purged: 2, bytes: 2))
        #expect(try await cache.purge(.object(.test("same"))) == PurgeCounts())
        cache.close()
        for _ in 0..<2 {
            let again = try Cache.open(directory)
            #expect(await again.object(.test("same")) == nil)
            #expect(await again.alias(.test("https://a/")) == nil)
            #expect(await again.alias(.test("https://b/")) == nil)
            #expect(try await again.bytes(url: "https://c/") == [2])
            again.close()
        }
    }

    @Test func aPurgedUploadIsCountedAndLeavesTheMemory() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([7, 7, 7], url: nil)
        #expect(cache.hotObject(.test("upload")) != nil)
        #expect(try await cache.purge(.object(.test("upload"))) == PurgeCounts(purged: 1, bytes: 3))
        #expect(cache.hotObject(.test("upload")) == nil)
        #expect(try await cache.uploadedObject(.test("upload")) == nil)
        #expect(directory.files().isEmpty)
    }

    @Test func workBegunBeforeThePurgeOfItsObjectIsNotStored() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let epoch = cache.epoch
        _ = try await cache.purge(.object(.test("same")))
        let outcome = try await cache.put([1], url: "https://a/", object: .test("same"), epoch: epoch)
        #expect(outcome.unstoredReason == .purged)
        #expect(try await cache.put([1], url: nil, object: .test("same"), epoch: epoch).unstoredReason == .purged)
        #expect(try await cache.put([2], url: "https://b/", epoch: epoch).isStored)
        #expect(await cache.object(.test("same")) == nil)
    }

    // MARK: Purges that were made earlier

    @Test(arguments: [PurgeScope.url("https://a/"), .prefix("https://"), .host("a"), .all])
    func aPurgeOfAnotherNodeLeavesWhatWasRequestedLater(_ scope: PurgeScope) async throws {
        let time = ManualClock()
        let cache = try Cache.open(directory, clock: time.cacheClock)
        defer { cache.close() }
        cache.synchronize(time)
        let before = time.now * 1000
        time.advance(10)
        // Whatever the time of the answer is.
        try await cache.put([1], url: "https://a/", fetchedAt: 0)
        let after = time.now * 1000
        time.advance(10)
        #expect(try await cache.purge(scope, madeAt: before) == PurgeCounts())
        #expect(try await cache.bytes(url: "https://a/") == [1])
        #expect(try await cache.purge(scope, madeAt: after) == PurgeCounts(purged: 1, bytes: 1))
        #expect(try await cache.bytes(url: "https://a/") == nil)
    }

    @Test func aPurgeOfAnotherNodeCoversAFetchThatBeganBeforeAndEndedAfterIt() async throws {
        let time = ManualClock()
        let cache = try Cache.open(directory, clock: time.cacheClock)
        defer { cache.close() }
        cache.synchronize(time)
        let epoch = cache.epoch
        time.advance(10)
        let moment = time.now * 1000
        time.advance(10)
        try await cache.put([1], url: "https://a/", epoch: epoch, fetchedAt: time.now)
        #expect(try await cache.purge(.url("https://a/"), madeAt: moment).purged == 1)
        #expect(try await cache.put([1], url: "https://a/", epoch: epoch).unstoredReason == .purged)
    }

    /// The purge is accepted before the lookup and arrives, or takes effect before the disk answers, during the lookup.
    @Test(arguments: [Step.lookupReadIndex, .lookupOpenedFile], [true, false])
    func aLookupDuringWhichAPurgeOfAnotherNodeArrivesFindsNothing(_ moment: Step, _ isWritten: Bool) throws {
        let time = ManualClock()
        let arrival = Mutex<(@Sendable () -> Void)?>(nil)
        let cache = try Cache(
            configuration: .test(directory), clock: time.cacheClock,
            threads: CacheThreads(create: CacheThreads.system.create, includeHousekeeping: false),
            onStep: { step in
                if step == moment, let arrive = arrival.withLock({ $0.take() }) { arrive() }
            })
        defer { cache.close() }
        cache.synchronize(time)
        let (url, key) = ("https://a/", AliasKey.test("https://a/"))
        func publish(_ byte: UInt8) throws -> Bool {
            let job = PublishJob(
                staged: try cache.staged([byte]), id: .test("\(byte)"), fileExtension: "mp4", facts: [], alias: .test(url),
                epoch: cache.epoch)
            return try cache.publisher.process(job).isStored
        }
        #expect(try publish(1))
        cache.forgetHot()
        time.advance(10)
        let purge = Purge.test(.url(url), madeAt: time.now * 1000)
        time.advance(10)
        arrival.withLock {
            $0 = { if isWritten { _ = cache.apply([purge]) } else { cache.announce(purge) } }
        }
        #expect(try cache.finder.rendition(under: key) == nil)
        #expect(arrival.withLock { $0 == nil } && cache.purges.isKnown(purge.token))
        #expect(cache.hotAlias(key) == nil)
        // What was requested after the purge stays, although the purge arrives during the lookup.
        _ = cache.apply([purge])
        #expect(try publish(2))
        cache.forgetHot()
        let earlier = Purge.test(.url(url), madeAt: purge.madeAt)
        arrival.withLock { $0 = { _ = cache.apply([earlier]) } }
        #expect(try cache.finder.rendition(under: key)?.descriptor.readAll() == [2])
        #expect(cache.purges.isKnown(earlier.token))
    }

    /// The reader compares its row with the purges after the sweep has ended.
    @Test func aReaderOfAnOlderStateFindsNothingThatASweptPurgeCovers() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let key = AliasKey.test("https://a/")
        try await cache.put([1], url: "https://a/")
        let found = try cache.ledger.read { database in
            let tables = CacheTables(database, cache.purges)
            let before = try tables.aliasRow(key)
            _ = cache.apply([.test(.url("https://a/"), madeAt: 1 << 50)])
            return (before: before, after: try tables.aliasRow(key))
        }
        #expect(!cache.purges.hasUnswept)
        #expect(found.before != nil)
        #expect(found.after == nil)
    }

    @Test func aNodeWithoutTheClusterSClockTakesNothingForNewer() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([1], url: "https://a/")
        // Clocks may differ by minutes.
        #expect(try await cache.purge(.url("https://a/"), madeAt: TimeSource.system.unixMilliseconds - 300_000).purged == 1)
    }

    @Test func aPurgeOfEverythingOfAnotherNodeLeavesWhatIsNewer() async throws {
        let time = ManualClock()
        let cache = try Cache.open(directory, clock: time.cacheClock)
        cache.synchronize(time)
        try await cache.put([1], url: nil, object: .test("old upload"))
        try await cache.put([2, 2], url: "https://old/")
        time.advance(10)
        let moment = time.now * 1000
        time.advance(10)
        try await cache.put([3, 3, 3], url: nil, object: .test("new upload"))
        try await cache.put([4], url: "https://new/")
        #expect(try await cache.purge(.all, madeAt: moment).bytes == 3)
        func expectNewerOnly(_ cache: Cache) async throws {
            #expect(await cache.object(.test("old upload")) == nil)
            #expect(try await cache.bytes(url: "https://old/") == nil)
            #expect(await cache.object(.test("new upload")) != nil)
            #expect(try await cache.bytes(url: "https://new/") == [4])
            #expect(cache.statistics().objects == 2 && cache.statistics().bytes == 4 && cache.statistics().aliases == 1)
        }
        try await expectNewerOnly(cache)
        cache.close()
        let again = try Cache.open(directory, clock: time.cacheClock)
        defer { again.close() }
        try await expectNewerOnly(again)
        _ = try await again.purge(.all, madeAt: time.now * 1000)
        #expect(again.statistics().objects == 0 && again.statistics().aliases == 0)
    }

    @Test func aPurgeOfAnObjectOfAnotherNodeLeavesALaterUpload() async throws {
        let time = ManualClock()
        let cache = try Cache.open(directory, clock: time.cacheClock)
        defer { cache.close() }
        cache.synchronize(time)
        let moment = time.now * 1000
        time.advance(10)
        try await cache.put([1], url: nil, object: .test("upload"))
        time.advance(10)
        #expect(try await cache.purge(.object(.test("upload")), madeAt: moment) == PurgeCounts())
        #expect(await cache.object(.test("upload")) != nil)
        #expect(try await cache.purge(.object(.test("upload")), madeAt: time.now * 1000) == PurgeCounts(purged: 1, bytes: 1))
        #expect(await cache.object(.test("upload")) == nil)
    }

    @Test(arguments: [PurgeScope.object(.test("upload")), .all])
    func aPurgeOfAnotherNodeLeavesAnUploadThatWasRepeatedAfterIt(_ scope: PurgeScope) async throws {
        let time = ManualClock()
        let cache = try Cache.open(directory, clock: time.cacheClock)
        defer { cache.close() }
        cache.synchronize(time)
        for _ in 0..<2 {
            try await cache.put([1], url: nil, object: .test("upload"))
            time.advance(10)
            let moment = time.now * 1000
            time.advance(10)
            // The client gets the stored rendition.
            #expect(try await cache.uploadedObject(.test("upload")) != nil)
            #expect(try await cache.purge(scope, madeAt: moment) == PurgeCounts())
            #expect(await cache.object(.test("upload")) != nil)
        }
    }

    // MARK: Missed purges

    @Test func anObjectIsFoundByItsIdAfterMissedPurgesOnceItIsConfirmed() async throws {
        var cache = try Cache.open(directory)
        let (source, upload) = (ObjectID.test("https://a/"), ObjectID.test("upload"))
        try await cache.put([1], url: "https://a/")
        try await cache.put([2], url: nil)
        await cache.revalidateAll(.possible)
        #expect(await cache.object(source) != nil)
        #expect(await cache.object(upload) != nil)
        await cache.revalidateAll(.certain)
        for _ in 0..<2 {
            for id in [source, upload] {
                #expect(cache.hotObject(id) == nil)
                #expect(await cache.object(id) == nil)
            }
            // What is stored since is found.
            try await cache.put([3], url: "https://b/")
            #expect(await cache.object(.test("https://b/")) != nil)
            cache.close()
            cache = try Cache.open(directory)
        }
        defer { cache.close() }
        let renewed = await cache.renew(
            .test("https://a/"), validators: Validators(), times: OriginTimes(fetchedAt: 1_700_000_000), epoch: cache.epoch)
        #expect(renewed != nil)
        #expect(try await cache.uploadedObject(upload) != nil)
        for id in [source, upload] { #expect(await cache.object(id) != nil) }
    }

    @Test func anUploadIsFoundByItsIdAfterAliasesWereExpired() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([1], url: "https://a/")
        try await cache.put([2], url: nil)
        cache.expireAliases()
        #expect(await cache.object(.test("https://a/")) == nil)
        #expect(await cache.object(.test("upload")) != nil)
    }

    // MARK: Work in flight

    @Test func workBegunBeforeAPurgeIsServedButNotStored() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let epoch = cache.epoch
        _ = try await cache.purge(.prefix("https://a/"))
        let outcome = try await cache.put([1, 2], url: "https://a/1", epoch: epoch)
        #expect(outcome.unstoredReason == .purged)
        #expect(try outcome.rendition.descriptor.readAll() == [1, 2])
        #expect(try await cache.bytes(url: "https://a/1") == nil)
        #expect(directory.files().isEmpty)
        // The purge does not affect another source.
        #expect(try await cache.put([1], url: "https://b/", epoch: epoch).isStored)
        #expect(try await cache.put([3], url: "https://a/1").isStored)
    }

    @Test func anOpenFileSurvivesAPurge() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await cache.put([1, 2], url: "https://a/")
        let held = try #require(await cache.alias(.test("https://a/")))
        _ = try await cache.purge(.all)
        #expect(try held.descriptor.readAll() == [1, 2])
    }

    @Test func aPurgeHoldsAfterARestart() async throws {
        let cache = try Cache.open(directory)
        // The object stays for another source, so only the purged alias must stay away.
        try await cache.put([1], url: "https://a/", object: .test("same"))
        try await cache.put([1], url: "https://b/", object: .test("same"))
        _ = try await cache.purge(.url("https://a/"))
        cache.close()
        for _ in 0..<2 {
            let again = try Cache.open(directory)
            #expect(try await again.bytes(url: "https://a/") == nil)
            #expect(try await again.bytes(url: "https://b/") == [1])
            again.close()
        }
    }

    @Test func aLargePurgeLeavesNothing() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let cache = try Cache.open(directory)
        defer { cache.close() }
        for number in 0..<1_200 { try await cache.put([UInt8(number % 256)], url: "https://a/\(number)") }
        #expect(try await cache.purge(.prefix("https://a/")) == PurgeCounts(purged: 1_200, bytes: 1_200))
        #expect(cache.statistics().objects == 0)
        #expect(await cache.object(.test("https://a/1199")) == nil)
        try await waitUntil("the files to go") { directory.files().isEmpty }
        #expect(cache.statistics().aliases == 0 && cache.statistics().diskBytes == 0)
    }

    @Test func theNextStartRemovesTheFilesOfALargePurgeThatAClosedCacheLeft() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let cache = try Cache.open(directory)
        for number in 0..<1_200 { try await cache.put([UInt8(number % 256)], url: "https://a/\(number)") }
        _ = try await cache.purge(.all)
        // What is stored again meanwhile stays.
        try await cache.put([9], url: "https://a/1199")
        cache.close()
        let again = try Cache.open(directory)
        defer { again.close() }
        try await waitUntil("the files to go") { directory.files().filter { $0.hasSuffix(".mp4") }.count == 1 }
        #expect(try await again.bytes(url: "https://a/1199") == [9])
        #expect(again.statistics().objects == 1 && again.statistics().bytes == 1)
    }

    @Test func aClosedCacheRefusesAPurge() async throws {
        let cache = try Cache.open(directory)
        cache.close()
        await #expect(throws: CacheError.self) { try await cache.purge(.all) }
    }
}
