import Fetch
import Testing

@testable import Renditions

@Suite("Rules about the freshness of sources") struct OriginRulesTests {
    private let rules = OriginRules(shortest: 60, longest: 1000)

    @Test(
        arguments: [
            ("", nil), ("public", nil), ("max-age=500", 500), ("max-age=5", 60), ("max-age=99999", 1000), ("no-cache", 60),
            ("s-maxage=200, max-age=500", 200), ("max-age=500, no-cache", 60), ("max-age=nonsense", 60),
        ] as [(String, Int64?)])
    func freshnessIsTheOriginsWithinBounds(_ text: String, _ expected: Int64?) {
        let keeping = rules.keeping(CacheDirectives(text))
        #expect(keeping.isAllowed && keeping.freshFor == expected)
    }

    @Test(arguments: ["no-store", "private", "private, max-age=500", "max-age=500, NO-STORE"])
    func whatIsNotForSharedCachesIsNotKept(_ text: String) {
        #expect(!rules.keeping(CacheDirectives(text)).isAllowed)
        let deaf = OriginRules(isObeyed: false, shortest: 60, longest: 1000)
        #expect(deaf.keeping(CacheDirectives(text)) == OriginRules.Keeping())
    }

    @Test func expiresCountsWithoutAnAgeAndTimeOnTheWayIsTakenOff() {
        #expect(rules.keeping(CacheDirectives("", expiry: 300)).freshFor == 300)
        #expect(rules.keeping(CacheDirectives("max-age=500", expiry: 300)).freshFor == 500)
        #expect(rules.keeping(CacheDirectives("max-age=500", age: 100)).freshFor == 400)
        #expect(rules.keeping(CacheDirectives("", expiry: 300, age: 290)).freshFor == 60)
        #expect(rules.keeping(CacheDirectives("", age: 100)).freshFor == nil)
    }
}
