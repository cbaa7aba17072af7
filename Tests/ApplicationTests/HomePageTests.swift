import Digests
import Fetch
import Foundation
import Media
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("The home page", .timeLimit(.minutes(10))) struct HomePageTests {
    /// The text between two marks.
    private func between(_ start: String, _ end: String, in text: String) throws -> String {
        let open = try #require(text.firstRange(of: start))
        let close = try #require(text[open.upperBound...].firstRange(of: end))
        return String(text[open.upperBound..<close.lowerBound])
    }

    @Test func theHomePageLoadsNothingFromOtherOrigins() throws {
        let server = try GifreelProcess()
        let page = try server.request("GET", "/")
        #expect(page.status == 200 && page["content-type"] == "text/html; charset=utf-8")
        let policy = try #require(page["content-security-policy"])
        #expect(policy.hasPrefix("default-src 'none'; ") && !policy.contains("unsafe"))
        for (mark, directive) in [("style", "style-src"), ("script", "script-src")] {
            let text = try between("<\(mark)>", "</\(mark)>", in: page.text)
            let hash = Data(SHA256.hash(Data(text.utf8))).base64EncodedString()
            #expect(policy.contains("\(directive) 'sha256-\(hash)';"))
        }
        // Nothing is loaded from anywhere, and no style or handler stands in an attribute, which the policy would block.
        for word in ["src=\"http", "href=\"http", "@import", "url(", "style=\"", " onclick=", "{{"] {
            #expect(!page.text.contains(word), "\(word)")
        }
        #expect(page.text.contains("data-max-bytes=\"20971520\""))
        let tag = try #require(page["etag"])
        #expect(try server.request("GET", "/", headers: ["If-None-Match: \(tag)"]).status == 304)
        #expect(try server.request("GET", "/?utm=1").status == 200)
        #expect(try server.request("POST", "/", body: [1]).status == 405)
    }

    /// The HTML standard requires valid URLs, in which spaces are encoded.
    @Test func theIconOfTheHomePageHasAValidAddress() throws {
        let page = try GifreelProcess().request("GET", "/").text
        let icon = try between("<link rel=\"icon\" href=\"", "\"", in: page)
        #expect(icon.hasPrefix("data:image/svg+xml,") && !icon.contains { " <>".contains($0) })
    }

    @Test func theHomePageCanBeSwitchedOff() throws {
        let server = try GifreelProcess(["pages.home=false"])
        #expect(try server.request("GET", "/").status == 404)
        #expect(try server.request("GET", "/healthz").status == 200)
    }

    @Test func theFileFieldAcceptsEveryFormatOfSources() throws {
        let page = try GifreelProcess().request("GET", "/").text
        let accepted = try between(" accept=\"", "\"", in: page).split(separator: ",").map(String.init)
        for format in SourceFormat.allCases {
            #expect(accepted.contains(format.mediaType))
            for name in format.fileExtensions { #expect(accepted.contains(".\(name)")) }
        }
    }

    @Test func theFormsWorkWithoutTheScript() throws {
        let gif = GIFBuilder.animation(frames: 3)
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let page = try server.request("GET", "/").text
        #expect(page.contains("<form id=\"link\" action=\"mp4\" method=\"get\">"))
        #expect(page.contains("action=\"mp4\" method=\"post\" enctype=\"multipart/form-data\">"))
        let address = PercentEncoding.encode(origin.url("/a.gif"))
        let answer = try server.request("GET", "/mp4?url=\(address)")
        #expect(answer.status == 200 && answer["content-type"] == "video/mp4")
    }
}
