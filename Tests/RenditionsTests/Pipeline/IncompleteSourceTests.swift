import Fetch
import Media
import Store
import Testing

@testable import Renditions

@Suite("Sources that break off are trusted for a short time", .timeLimit(.minutes(10))) struct IncompleteSourceTests {
    private let half: [UInt8] = [1, 2]
    private let whole: [UInt8] = [1, 2, 3]

    @Test(arguments: [(nil, 600), ("max-age=5000", 600), ("max-age=200", 200)] as [(String?, Int64)])
    func theirLifetimeIsThatOfAFailureUnlessItIsShorter(_ directives: String?, _ expected: Int64) async throws {
        try await PipelineFixture.run { fixture in
            fixture.answer("/a.gif", .content(half, CacheDirectives(directives ?? "")))
            fixture.setBreaksOff(true)
            let result = try await fixture.find("/a.gif")
            #expect(result.rendition.isOfIncompleteSource && result.rendition.alias?.times.freshFor == expected)
        }
    }

    @Test func theLifetimeOfTheConfigurationIsNotExceeded() async throws {
        var rules = OriginRules.lasting()
        rules.defaultLifetime = 100
        try await PipelineFixture.run(rules: rules) { fixture in
            fixture.answer("/a.gif", .content(half))
            fixture.setBreaksOff(true)
            let result = try await fixture.find("/a.gif")
            #expect(result.rendition.alias?.times.freshFor == 100)
        }
    }

    @Test func theyAreNotAnsweredStale() async throws {
        try await PipelineFixture.run { fixture in
            fixture.answer("/a.gif", .content(half, CacheDirectives("max-age=5000")))
            fixture.setBreaksOff(true)
            _ = try await fixture.find("/a.gif")
            fixture.answer("/a.gif", .content(whole, CacheDirectives("max-age=5000")))
            fixture.setBreaksOff(false)
            fixture.advance(599)
            let hit = try await fixture.find("/a.gif")
            #expect(hit.provenance == .hit)
            fixture.advance(2)
            let request = try fixture.request("/a.gif")
            #expect(await fixture.pipeline.stored(request) == nil)
            let result = try await fixture.find("/a.gif")
            #expect(result.provenance == .stored && !result.rendition.isOfIncompleteSource)
            #expect(result.rendition.alias?.times.freshFor == 5000)
        }
    }

    @Test func aConfirmationByTheOriginDoesNotMakeThemMoreTrusted() async throws {
        try await PipelineFixture.run { fixture in
            fixture.answer("/a.gif", .content(half, etag: "\"1\"", CacheDirectives("max-age=5000")))
            fixture.setBreaksOff(true)
            _ = try await fixture.find("/a.gif")
            fixture.advance(601)
            let result = try await fixture.find("/a.gif")
            #expect(result.provenance == .renewed && result.rendition.alias?.times.freshFor == 600)
        }
    }

    @Test func anObjectThatIsFoundUnderAnotherURLIsNotTrustedLonger() async throws {
        try await PipelineFixture.run { fixture in
            for path in ["/a.gif", "/b.gif"] { fixture.answer(path, .content(half, CacheDirectives("max-age=5000"))) }
            fixture.setBreaksOff(true)
            _ = try await fixture.find("/a.gif")
            let result = try await fixture.find("/b.gif")
            #expect(fixture.conversions.count == 1 && result.rendition.alias?.times.freshFor == 600)
        }
    }

    @Test func theSourceThatIsStoredBesideALargerRenditionIsNotTrustedLonger() async throws {
        try await PipelineFixture.run { fixture in
            fixture.answer("/a.gif", .content(half, CacheDirectives("max-age=5000")))
            fixture.setBreaksOff(true)
            let original = Rendition(format: .original)
            _ = try await fixture.pipeline.find(fixture.request("/a.gif", alternative: original))
            let request = try fixture.request("/a.gif", .original)
            let stored = try #require(await fixture.pipeline.stored(request))
            #expect(stored.isOfIncompleteSource && stored.alias?.times.freshFor == 600)
            fixture.advance(601)
            #expect(await fixture.pipeline.stored(request) == nil, "it is not sent stale")
        }
    }

    @Test func theSourceItselfIsNotTrustedLongerIfItsFactsAreStored() async throws {
        try await PipelineFixture.run { fixture in
            fixture.answer("/a.gif", .content(half, CacheDirectives("max-age=5000")))
            fixture.setBreaksOff(true)
            _ = try await fixture.find("/a.gif", .json)
            let result = try await fixture.find("/a.gif", .original)
            #expect(result.rendition.isOfIncompleteSource && result.rendition.alias?.times.freshFor == 600)
        }
    }
}
