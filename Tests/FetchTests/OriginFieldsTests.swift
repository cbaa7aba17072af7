import TestSupport
import Testing

@testable import Fetch

@Suite("Fields of an origin are sent to that origin, for its own sources", .timeLimit(.minutes(10))) struct OriginFieldsTests {
    @Test(arguments: [
        ("Authorization: Bearer a.b-c=", true), ("X-Key:1", true), ("x_key: a b", true), ("X-Key", false), ("X-Key:", false),
        (": a", false),
        ("X Key: a", false), ("X-Key: a\r\nB: c", false), ("X-Key: é", false), ("Host: a", false), ("range: bytes=0-1", false),
        ("If-None-Match: x", false), ("Transfer-Encoding: chunked", false), ("", false),
    ])
    func aFieldHasANameAndAValue(_ text: String, _ isField: Bool) {
        #expect(OriginFields.isField(text) == isField)
    }

    private func settings() -> FetchSettings {
        var configuration = FetchConfiguration()
        configuration.originFields = [
            OriginFields(base: "https://a.test/private/", fields: ["X-Key: 1"]),
            OriginFields(base: "https://b.test/", fields: ["X-Key: 2"]),
        ]
        return FetchSettings(configuration)
    }

    @Test(arguments: [
        ("https://a.test/private/x.gif", "https://a.test/private/x.gif", ["X-Key: 1"]),
        ("https://a.test/private/y.gif", "https://a.test/private/x.gif", ["X-Key: 1"]),
        // The origin redirects elsewhere, and another source to the origin.
        ("https://c.test/x.gif", "https://a.test/private/x.gif", []),
        ("https://a.test/private/x.gif", "https://c.test/x.gif", []),
        ("https://a.test/private/x.gif", "https://b.test/x.gif", []),
        ("https://a.test/x.gif", "https://a.test/private/x.gif", []),
        ("http://a.test/private/x.gif", "http://a.test/private/x.gif", []),
        ("https://a.test:444/private/x.gif", "https://a.test:444/private/x.gif", []),
        ("https://A.test:443/private/x.gif", "https://a.test/private/x.gif", ["X-Key: 1"]),
        ("https://a.test/private/../x.gif", "https://a.test/private/x.gif", []),
    ])
    func whereTheyAreSent(_ url: String, _ source: String, _ fields: [String]) throws {
        #expect(settings().fields(of: try SourceURL(url), source: try SourceURL(source)) == fields)
    }
}
