import Digests
import Foundation
import Renditions
import TestSupport
import Testing

@testable import Web

@Suite("The home page") struct HomePageTests {
    private func page(_ configure: (inout WebPolicy) -> Void = { _ in }) async throws -> RawHTTPResponse {
        var response: RawHTTPResponse?
        try await WebFixture.run([:]) {
            configure(&$0.policy)
        } _: { web async throws in
            response = try await web.request("GET", "/")
        }
        return try #require(response)
    }

    @Test func itAllowsOnlyItsOwnStyleAndScript() async throws {
        let home = try await page { $0.maxUploadBytes = 3_000_000 }
        let policy = try #require(home["content-security-policy"])
        #expect(home.status == 200 && home["content-type"] == "text/html; charset=utf-8" && home["cache-control"] == "no-cache")
        for (tag, directive) in [("style", "style-src"), ("script", "script-src")] {
            let text = try #require(home.text.firstMatch(of: try Regex("<\(tag)>([\\s\\S]*?)</\(tag)>"))?[1].substring)
            let hash = Data(SHA256.hash(Data(text.utf8))).base64EncodedString()
            #expect(policy.contains("\(directive) 'sha256-\(hash)'"))
        }
        #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
        #expect(home.text.contains("3 MB") && home.text.contains("1.2.3"))
        #expect(home["referrer-policy"] == "no-referrer" && home["x-content-type-options"] == "nosniff")
    }

    @Test func itOffersEveryFormatWithTheOptionsThatApply() async throws {
        let home = try await page()
        for rendition in Rendition.listed {
            let format = rendition.canonicalText
            #expect(home.text.contains("<li data-format=\"\(format)\" data-extension=\"\(rendition.format.rawValue)\""))
            // Without the script, a form has a button for each.
            #expect(home.text.contains("formaction=\"\(format)\""))
        }
        let png = try #require(
            home.text.firstMatch(of: try Regex("data-format=\"png\"[^>]*data-options=\"([^\"]*)\""))?[1].substring)
        #expect(png == "fit frame gravity height undither width zoom")
        #expect(!home.text.contains("{{"))
    }

    @Test func itShowsNoOptionsThatItsVisitorsMayNotHave() async throws {
        #expect(try await page().text.contains(#"<form id="options""#))
        let home = try await page { $0.options = .presets }
        #expect(home.status == 200 && !home.text.contains(#"<form id="options""#) && !home.text.contains("<details"))
        #expect(home.text.contains(#"<form id="upload""#) && !home.text.contains("{{"))
    }

    @Test func itsFormHasEveryOptionOfVideos() async throws {
        let home = try await page()
        for option in RenditionOption.allCases where option.applies(to: .mp4) && ![.preset, .codec, .bframes].contains(option) {
            #expect(home.text.contains(" name=\"\(option.rawValue)\""), "\(option)")
        }
    }

    @Test func itStatesTheLimitOfUploadsInOneForm() async throws {
        let home = try await page { $0.maxUploadBytes = 20 << 20 }
        #expect(home.text.contains(">Up to 20 MB<") && home.text.contains("data-max-size=\"20 MB\""))
    }

    @Test func itHasASampleThatBecomesSmallerAndAnIcon() async throws {
        try await WebFixture.run([:]) { web async throws in
            let home = try await web.request("GET", "/").text
            #expect(home.contains("href=\"sample.gif\"") && home.contains("href=\"openapi.json\""))
            let sample = try await web.request("GET", "/sample.gif")
            #expect(sample.status == 200 && sample["content-type"] == "image/gif")
            let video = try await web.request("POST", "/mp4", body: sample.body)
            #expect(video.status == 200 && video.body.count < sample.body.count / 2)
            let icon = try await web.request("GET", "/favicon.ico")
            #expect(icon.status == 200 && icon["content-type"] == "image/x-icon" && icon.body.starts(with: [0, 0, 1, 0, 1, 0]))
            #expect(try await web.request("GET", "/sample.gif/x").status == 404)
        }
    }

    @Test func itOffersThePictureWithAndWithoutDither() async throws {
        let home = try await page()
        #expect(
            home.text.contains(
                #"<select id="undither" name="undither"><option value="" selected>remove from films</option><option value="1">"#
            ))
        // Addresses name what differs from the service's settings.
        try await WebFixture.run([:]) {
            $0.undithers = false
        } _: { web async throws in
            #expect(
                try await web.request("GET", "/").text.contains(
                    #"<option value="auto">remove from films</option><option value="1">remove everywhere</option><option value="" selected>"#
                ))
        }
    }

    @Test func aServerThatRequiresSignaturesHasNoScript() async throws {
        let home = try await page {
            $0.signingKeys = SigningKeys(["0123456789abcdef0123456789abcdef"])
            $0.requiresSignature = true
        }
        let policy = try #require(home["content-security-policy"])
        #expect(home.status == 200 && !home.text.contains("<script") && !policy.contains("script-src"))
        #expect(!home.text.contains("0123456789abcdef"))
    }

    @Test func itIsSentOnlyOnceToAClientThatHasIt() async throws {
        try await WebFixture.run { web async throws in
            let tag = try #require(try await web.request("GET", "/")["etag"])
            #expect(try await web.request("GET", "/", headers: ["If-None-Match: \(tag)"]).status == 304)
            #expect(try await web.request("HEAD", "/")["etag"] == tag)
            // The tag is a hash of the page: other bytes have another one.
            #expect(try await web.request("HEAD", "/gifreel.js")["etag"] != tag && tag.utf8.count == 34)
        }
    }

    @Test func itCanBeSwitchedOff() async throws {
        let home = try await page { $0.hasHomePage = false }
        #expect(home.status == 404 && home.code == "not_found")
    }
}

@Suite("Templates insert texts as text") struct PageTemplateTests {
    private func template(_ text: String) -> PageTemplate { PageTemplate(Array(text.utf8)) }

    @Test func placeholdersAreFilledByName() {
        let page = template("a{{x}}b{{y}}c{{x}}")
        #expect(page.filled(["x": "<1>"], markup: ["y": "<2>"]) == "a&lt;1&gt;b<2>c&lt;1&gt;")
        // Markup takes precedence, and an unknown placeholder is empty.
        #expect(page.filled(["x": "t", "z": "n"], markup: ["x": "m"]) == "ambcm")
    }

    @Test func valuesAreNotReadAsTemplates() {
        #expect(template("{{x}}").filled(["x": "{{y}}", "y": "1"]) == "{{y}}")
        for text in ["", "plain", "{{open", "close}}", "{ {x} }", "{{"] { #expect(template(text).filled(["x": "1"]) == text) }
    }

    @Test(
        arguments: [
            ("&<>\"'", "&amp;&lt;&gt;&quot;&#39;"), ("é 🎬 a", "é 🎬 a"),
            ("a\u{0}b\u{1b}[31m\n", "a\u{fffd}b\u{fffd}[31m\u{fffd}"),
            ("\u{202e}gnp.exe\u{2066}\u{200f}\u{61c}", "\u{fffd}gnp.exe\u{fffd}\u{200f}\u{61c}"), ("", ""),
            ("&amp;", "&amp;amp;"),
        ])
    func aTextEndsNoAttributeAndBeginsNoElement(_ text: String, _ escaped: String) {
        #expect(HTMLText.escape(text) == escaped)
    }

    @Test func aPolicyNamesNoScriptIfThereIsNone() {
        let without = PagePolicy.value(style: Array("a".utf8), script: nil, ["img-src 'self'"])
        let with = PagePolicy.value(style: Array("a".utf8), script: Array("b".utf8), [])
        #expect(!without.contains("script-src") && with.contains("script-src 'sha256-") && without.hasSuffix("img-src 'self'"))
    }
}
