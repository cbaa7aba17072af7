import Foundation
import Renditions
import TestSupport
import Testing

@testable import Prewarm

@Suite("Lists are loaded from files, and the sitemaps of an index from the network") struct ListLoaderTests {
    private let directory: ScratchDirectory

    init() throws {
        directory = try ScratchDirectory()
    }

    private func loader(
        _ format: PrewarmList.Format? = nil, base: String? = nil, formats: [String] = ["mp4"], options: [String: String] = [:]
    ) -> ListLoader {
        ListLoader(format: format, base: base, formats: formats, options: options)
    }

    private func message(_ body: () throws -> Void) -> String? {
        #expect(throws: PrewarmRunError.self) { try body() }?.description
    }

    @Test func entriesOfAllFilesAreJoinedAndEachRenditionIsLoadedOnce() throws {
        let first = try directory.write("1", "https://a.test/1.gif\nHTTPS://a.test:443/2.gif\n")
        let second = try directory.write("2", "https://a.test/2.gif\nhttps://a.test/3.gif\n")
        let entries = try loader().read([first, second])
        #expect(entries.map(\.url) == ["https://a.test/1.gif", "HTTPS://a.test:443/2.gif", "https://a.test/3.gif"])
    }

    @Test func entriesThatDifferUnderTheSettingsAreAllLoaded() throws {
        let file = try directory.write(
            "list", #"{"url":"https://a.test/1.gif"}"# + "\n" + #"{"url":"https://a.test/1.gif","undither":"auto"}"#)
        func count(_ defaults: RenditionDefaults?) throws -> Int {
            try ListLoader(format: nil, base: nil, formats: ["mp4"], options: [:], defaults: defaults).read([file]).count
        }
        #expect(try count(RenditionDefaults(undithers: false)) == 2)
        #expect(try count(nil) == 2)
        #expect(try count(RenditionDefaults()) == 1)
    }

    @Test func eachFormatAddsAnEntryWithTheOptions() throws {
        let file = try directory.write("list", "https://a.test/1.gif\n")
        let entries = try loader(formats: ["mp4", "jpg", "mp4"], options: ["width": "40"]).read([file])
        #expect(entries.map(\.format) == ["mp4", "jpg"] && entries.allSatisfy { $0.options == ["width": "40"] })
    }

    @Test func entriesOfNDJSONKeepTheirOwnFormatAndOptions() throws {
        let file = try directory.write("list", #"{"url":"https://a.test/1.gif","format":"png","width":20}"#)
        let entries = try loader(formats: ["mp4", "jpg"], options: ["width": "40", "height": "30"]).read([file])
        let options = ["width": "20", "height": "30"]
        #expect(entries == [PrewarmEntry(url: "https://a.test/1.gif", format: "png", options: options)])
    }

    @Test(arguments: [#"{"url":"https://a.test/1.gif"}"#, #"[{"url":"https://a.test/1.gif"}]"#])
    func entriesOfNDJSONWithoutAFormatHaveEachOfThoseGiven(_ text: String) throws {
        let file = try directory.write("list", text)
        let entries = try loader(formats: ["jpg", "webp"], options: ["width": "40"]).read([file])
        #expect(entries.map(\.format) == ["jpg", "webp"] && entries.allSatisfy { $0.options == ["width": "40"] })
    }

    @Test func theSitemapsOfAnIndexAreDownloadedOnceEach() throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        func sitemap(_ names: String...) -> [UInt8] {
            Array("<urlset>\(names.map { "<url><loc>https://a.test/\($0).gif</loc></url>" }.joined())</urlset>".utf8)
        }
        origin.on("/1.xml", .ok(sitemap("a", "b")))
        origin.on("/2.xml", .redirect(to: "/moved.xml"))
        origin.on("/moved.xml", .ok(sitemap("c")))
        // An index may name another one, and itself.
        origin.on(
            "/inner.xml",
            .ok(
                Array(
                    "<sitemapindex><sitemap><loc>\(origin.url("/2.xml"))</loc></sitemap><sitemap><loc>\(origin.url("/inner.xml"))</loc></sitemap></sitemapindex>"
                        .utf8)))
        let names = ["/1.xml", "/inner.xml", "/2.xml"]
        let index = "<sitemapindex>\(names.map { "<sitemap><loc>\(origin.url($0))</loc></sitemap>" }.joined())</sitemapindex>"
        let entries = try loader().read([try directory.write("index", index)])
        #expect(entries.map(\.url) == ["a", "b", "c"].map { "https://a.test/\($0).gif" })
        #expect(names.allSatisfy { origin.count($0) == 1 })
    }

    @Test func aSitemapThatCannotBeReadIsNamedWithTheReason() throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        let (missing, unreachable, gzip) = (origin.url("/no.xml"), "http://127.0.0.1:1/a.xml", origin.url("/gzip.xml"))
        origin.on("/gzip.xml", .ok([0x1F, 0x8B, 8, 0]))
        origin.on("/last.xml", .ok(Array("<urlset><url><loc>https://a.test/1.gif</loc></url></urlset>".utf8)))
        // The index may come from an untrusted site.
        let sitemaps = [missing, unreachable, "unix:/run/a.sock", gzip, origin.url("/last.xml")]
        let index = sitemaps.map { "<sitemap><loc>\($0)</loc></sitemap>" }.joined()
        var errors: [String] = []
        let file = try directory.write("index", "<sitemapindex>\(index)</sitemapindex>")
        let entries = try loader().read([file]) { errors.append($0.description) }
        // The others are read nevertheless.
        #expect(entries.map(\.url) == ["https://a.test/1.gif"])
        try #require(errors.count == 4)
        #expect(errors[0] == "The sitemap \(missing) cannot be read: its server answers with status 404.")
        #expect(errors[1].hasPrefix("The sitemap \(unreachable) cannot be read: "))
        #expect(errors[2] == "The sitemap unix:/run/a.sock cannot be read: its address is not a URL.")
        #expect(errors[3] == "\(gzip): The list is incomplete: its gzip data ends early.")
    }

    @Test func listsInGzipAreDecompressed() throws {
        func gzip(_ text: String) throws -> [UInt8] {
            try ChildProcess(URL(fileURLWithPath: "/usr/bin/env"), ["gzip", "-c"], input: Array(text.utf8)).finish().bytes
        }
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/1.xml.gz", .ok(try gzip("<urlset><url><loc>https://a.test/1.gif</loc></url></urlset>")))
        let index = try gzip(
            "<sitemapindex><sitemap><loc>\(origin.url("/1.xml.gz"))</loc></sitemap></sitemapindex>")
        try Data(index).write(to: URL(fileURLWithPath: directory.path("index.xml.gz")))
        let file = directory.path("index.xml.gz")
        #expect(try loader(formats: ["mp4", "avif"]).read([file]).map(\.format) == ["mp4", "avif"])
        #expect(origin.count("/1.xml.gz") == 1)
    }

    @Test func anIndexOfTooManySitemapsIsRefused() throws {
        let names = (0...1000).map { "<sitemap><loc>http://127.0.0.1:1/\($0).xml</loc></sitemap>" }.joined()
        let file = try directory.write("index", "<sitemapindex>\(names)</sitemapindex>")
        #expect(message { _ = try loader().read([file]) } == "The index names more than 1000 sitemaps.")
    }

    @Test func aFileThatIsNoListIsNamed() throws {
        let broken = try directory.write("list", "{\"url\":1}\n")
        #expect(message { _ = try loader().read([broken]) }?.hasPrefix("\(broken): Line 1 is not a JSON object") == true)
        let binary = try directory.write("gif", "GIF89a\u{0}\u{1}")
        #expect(message { _ = try loader().read([binary]) }?.hasPrefix("\(binary): The list is not UTF-8 text") == true)
        let compressed = directory.path("gz")
        #expect(
            message { _ = try loader().read([compressed]) }
                == "The list \(compressed) cannot be read: No such file or directory.")
    }

    @Test func theNameOfAJournalDependsOnTheRenditionsAndTheTarget() {
        let entry = PrewarmEntry(url: "https://a.test/1.gif")
        let spelling = PrewarmEntry(url: "HTTPS://a.test/1.gif", options: ["speed": "1.0"])
        let other = PrewarmEntry(url: "https://a.test/2.gif")
        func name(_ entries: [PrewarmEntry], _ target: String = "t") -> String {
            ListLoader.fingerprint(of: entries, target: target)
        }
        #expect(name([entry]) == name([spelling]) && name([entry]).count == 16)
        #expect(
            Set([name([entry]), name([other]), name([entry, other]), name([other, entry]), name([entry], "u")]).count == 5)
    }
}

@Suite("Delays between attempts grow, with bounds") struct RetryDelayTests {
    @Test func delaysDoubleUpToABoundWithJitter() {
        var backoff = RetryDelays()
        for attempt in 0..<20 {
            let expected = min(Duration.milliseconds(250) * (1 << min(attempt, 10)), .seconds(30))
            let delay = backoff.next(retryAfter: nil)
            #expect(delay >= expected * 0.5 && delay <= expected, "\(attempt): \(delay)")
        }
        #expect(backoff.attempts == 20)
    }

    @Test func retryAfterLengthensADelayUpToFiveMinutes() {
        var backoff = RetryDelays()
        #expect(backoff.next(retryAfter: 7) == .seconds(7))
        #expect(backoff.next(retryAfter: 86_400) == .seconds(300) && backoff.next(retryAfter: .max) == .seconds(300))
        #expect(backoff.next(retryAfter: -5) < .seconds(3) && backoff.next(retryAfter: .min) > .zero)
    }
}
