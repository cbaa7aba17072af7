import Cache
import Fetch
import Testing

@testable import Service

@Suite struct RouteParserTests {
    private func parse(_ target: String, mounts: [String: String] = [:], hasBody: Bool = false) throws -> Route {
        try RouteParser(mounts: mounts.mapValues { Mount(origin: try SourceURL($0)) }).parse(target, hasBody: hasBody).route
    }

    private func source(_ target: String, mounts: [String: String] = [:]) throws -> String? {
        guard case .rendition(_, let url) = try parse(target, mounts: mounts) else { return nil }
        return url.canonical
    }

    @Test func allFormsReadTheSameSource() throws {
        let expected = "https://example.com/a.gif?v=2&w=3"
        for target in [
            "/mp4/https://example.com/a.gif?v=2&w=3", "/mp4/https:/example.com/a.gif?v=2&w=3",
            "/mp4/https%3A%2F%2Fexample.com%2Fa.gif%3Fv%3D2%26w%3D3",
            "/mp4?url=https%3A%2F%2Fexample.com%2Fa.gif%3Fv%3D2%26w%3D3",
            "/mp4,quality=9/HTTPS://EXAMPLE.com:443/a.gif?v=2&w=3",
        ] {
            #expect(try source(target) == expected, "\(target)")
        }
    }

    @Test func optionsAreReadFromPathAndQueryAlike() throws {
        let routes = try [
            "/mp4,bg=000000,quality=9/http://a.test/", "/mp4,quality=9,bg=000000/http://a.test/",
            "/mp4?bg=000000&url=http://a.test/&quality=9", "/mp4,bg=000000?quality=9&url=http%3A%2F%2Fa.test",
        ].map { try parse($0) }
        for route in routes {
            guard case .rendition(let rendition, _) = route else {
                Issue.record("\(route)")
                continue
            }
            #expect(rendition.canonicalText == "mp4,bg=000000,quality=9")
        }
    }

    @Test func defaultsAreNoOptions() throws {
        guard case .rendition(let rendition, _) = try parse("/mp4,quality=60,bg=FFFFFF/http://a.test/") else {
            Issue.record("no rendition")
            return
        }
        #expect(rendition == Rendition(format: .mp4) && rendition.canonicalText == "mp4")
    }

    @Test func aMountStandsForItsOriginAndNothingOutsideIt() throws {
        let mounts = ["media": "https://cdn.test/up/"]
        #expect(try source("/media/x/y.mp4", mounts: mounts) == "https://cdn.test/up/x/y.gif")
        #expect(try source("/media/x/y.gif", mounts: mounts) == "https://cdn.test/up/x/y.gif")
        for target in [
            "/media/../secret.gif", "/media/%2e%2e/secret.mp4", "/media/a.exe", "/media/a", "/media/", "/media", "/other/a.gif",
        ] {
            #expect(throws: Problem.notFound, "\(target)") { try source(target, mounts: mounts) }
        }
    }

    @Test func aBodyIsASourceOfItsOwn() throws {
        #expect(try parse("/mp4", hasBody: true) == .upload(Rendition(format: .mp4)))
        #expect(throws: Problem.self) { try parse("/mp4?url=http://a.test/", hasBody: true) }
        #expect(throws: Problem.notFound) { try parse("/mp4/http://a.test/", hasBody: true) }
    }

    @Test(arguments: Rendition.Format.allCases) func aMountSwapsExtensionsWithOptionsInTheQuery(_ format: Rendition.Format)
        throws
    {
        let mounts = ["media": "https://cdn.test/up/"]
        let query = format == .json ? "" : "?width=40"
        guard case .rendition(let rendition, let url) = try parse("/media/x/y.\(format.rawValue)\(query)", mounts: mounts)
        else {
            Issue.record("no rendition")
            return
        }
        #expect(url.canonical == "https://cdn.test/up/x/y.gif")
        #expect(rendition.canonicalText == format.rawValue + (query.isEmpty ? "" : ",width=40"))
    }

    @Test func objectsAreNamedByTheirWholeContent() throws {
        let id = String(repeating: "0a", count: 32)
        guard case .object(let found, "mp4") = try parse("/object/\(id).mp4") else {
            Issue.record("no object")
            return
        }
        #expect(found.description == id)
        for target in ["/object/\(id)", "/object/\(id).exe", "/object/\(id.dropLast()).mp4", "/object/../\(id).mp4"] {
            #expect(throws: Problem.notFound) { try parse(target) }
        }
    }
}
