import Fetch
import Media
import Renditions
import Store
import Testing

@testable import Web

@Suite("Request targets are parsed into routes") struct RouteParserTests {
    private func parse(_ target: String, mounts: [String: String] = [:], hasBody: Bool = false) throws -> Route {
        try RouteParser(mounts: mounts.mapValues { Mount(origin: try SourceURL($0)) }).parse(target, hasBody: hasBody).route
    }

    private func expectNotFound(_ target: String, mounts: [String: String] = [:], saying words: String = "") {
        #expect("\(target)") {
            try parse(target, mounts: mounts)
        } throws: {
            let problem = $0 as? Problem
            return problem?.status == 404 && problem?.code == "not_found" && problem?.detail.contains(words) ?? false
        }
    }

    private func source(_ target: String, mounts: [String: String] = [:]) throws -> String? {
        guard case .rendition(_, let url) = try parse(target, mounts: mounts) else { return nil }
        return url.canonical
    }

    @Test func allFormsReadTheSameSource() throws {
        let expected = "https://example.com/a.gif?v=2&w=3"
        for target in [
            "/mp4/https://example.com/a.gif?v=2&w=3", "/mp4/https:/example.com/a.gif?v=2&w=3",
            "/mp4/https%3A%2F%2Fexample.com%2Fa.gif%3Fv%3D2%26w%3D3", "/mp4/https%3A/example.com/a.gif%3Fv%3D2%26w%3D3",
            "/mp4?url=https%3A%2F%2Fexample.com%2Fa.gif%3Fv%3D2%26w%3D3",
            "/mp4,quality=9/HTTPS://EXAMPLE.com:443/a.gif?v=2&w=3",
        ] {
            #expect(try source(target) == expected, "\(target)")
        }
    }

    @Test(arguments: [
        ("/m/a.mp4?width=8&wait=30s", "/m/a.mp4?width=8", "30s"), ("/f/a.mp4?wait=30s", "/f/a.mp4?wait=30s", nil),
        ("/mp4?url=https://a.test/a.gif&wait=30s", "/mp4?url=https://a.test/a.gif", "30s"),
        ("/mp4/https://a.test/a.gif?wait=30s", "/mp4/https://a.test/a.gif?wait=30s", nil),
    ]) func theWaitOfAPurgeIsNoParameterOfTheSource(_ target: String, _ rest: String, _ wait: String?) throws {
        let plain = Mount(origin: try SourceURL("https://a.test/"))
        var forwarding = plain
        forwarding.query = .forward
        let parts = try RouteParser(mounts: ["m": plain, "f": forwarding]).splitWait(target)
        #expect(parts.target == rest && parts.wait == wait)
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

    @Test func aMountReachesNothingOutsideItsOrigin() throws {
        let mounts = ["media": "https://cdn.test/up/"]
        #expect(try source("/media/x/y.mp4", mounts: mounts) == "https://cdn.test/up/x/y.gif")
        #expect(try source("/media/x/y.gif", mounts: mounts) == "https://cdn.test/up/x/y.gif")
        for target in [
            "/media/../secret.gif", "/media/%2e%2e/secret.mp4", "/media/a.exe", "/media/a", "/media/", "/media", "/other/a.gif",
        ] {
            expectNotFound(target, mounts: mounts)
        }
    }

    @Test func aBodyIsTheSourceOfAnUpload() throws {
        #expect(try parse("/mp4", hasBody: true) == .upload(Rendition(format: .mp4)))
        #expect(throws: Problem.badOption("url", "is for GET; POST takes the GIF itself")) {
            try parse("/mp4?url=http://a.test/", hasBody: true)
        }
        // With a source in the target the body is not one: the handler refuses the method.
        #expect(try parse("/mp4/http://a.test/", hasBody: true) == parse("/mp4/http://a.test/"))
    }

    @Test(arguments: Rendition.Format.allCases) func aMountSwapsExtensionsWithOptionsInTheQuery(_ format: Rendition.Format)
        throws
    {
        let mounts = ["media": "https://cdn.test/up/"]
        let query = format == .json ? "" : "?width=40"
        // The path that ends in .gif alone is that of the source.
        let name = format == .gif ? "gif.gif" : format.rawValue
        guard case .rendition(let rendition, let url) = try parse("/media/x/y.\(name)\(query)", mounts: mounts)
        else {
            Issue.record("no rendition")
            return
        }
        #expect(url.canonical == "https://cdn.test/up/x/y.gif")
        #expect(rendition.canonicalText == format.rawValue + (query.isEmpty ? "" : ",width=40"))
    }

    @Test(arguments: ["/webm/http://a.test/a.gif", "/webm,width=4?url=http://a.test/", "/webm", "/media/a.webm"])
    func aFormatWithoutItsEncoderIsNotOffered(_ target: String) throws {
        let origin = try SourceURL("https://cdn.test/up/")
        let parser = RouteParser(mounts: ["media": Mount(origin: origin)], offered: [.mp4, .html])
        do throws(Problem) {
            _ = try parser.parse(target, hasBody: true)
            Issue.record("\(target) was taken")
        } catch {
            #expect(error.status == 404)
            #expect(
                error.detail
                    == "The format “webm” is not available here: the encoder libvpx-vp9 is missing from libavcodec.")
        }
        #expect(throws: Never.self) { try parser.parse("/mp4/http://a.test/a.gif") }
    }

    @Test func onlyTheExtensionOfAGIFMayBeLeftOut() throws {
        var pictures = Mount(origin: try SourceURL("https://cdn.test/up/"))
        pictures.sources = [.webp]
        let parser = RouteParser(mounts: ["media": pictures])
        #expect(throws: Never.self) { try parser.parse("/media/a.webp.mp4") }
        #expect {
            try parser.parse("/media/a.mp4")
        } throws: {
            ($0 as? Problem)?.detail.contains("ends in .webp, or in one of these and the name of a format: mp4,") ?? false
        }
    }

    @Test func theDetailTellsUnknownFormatsMountsAndPathsApart() {
        let mounts = ["media": "https://cdn.test/up/"]
        expectNotFound(
            "/avi/http://a.test/a.gif",
            saying: "There is no format “avi”. The formats are mp4, webm, avif, awebp, gif, jpg, png, webp, json, html.")
        expectNotFound("/avi,width=3?url=http://a.test/", saying: "no format “avi”")
        expectNotFound("/nothing/a.mp4", mounts: mounts, saying: "There is no mount “nothing”")
        expectNotFound("/<b>x</b>/a.mp4", mounts: mounts, saying: "There is no resource at this path.")
        expectNotFound("/nothing", mounts: mounts, saying: "There is no resource at this path.")
        expectNotFound("/media/a.exe", mounts: mounts, saying: "ends in .gif, or in the name of a format: mp4,")
        expectNotFound("/media/../a.gif", mounts: mounts, saying: "The mount “media” does not serve this path.")
        expectNotFound("/object/12.mp4", saying: "64 hexadecimal digits")
    }

    @Test func aCommaWithoutAnOptionIsExplained() {
        for target in ["/mp4,/http://a.test/", "/mp4,width=20,/http://a.test/", "/mp4,,width=20/http://a.test/"] {
            #expect("\(target)") {
                try parse(target)
            } throws: {
                ($0 as? Problem)?.detail.hasPrefix("The path has a comma without an option after it") ?? false
            }
        }
    }

    /// Libraries encode a segment as a whole, and some proxies encode a comma or an equals sign.
    @Test(arguments: [
        "/mp4,width%3D100,quality=9/http://a.test/a.gif", "/mp4%2Cwidth=100%2Cquality=9/http://a.test/a.gif",
        "/mp4%2cwidth%3d100%2cquality%3D9/http://a.test/a.gif",
        "/mp4%2Cwidth%3D100%2Cquality%3D9?url=http%3A%2F%2Fa.test%2Fa.gif",
    ])
    func separatorsOfOptionsMayBeEncoded(_ target: String) throws {
        guard case .rendition(let rendition, let source) = try parse(target) else { throw Problem.notFound("no rendition") }
        #expect(rendition.canonicalText == "mp4,quality=9,width=100" && source.canonical == "http://a.test/a.gif")
    }

    @Test func anEncodedSeparatorInAValueIsPartOfIt() throws {
        let target = "/mp4,callback=https%3A%2F%2Fa.test%2F%3Fa%3D1%2C2/http://a.test/a.gif"
        #expect(try RouteParser(mounts: [:]).parse(target).callback == "https://a.test/?a=1,2")
    }

    /// Browsers send it as it was typed.
    @Test func aPercentSignInASourceMayStandForItself() throws {
        #expect(try source("/mp4/http://a.test/100%.gif?x=%") == "http://a.test/100%25.gif?x=%")
        #expect(try source("/media/100%.mp4", mounts: ["media": "https://cdn.test/"]) == "https://cdn.test/100%25.gif")
        for target in ["/mp4/100%.gif", "/mp4?url=100%", "/%zz", "/nothing%2"] {
            #expect("\(target)") { try parse(target) } throws: { ($0 as? Problem)?.status == 400 }
        }
    }

    @Test func aHostMayBeEncodedAsBrowsersDo() throws {
        #expect(try source("/mp4/http://b%C3%BCcher.example/a.gif") == "http://xn--bcher-kva.example/a.gif")
    }

    @Test func anUnknownOptionNamesTheOneThatWasMeant() throws {
        for (name, meant) in [
            ("widht", "width"), ("wdth", "width"), ("w", "width"), ("Quality", "quality"), ("frames", "frame"),
        ] {
            #expect("\(name)") {
                try parse("/mp4,\(name)=1/http://a.test/")
            } throws: {
                ($0 as? Problem)?.detail == "The option “\(name)” is not known (did you mean “\(meant)”?)."
            }
        }
        for name in ["nonsense", "x", String(repeating: "w", count: 300)] {
            #expect("\(name)") {
                try parse("/mp4,\(name)=1/http://a.test/")
            } throws: {
                ($0 as? Problem)?.detail == "The option “\(name.prefix(64))” is not known."
            }
        }
    }

    @Test func aParameterOfASourceThatIsNotEncodedIsExplained() throws {
        let hint = "; a parameter of the source has to be percent-encoded."
        for (target, detail) in [
            ("/mp4?url=http://a.test/a.gif?ex=1&is=2", "The option “is” is not known\(hint)"),
            ("/mp4?url=http://a.test/a.gif?v=1&widht=2", "The option “widht” is not known (did you mean “width”?)\(hint)"),
            ("/auto?width=8&url=http://a.test/a.gif?v=1&is=2", "The option “is” is not known\(hint)"),
            ("/mp4?url=http://a.test/a.gif&is=2", "The option “is” is not known."),
        ] {
            #expect("\(target)") { try parse(target) } throws: { ($0 as? Problem)?.detail == detail }
        }
        #expect(try source("/mp4?url=http://a.test/a.gif?v=1&width=8") == "http://a.test/a.gif?v=1")
    }

    @Test func aQueryHasABoundedNumberOfParameters() throws {
        let query = String(repeating: "a&", count: 257)
        for target in ["/mp4?\(query)", "/oembed?\(query)", "/cache?\(query)"] {
            #expect("\(target.prefix(9))") {
                try parse(target)
            } throws: {
                ($0 as? Problem)?.detail == "The query has more than 256 parameters."
            }
        }
        #expect(try source("/mp4/http://a.test/?\(query)") == "http://a.test/?\(query)")
    }

    @Test func aMountsExtensionMayHaveAnyCase() throws {
        let mounts = ["media": "https://cdn.test/up/"]
        #expect(try source("/media/A.GIF", mounts: mounts) == "https://cdn.test/up/A.GIF")
        #expect(try source("/media/a.Gif", mounts: mounts) == "https://cdn.test/up/a.Gif")
        #expect(try source("/media/a.MP4", mounts: mounts) == "https://cdn.test/up/a.gif")
    }

    @Test func aMountForwardsUnknownParametersOnlyIfConfigured() throws {
        var mount = Mount(origin: try SourceURL("https://cdn.test/up/"))
        let target = "/media/a.mp4?v=123&width=40&q=a%26b&flag"
        #expect {
            try RouteParser(mounts: ["media": mount]).parse(target)
        } throws: {
            let problem = $0 as? Problem
            return problem?.code == "bad_option" && problem?.detail.contains("“v”") ?? false
                && problem?.detail.contains("mounts.media.query: forward") ?? false
        }
        mount.query = .forward
        let asked = try RouteParser(mounts: ["media": mount]).parse(target)
        #expect(asked.source?.canonical == "https://cdn.test/up/a.gif?v=123&q=a%26b&flag")
        guard case .rendition(let rendition, _) = asked.route else { throw Problem.notFound("no rendition") }
        #expect(rendition.canonicalText == "mp4,width=40")
        #expect(asked.address?.target("jpg") == "/media/a.jpg?v=123&q=a%26b&flag")
        let parser = RouteParser(mounts: ["media": mount])
        #expect { try parser.parse("/media/a.mp4?width=x") } throws: { ($0 as? Problem)?.code == "bad_option" }
    }

    @Test func anObjectIsNamedByItsFullID() throws {
        let id = String(repeating: "0a", count: 32)
        guard case .object(let found, "mp4") = try parse("/object/\(id).mp4") else {
            Issue.record("no object")
            return
        }
        #expect(found.description == id)
        for target in ["/object/\(id)", "/object/\(id).exe", "/object/\(id.dropLast()).mp4", "/object/../\(id).mp4"] {
            expectNotFound(target)
        }
    }
}
