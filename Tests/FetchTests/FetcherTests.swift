import Fetch
import SystemIO
import TestSupport
import Testing

@Suite struct FetcherTests {
    @Test func bringsTheBytesWithHashAndValidators() async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        let gif = TestGIF.dot
        origin.on("/a.gif", .ok(gif, ["ETag: \"v1\"", "Cache-Control: max-age=60"]))
        let fetcher = try Fetcher(configuration: .loopback())
        let outcome = try await fetcher.fetch(SourceURL(origin.url("/a.gif")))
        guard case .fetched(let source) = outcome else { return #expect(Bool(false), "not fetched") }
        #expect(try source.bytes.readAll() == gif)
        #expect(source.count == gif.count)
        #expect(source.validators.etag == "\"v1\"")
        #expect(source.cacheDirectives.maxAge == 60)
    }
}
