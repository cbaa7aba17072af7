import TestSupport
import Testing

@testable import Fetch

@Suite("Redirects limit how a source is cached", .timeLimit(.minutes(10))) struct RedirectCachingTests {
    private static let month = 2_592_000

    private func redirect(_ status: Int, _ fields: [String], to location: String = "/b.gif") -> LoopbackAnswer {
        .response("\(status) Moved", ["Location: \(location)"] + fields)
    }

    private static func field(_ cacheControl: String?) -> [String] { cacheControl.map { ["Cache-Control: \($0)"] } ?? [] }

    @Test(
        arguments: [
            (302, nil, "max-age=2592000", month, true), (303, nil, "max-age=2592000", month, true),
            (307, nil, "max-age=2592000", month, true), (301, nil, "max-age=2592000", month, false),
            (308, nil, "max-age=2592000", month, false), (302, nil, "max-age=600", 600, true), (302, nil, nil, nil, true),
            (301, nil, nil, nil, true), (302, "max-age=60", "max-age=2592000", 60, false),
            (301, "max-age=60", "max-age=2592000", 60, false), (302, "max-age=2592000", "max-age=600", 600, false),
            (302, "max-age=2592000", "max-age=2592000", month, false), (302, "max-age=60", nil, 60, true),
        ] as [(Int, String?, String?, Int?, Bool)])
    func theSmallestLifetimeCounts(
        _ status: Int, _ first: String?, _ last: String?, _ freshFor: Int?, _ isLimited: Bool
    ) async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", redirect(status, Self.field(first)))
            origin.on("/b.gif", .ok(TestGIF.dot, Self.field(last)))
            let directives = try await fetcher.source(origin.url("/a.gif")).cacheDirectives
            #expect(directives.freshFor == freshFor)
            // A redirect, or the response, that gives no lifetime limits the others to the default one.
            #expect(directives.isLimitedByDefault == isLimited)
        }
    }

    @Test func theSmallestLifetimeOfClientsCounts() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", redirect(301, ["Cache-Control: max-age=60, s-maxage=900"]))
            origin.on("/b.gif", .ok(TestGIF.dot, ["Cache-Control: max-age=600"]))
            let directives = try await fetcher.source(origin.url("/a.gif")).cacheDirectives
            #expect(directives.freshFor == 600 && directives.clientFreshFor == 60)
        }
    }

    @Test func everyRedirectOfAChainCounts() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", redirect(301, ["Cache-Control: no-cache, max-age=500"], to: "/m.gif"))
            origin.on("/m.gif", redirect(302, ["Cache-Control: max-age=100"]))
            origin.on("/b.gif", .ok(TestGIF.dot, ["Cache-Control: max-age=2592000"]))
            let directives = try await fetcher.source(origin.url("/a.gif")).cacheDirectives
            #expect(directives.freshFor == 100 && directives.noCache && !directives.noStore && !directives.isPrivate)
        }
    }

    @Test(arguments: ["no-store", "private", "no-cache"])
    func aDirectiveOfARedirectHoldsForTheSource(_ directive: String) async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", redirect(302, ["Cache-Control: \(directive)"]))
            origin.on("/b.gif", .ok(TestGIF.dot, ["Cache-Control: public, max-age=2592000"]))
            let arriving = ArrivingSource()
            let outcome = try await fetcher.fetch(try SourceURL(origin.url("/a.gif")), arriving: arriving)
            guard case .fetched(let source) = outcome else { throw FetchError.closed }
            let start = try #require(arriving.start)
            for directives in [source.cacheDirectives, start.cacheDirectives] {
                #expect(directives.noStore == (directive == "no-store"))
                #expect(directives.isPrivate == (directive == "private"))
                #expect(directives.noCache == (directive == "no-cache"))
            }
        }
    }
}

@Suite("Validators go to the URL that they are from", .timeLimit(.minutes(10))) struct ValidatorScopeTests {
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"

    @Test func thoseOfARedirectsTargetAreNotKept() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .redirect(to: "/b.gif", 301))
            origin.on("/b.gif", .ok(TestGIF.dot, ["ETag: \"v1\"", "Last-Modified: \(Self.date)"]))
            let redirected = try await fetcher.source(origin.url("/a.gif")).validators
            let direct = try await fetcher.source(origin.url("/b.gif")).validators
            #expect(redirected.isEmpty && !direct.isEmpty)
        }
    }

    @Test func theyAreNotSentToTheTargetOfARedirect() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .redirect(to: "/b.gif"))
            // Another picture that has the same entity tag by chance.
            origin.on("/b.gif") { .tagged("\"v1\"", TestGIF.dot, $0) }
            let known = SourceValidators(etag: "\"v1\"", lastModified: Self.date)
            guard case .fetched = try await fetcher.fetch(try SourceURL(origin.url("/a.gif")), validators: known) else {
                Issue.record("not fetched")
                return
            }
            let requests = origin.requests.map(\.headers)
            #expect(requests.map { $0["if-none-match"] } == ["\"v1\"", nil])
            #expect(requests.map { $0["if-modified-since"] } == [Self.date, nil])
        }
    }

    @Test func aTargetCannotConfirmThem() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .redirect(to: "/b.gif"))
            origin.on("/b.gif", .response("304 Not Modified", declaresLength: false))
            await #expect(throws: FetchError.failed(.status(304, retryAfter: nil))) {
                try await fetcher.fetch(
                    try SourceURL(origin.url("/a.gif")), validators: SourceValidators(etag: "\"v1\""))
            }
        }
    }

    @Test(
        arguments: [
            ([], "\"v1\"", date), (["ETag: W/\"v1\""], "W/\"v1\"", date),
            (["ETag: \"v1\"", "Last-Modified: Mon, 07 Nov 1994 08:49:37 GMT"], "\"v1\"", "Mon, 07 Nov 1994 08:49:37 GMT"),
        ] as [([String], String, String)])
    func thoseThatA304DoesNotRepeatStay(_ fields: [String], _ etag: String, _ lastModified: String) async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .response("304 Not Modified", fields, declaresLength: false))
            let known = SourceValidators(etag: "\"v1\"", lastModified: Self.date)
            let outcome = try await fetcher.fetch(try SourceURL(origin.url("/a.gif")), validators: known)
            guard case .notModified(let same) = outcome else {
                Issue.record("fetched")
                return
            }
            #expect(same.validators == SourceValidators(etag: etag, lastModified: lastModified))
        }
    }
}
