import Store
import SystemIO
import Testing

@Suite("An alias ages, is renewed by its origin, and carries a prepared value") struct AliasTests {
    let directory: TemporaryDirectory
    let clock = ManualClock()
    let url = "https://example.com/a.gif"

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func open() throws -> Cache {
        var configuration = CacheConfiguration.test(directory)
        configuration.freshFor = 100
        configuration.staleFor = 50
        return try Cache(configuration: configuration, clock: clock.cacheClock)
    }

    @Test func anAliasAgesFromFreshToStaleToExpired() async throws {
        let cache = try open()
        defer { cache.close() }
        let rendition = try await cache.put([1], url: url, fetchedAt: clock.now).rendition
        #expect(cache.freshness(of: rendition) == .fresh(remaining: 100))
        clock.advance(99)
        #expect(cache.freshness(of: rendition) == .fresh(remaining: 1))
        clock.advance(1)
        #expect(cache.freshness(of: rendition) == .stale(age: 0))
        clock.advance(49)
        #expect(cache.freshness(of: rendition) == .stale(age: 49))
        clock.advance(1)
        #expect(cache.freshness(of: rendition) == .expired)
    }

    /// Otherwise a clock that was wrong once would keep a rendition until it is right again.
    @Test func aClockThatIsSetBackKeepsNothingFresh() async throws {
        let cache = try open()
        let rendition = try await cache.put([1], url: url, fetchedAt: clock.now).rendition
        clock.setBack(120)
        clock.advance(99)
        #expect(cache.freshness(of: rendition) == .fresh(remaining: 1))
        clock.advance(1)
        #expect(cache.freshness(of: rendition) == .stale(age: 0))
        cache.close()

        // To a new process, the rendition comes from the future.
        let after = try open()
        defer { after.close() }
        let found = try #require(await after.alias(.test(url)))
        #expect(after.freshness(of: found) == .stale(age: 0))
        clock.advance(20)
        #expect(after.freshness(of: found) == .fresh(remaining: 100))
    }

    @Test func anOriginMayForbidToUseItsResponseOnceItIsStale() async throws {
        let cache = try open()
        var alias = AliasRecord.test(url, fetchedAt: clock.now)
        alias.times.mustRevalidate = true
        alias.times.clientFreshFor = 30
        let epoch = cache.epoch
        let rendition = try await cache.publish(
            try cache.staged([1]), as: .test(url), fileExtension: "mp4", alias: alias, epoch: epoch
        ).rendition
        clock.advance(99)
        #expect(cache.freshness(of: rendition) == .fresh(remaining: 1))
        clock.advance(1)
        #expect(cache.freshness(of: rendition) == .expired)
        cache.close()

        let after = try open()
        defer { after.close() }
        #expect(await after.alias(.test(url))?.alias == alias)
        let renewed = try #require(
            await after.renew(
                .test(url), validators: Validators(), times: OriginTimes(fetchedAt: clock.now),
                epoch: after.epoch))
        clock.advance(100)
        #expect(after.freshness(of: renewed) == .stale(age: 0))
    }

    @Test func aLifetimeFromTheOriginReplacesTheDefault() async throws {
        let cache = try open()
        defer { cache.close() }
        let epoch = cache.epoch
        let rendition = try await cache.publish(
            try cache.staged([1]), as: .test(url), fileExtension: "mp4",
            alias: .test(url, fetchedAt: clock.now, freshFor: 10), epoch: epoch
        ).rendition
        clock.advance(12)
        #expect(cache.freshness(of: rendition) == .stale(age: 2))
    }

    @Test func aRevalidationExpiresAliasesAndWorkThatWasBegunBefore() async throws {
        let cache = try open()
        defer { cache.close() }
        let rendition = try await cache.put([1], url: url, fetchedAt: clock.now).rendition
        let epoch = cache.epoch
        await cache.revalidateAll()
        #expect(cache.freshness(of: rendition) == .expired)
        let late = try await cache.put([2], url: "https://example.com/b.gif", epoch: epoch, fetchedAt: clock.now)
        #expect(late.unstoredReason == .purged)
        let renewed = try await cache.put([3], url: url, object: .test("c"), fetchedAt: clock.now)
        #expect(renewed.isStored && cache.freshness(of: renewed.rendition) == .fresh(remaining: 100))
    }

    @Test func anAliasIsUnconfirmedWhereAPurgeMayHaveBeenMissedAlsoAfterARestart() async throws {
        var cache = try open()
        let rendition = try await cache.put([1], url: url, fetchedAt: clock.now).rendition
        await cache.revalidateAll(.possible)
        #expect(cache.freshness(of: rendition) == .unconfirmed)
        cache.close()
        cache = try open()
        defer { cache.close() }
        let found = try #require(await cache.alias(.test(url)))
        #expect(cache.freshness(of: found) == .unconfirmed)
        clock.advance(149)
        #expect(cache.freshness(of: found) == .unconfirmed)
        clock.advance(1)
        #expect(cache.freshness(of: found) == .expired)
        let renewed = try await cache.put([1], url: url, fetchedAt: clock.now).rendition
        #expect(cache.freshness(of: renewed) == .fresh(remaining: 100))
        // What is known is stronger than what may be.
        await cache.revalidateAll(.certain)
        await cache.revalidateAll(.possible)
        #expect(cache.freshness(of: renewed) == .expired)
    }

    @Test func anAliasThatIsHeldIsExpiredUntilItIsConfirmed() async throws {
        var cache = try open()
        try await cache.put([1], url: url, fetchedAt: clock.now)
        cache.close()
        cache = try open()
        defer { cache.close() }
        cache.holdAliases()
        let found = try #require(await cache.alias(.test(url)))
        #expect(cache.freshness(of: found) == .expired)
        // Its object is found on the disk only, by those who may wait.
        #expect(cache.hotObject(.test(url)) == nil)
        #expect(await cache.object(.test(url)) != nil)
        let new = try await cache.put([2], url: "https://example.com/new.gif", fetchedAt: clock.now).rendition
        // A purge that is made now does not count this node.
        #expect(cache.freshness(of: new) == .unconfirmed)
        #expect(cache.hotObject(.test("https://example.com/new.gif")) != nil)
        cache.confirmAliases()
        #expect(cache.freshness(of: found) == .fresh(remaining: 100))
        #expect(cache.freshness(of: new) == .fresh(remaining: 100))
        #expect(cache.hotObject(.test(url)) != nil)
    }

    @Test func anAliasThatIsNotStoredIsAsFreshAsANewOne() async throws {
        let cache = try open()
        defer { cache.close() }
        let memory = try cache.stageInMemory(because: .diskFull, containing: [1])
        let outcome = try await cache.publish(
            memory, as: .test(url), fileExtension: "mp4", alias: .test(url, fetchedAt: clock.now), epoch: cache.epoch)
        #expect(outcome.unstoredReason == .diskFull && cache.freshness(of: outcome.rendition) == .fresh(remaining: 100))
        await cache.revalidateAll(.certain)
        #expect(cache.freshness(of: outcome.rendition) == .fresh(remaining: 100))
        cache.holdAliases()
        #expect(cache.freshness(of: outcome.rendition) == .unconfirmed)
    }

    @Test func whatIsStoredSinceAStartIsConfirmedOnceWhenTheNodeIsAloneForLong() async throws {
        let cache = try open()
        defer { cache.close() }
        cache.holdAliases()
        let old = try await cache.put([1], url: url, fetchedAt: clock.now).rendition
        await cache.doubtAliases()
        #expect(cache.freshness(of: old) == .unconfirmed)
        let new = try await cache.put([2], url: "https://example.com/new.gif", fetchedAt: clock.now).rendition
        #expect(cache.freshness(of: new) == .fresh(remaining: 100))
    }

    @Test func anAliasOfANodeThatIsAloneForLongIsUnconfirmedUntilItIsConfirmed() async throws {
        let cache = try open()
        defer { cache.close() }
        let rendition = try await cache.put([1], url: url, fetchedAt: clock.now).rendition
        await cache.doubtAliases()
        #expect(cache.freshness(of: rendition) == .unconfirmed)
        cache.confirmAliases()
        #expect(cache.freshness(of: rendition) == .fresh(remaining: 100))
    }

    @Test func aRenewedAliasIsFreshAndKeepsValidatorsThatTheOriginLeftOut() async throws {
        let cache = try open()
        try await cache.put([1], url: url, fetchedAt: clock.now)
        clock.advance(120)
        let renewed = try #require(
            await cache.renew(
                .test(url), validators: Validators(etag: nil, lastModified: "Tue"), times: OriginTimes(fetchedAt: clock.now),
                epoch: cache.epoch))
        #expect(cache.freshness(of: renewed) == .fresh(remaining: 100))
        #expect(renewed.alias?.validators == Validators(etag: "\"\(url)\"", lastModified: "Tue"))
        #expect(cache.hotAlias(.test(url)) === renewed)
        cache.close()

        let after = try open()
        defer { after.close() }
        let found = try #require(await after.alias(.test(url)))
        #expect(found.alias?.times.fetchedAt == clock.now)
        #expect(found.alias?.validators.lastModified == "Tue")
    }

    @Test func aPurgedOrUnknownAliasIsNotRenewed() async throws {
        let cache = try open()
        defer { cache.close() }
        let epoch = cache.epoch
        #expect(await cache.renew(.test(url), validators: Validators(), times: OriginTimes(fetchedAt: 1), epoch: epoch) == nil)
        try await cache.put([1], url: url)
        _ = try await cache.purge(.url(url))
        try await cache.put([2], url: url, object: .test("new"))
        // The origin was asked before the purge, so its 304 is about the purged rendition.
        #expect(await cache.renew(.test(url), validators: Validators(), times: OriginTimes(fetchedAt: 1), epoch: epoch) == nil)
        #expect(try await cache.bytes(url: url) == [2])
    }

    @Test func newBytesReplaceTheObjectOfAnAlias() async throws {
        let cache = try open()
        defer { cache.close() }
        try await cache.put([1], url: url, object: .test("old"))
        try await cache.put([2], url: url, object: .test("new"))
        #expect(try await cache.bytes(url: url) == [2])
        #expect(try await cache.object(.test("old"))?.descriptor.readAll() == [1])
    }

    @Test func theFirstAttachedValueStays() async throws {
        final class Prepared: Sendable {}
        let cache = try open()
        defer { cache.close() }
        try await cache.put([1], url: url)
        let hot = try #require(cache.hotAlias(.test(url)))
        #expect(hot.attachment == nil)
        let first = Prepared()
        #expect(hot.attach(first) as? Prepared === first)
        #expect(hot.attach(Prepared()) as? Prepared === first)
        #expect(cache.hotAlias(.test(url))?.attachment as? Prepared === first)
    }

    @Test func anAttachedValueLivesAsLongAsItsRendition() async throws {
        final class Prepared: Sendable {}
        let cache = try open()
        defer { cache.close() }
        try await cache.put([1], url: url)
        weak var kept: Prepared?
        weak var refused: Prepared?
        do {
            let hot = try #require(cache.hotAlias(.test(url)))
            do {
                let (first, second) = (Prepared(), Prepared())
                (kept, refused) = (first, second)
                hot.attach(first)
                hot.attach(second)
            }
            #expect(kept != nil)
            #expect(refused == nil)
        }
        _ = try await cache.purge(.url(url))
        #expect(kept == nil)
    }
}
