import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("Failures are remembered for their lifetime, and not beyond a purge") struct NegativeCacheTests {
    let clock = ManualClock()
    let key = AliasKey.test("https://a/1")

    private let purges = PurgeIndex()

    private func makeCache(limit: Int = 10_000) -> NegativeCache<Int> {
        NegativeCache(limit: limit, clock: clock.cacheClock, purges: purges)
    }

    private func purge(_ cache: NegativeCache<Int>, _ scope: PurgeScope) -> Int {
        purges.append(scope)
        return cache.remove(scope)
    }

    private func remember(_ cache: NegativeCache<Int>, _ lifetime: NegativeLifetime, url: String = "https://a/1") {
        cache.remember(404, for: .test(url), sourceURL: url, lifetime: lifetime, since: purges.epoch)
    }

    @Test(
        arguments: [
            (NegativeLifetime.missing, 60...60), (.unusable, 600...600), (.transient, 5...7),
            (.retryAfter(seconds: 20), 20...20),
            (.retryAfter(seconds: 9_999), 300...300), (.retryAfter(seconds: -5), 1...1),
        ] as [(NegativeLifetime, ClosedRange<Int64>)])
    func aFailureIsRememberedForItsLifetime(_ lifetime: NegativeLifetime, _ seconds: ClosedRange<Int64>) {
        let cache = makeCache()
        remember(cache, lifetime)
        clock.advance(seconds.lowerBound - 1)
        #expect(cache.failure(for: key)?.failure == 404)
        #expect(cache.failure(for: key)?.remaining ?? 0 >= 1)
        clock.advance(seconds.upperBound - seconds.lowerBound + 2)
        #expect(cache.failure(for: key) == nil)
        #expect(cache.count == 0)
    }

    @Test func theFailuresOfASourceAreListedWithTheirAges() {
        let cache = makeCache()
        let other = AliasKey.test("https://a/1 as a poster")
        remember(cache, .unusable)
        clock.advance(30)
        cache.remember(415, for: other, sourceURL: "https://a/1", lifetime: .missing, since: purges.epoch)
        remember(cache, .missing, url: "https://a/2")
        clock.advance(5)
        let found = Dictionary(uniqueKeysWithValues: cache.list(of: "https://a/1").map { ($0.key, $0.found) })
        #expect(found.count == 2)
        #expect(found[key]?.age == 35 && found[key]?.remaining == 565)
        #expect(found[other]?.age == 5 && found[other]?.remaining == 55 && found[other]?.failure == 415)
        clock.advance(56)
        #expect(cache.list(of: "https://a/1").map(\.found.failure) == [404])
        #expect(purge(cache, .url("https://a/1")) == 2 && cache.list(of: "https://a/1").isEmpty)
    }

    @Test func aFailureEndsWithTheLastNanosecondOfItsLifetime() {
        let time = Atomic<UInt64>(1_000_000_000_000)
        let clock = TimeSource(unixSeconds: { 0 }, monotonicNanoseconds: { time.load(ordering: .relaxed) })
        let cache = NegativeCache<Int>(clock: clock, purges: PurgeIndex())
        remember(cache, .missing)
        #expect(cache.failure(for: key)?.remaining == 60)
        time.add(1, ordering: .relaxed)
        // Rounded up, so that a client that waits so long finds it ended.
        #expect(cache.failure(for: key)?.remaining == 60)
        time.add(59_999_999_998, ordering: .relaxed)
        #expect(cache.failure(for: key)?.remaining == 1)
        time.add(1, ordering: .relaxed)
        #expect(cache.failure(for: key) == nil)
    }

    @Test func aLaterFailureReplacesAnEarlierOne() {
        let cache = makeCache()
        remember(cache, .unusable)
        cache.remember(500, for: key, sourceURL: "https://a/1", lifetime: .missing, since: purges.epoch)
        #expect(cache.failure(for: key)?.failure == 500)
        #expect(cache.failure(for: key)?.remaining == 60)
        #expect(cache.count == 1)
        #expect(cache.failure(for: .test("https://a/2")) == nil)
    }

    @Test func transientFailuresEndAtDifferentTimes() {
        let times = Set((0..<50).map { _ in NegativeLifetime.transient.nanoseconds() })
        #expect(times.count > 10)
        #expect(times.allSatisfy { (5_000_000_000...7_500_000_000).contains($0) })
    }

    @Test func aPurgeForgetsFailuresAndRefusesThoseOfRequestsUnderWay() {
        let cache = makeCache()
        let epoch = purges.epoch
        remember(cache, .missing)
        remember(cache, .missing, url: "https://b/")
        #expect(purge(cache, .prefix("https://a/")) == 1)
        #expect(cache.failure(for: key) == nil)
        #expect(cache.failure(for: .test("https://b/")) != nil)
        cache.remember(404, for: key, sourceURL: "https://a/1", lifetime: .missing, since: epoch)
        #expect(cache.failure(for: key) == nil)
        #expect(purge(cache, .all) == 1)
    }

    @Test func theNumberOfFailuresIsBounded() {
        let cache = makeCache(limit: 10)
        for number in 0..<100 { remember(cache, .missing, url: "https://a/\(number)") }
        #expect(cache.count == 10)
        #expect(cache.failure(for: .test("https://a/99")) != nil)
    }
}
