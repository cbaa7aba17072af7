import Fetch
import Store
import Testing

@testable import Renditions

@Suite("Rules about the freshness of sources") struct OriginRulesTests {
    private let url: SourceURL
    private let rules = OriginRules.lasting(60...1000)

    init() throws {
        url = try SourceURL("https://a.test/cat.gif")
    }

    @Test(
        arguments: [
            ("", nil), ("public", nil), ("max-age=500", 500), ("max-age=5", 60), ("max-age=99999", 1000), ("no-cache", 60),
            ("s-maxage=200, max-age=500", 200), ("max-age=500, no-cache", 60), ("max-age=nonsense", 60),
        ] as [(String, Int64?)])
    func theOriginsLifetimeCountsWithinBounds(_ text: String, _ expected: Int64?) {
        let permission = rules.permission(for: url, CacheDirectives(text))
        #expect(permission.isAllowed && permission.freshFor == expected)
    }

    @Test(arguments: ["no-store", "private", "private, max-age=500", "max-age=500, NO-STORE"])
    func sourcesThatForbidSharedCachesAreNotStored(_ text: String) {
        #expect(!rules.permission(for: url, CacheDirectives(text)).isAllowed)
        let disobeying = OriginRules.lasting(60...1000, isObeyed: false)
        #expect(disobeying.permission(for: url, CacheDirectives(text)) == StoragePermission())
    }

    /// An alias with these directives.
    private func known(
        freshFor: Int64?, clientFreshFor: Int64? = nil, mustRevalidate: Bool = false
    ) -> AliasRecord {
        AliasRecord(
            key: AliasKey(sourceURL: url.canonical, rendition: "mp4"), sourceURL: url.canonical,
            rendition: "mp4",
            times: OriginTimes(
                fetchedAt: 0, freshFor: freshFor, clientFreshFor: clientFreshFor, mustRevalidate: mustRevalidate))
    }

    /// RFC 9111 section 4.2.4.
    @Test(
        arguments: [
            ("", false), ("max-age=500", false), ("max-age=500, must-revalidate", true), ("proxy-revalidate", true),
            ("no-cache", true), ("max-age=500, s-maxage=200", true), ("public, Must-Revalidate", true),
        ])
    func whatForbidsToUseStaleResponsesIsKept(_ text: String, _ expected: Bool) {
        #expect(rules.permission(for: url, CacheDirectives(text)).mustRevalidate == expected)
        let disobeying = OriginRules.lasting(isObeyed: false)
        #expect(!disobeying.permission(for: url, CacheDirectives(text)).mustRevalidate)
        for known in [known(freshFor: nil, mustRevalidate: true), known(freshFor: 200)] {
            let renewed = rules.permission(for: url, CacheDirectives(text), renewing: known)
            #expect(renewed.mustRevalidate == (text.isEmpty ? known.times.mustRevalidate : expected))
        }
    }

    @Test(
        arguments: [
            // The lifetime of a confirmation, the stored one, that of the mount, and the result.
            ("max-age=500", 200, 300, 500), ("no-cache", 200, 300, 60), ("", 200, 300, 300), ("", 200, nil, 200),
            ("", nil, 300, 300), ("", nil, nil, nil), ("", 400, 300, 300), ("", 1, nil, 60), ("", 2000, nil, 1000),
        ] as [(String, Int64?, Int64?, Int64?)])
    func aConfirmationWithoutALifetimeKeepsTheStoredOne(
        _ text: String, _ known: Int64?, _ configured: Int64?, _ expected: Int64?
    ) {
        var rules = rules
        if let configured { rules.freshFor = ["https://a.test/": configured] }
        let permission = rules.permission(for: url, CacheDirectives(text), renewing: self.known(freshFor: known))
        #expect(permission.isAllowed && permission.freshFor == expected)
        rules.obeyOrigin = false
        let disobeying = rules.permission(for: url, CacheDirectives(text), renewing: self.known(freshFor: known))
        #expect(disobeying.isAllowed && disobeying.freshFor == configured)
    }

    /// RFC 9111 section 5.2.2.10.
    @Test(
        arguments: [
            ("max-age=100, s-maxage=500", 500, 100), ("max-age=0, s-maxage=500", 500, 60), ("s-maxage=500", 500, nil),
            ("max-age=500, s-maxage=100", 100, nil), ("max-age=5, s-maxage=10", 60, nil), ("max-age=500", 500, nil),
            ("max-age=100, s-maxage=5000", 1000, 100), ("max-age=100, s-maxage=500, no-cache", 60, nil),
        ] as [(String, Int64, Int64?)])
    func clientsHaveTheirOwnLifetimeIfItIsShorter(_ text: String, _ freshFor: Int64, _ clientFreshFor: Int64?) {
        let first = rules.permission(for: url, CacheDirectives(text))
        // A confirmation states all directives anew, or none.
        let confirmed = rules.permission(
            for: url, CacheDirectives(text), renewing: known(freshFor: 900, clientFreshFor: 70))
        let silent = rules.permission(
            for: url, CacheDirectives(), renewing: known(freshFor: freshFor, clientFreshFor: clientFreshFor))
        for permission in [first, confirmed, silent] {
            #expect(permission.freshFor == freshFor && permission.clientFreshFor == clientFreshFor)
        }
        let disobeying = OriginRules.lasting(60...1000, isObeyed: false)
        #expect(disobeying.permission(for: url, CacheDirectives(text)).clientFreshFor == nil)
    }

    @Test func aConfirmationMayForbidToStore() {
        #expect(rules.permission(for: url, CacheDirectives("no-store"), renewing: known(freshFor: 200)) == .denied)
    }

    @Test func expiresCountsWithoutMaxAgeAndTheAgeIsSubtracted() {
        #expect(rules.permission(for: url, CacheDirectives("", expiry: 300)).freshFor == 300)
        #expect(rules.permission(for: url, CacheDirectives("max-age=500", expiry: 300)).freshFor == 500)
        #expect(rules.permission(for: url, CacheDirectives("max-age=500", age: 100)).freshFor == 400)
        #expect(rules.permission(for: url, CacheDirectives("", expiry: 300, age: 290)).freshFor == 60)
        #expect(rules.permission(for: url, CacheDirectives("", age: 100)).freshFor == nil)
    }
}
