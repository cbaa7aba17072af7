import Foundation
import Glibc
import TestSupport
import Testing

@Suite("gifreel rewrite prints pages with addresses that the server answers") struct RewriteCommandTests {
    private func rewrite(_ arguments: [String], _ page: String, environment: [String: String] = [:]) throws
        -> ChildProcess.Outcome
    {
        try GifreelCommandLine.run(["rewrite"] + arguments, environment: environment, input: Array(page.utf8))
    }

    /// The values of an attribute in markup.
    private func values(_ name: String, in text: String) -> [String] {
        text.components(separatedBy: " \(name)=\"").dropFirst().map { String($0.prefix { $0 != "\"" }) }
    }

    /// An animation of noise, which other formats make smaller.
    private static let gif = GIFBuilder.animation(frames: 3)

    @Test func theServerAnswersEveryAddressOfARewrittenPage() throws {
        let origin = try LoopbackOrigin([:])
        defer { origin.stop() }
        origin.on("/a.gif", .ok(Self.gif))
        let key = String(repeating: "k", count: 32)
        let settings = ["signing.keys=\(key)", "sources.require_signature=true", "mounts.media.origin=\(origin.url("/"))"]
        let server = try GifreelProcess(settings)
        let address = "http://127.0.0.1:\(server.port)"
        let page = "<body><img alt=a src=\"\(origin.url("/a.gif"))\"></body>"
        for mount in [[], ["--set", "mounts.media.origin=\(origin.url("/"))"]] {
            let outcome = try rewrite(
                ["--server", address, "--option", "width=20"] + mount, page, environment: ["GIFREEL_SIGNING_KEYS": key])
            let start =
                "<body><img alt=a src=\"\(address)\(mount.isEmpty ? "/auto,width=20,sig=" : "/media/a.auto?width=20&amp;sig=")"
            #expect(outcome.code == 0 && outcome.output.hasPrefix(start), "\(outcome)")
            #expect(outcome.output.contains("data-signed=\"\"></script></body>"))
            #expect(outcome.log.contains("1 element negotiates"))
            #expect(outcome.output.contains("data-mount=\"media\" data-origin=\"\(origin.url("/"))\"") == !mount.isEmpty)
            let addresses = values("src", in: outcome.output) + values("data-gifreel-still", in: outcome.output)
            #expect(addresses.count == 3)
            for url in addresses {
                let target = String(url.dropFirst(address.count)).replacingOccurrences(of: "&amp;", with: "&")
                #expect(try server.request("GET", target).status == 200, "\(target)")
            }
        }
    }

    @Test func withFactsStillAndTinyPicturesStay() throws {
        let origin = try LoopbackOrigin([:])
        defer { origin.stop() }
        origin.on("/still.gif", .ok(GIFBuilder.animation(frames: 1)))
        origin.on("/text.gif", .ok(Array("no GIF".utf8)))
        origin.on("/noise.gif", .ok(GIFBuilder.noise(frames: 4, width: 64, height: 64)))
        let server = try GifreelProcess()
        let images = ["still", "text", "noise"].map { "<img src=\"\(origin.url("/\($0).gif"))\">" }
        let arguments = ["--server", "http://127.0.0.1:\(server.port)", "--facts"]
        // In the second run, the server knows the sources.
        for _ in 0..<2 {
            let outcome = try rewrite(arguments, images.joined())
            #expect(
                outcome.code == 0 && outcome.output.hasPrefix(images[0] + images[1] + "<img src=\"http://127.0.0.1:"),
                "\(outcome)")
            #expect(outcome.log.contains("/still.gif stays: it is") && outcome.log.contains("/text.gif stays: "))
            #expect(outcome.log.contains("has no </body>; add <script src="))
        }
    }

    @Test func aServerThatDoesNotAnswerIsAFailureAndImagesWithoutFactsStay() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.gif) }])
        defer { origin.stop() }
        let page = "<p><img src=\"\(origin.url("/a.gif"))\"><img src=\"https://x.test/b.gif\"></p>"
        // A port that nothing listens on, and a site without Gifreel.
        let closed = try LoopbackOrigin([:])
        closed.stop()
        for server in [closed.url(""), origin.url("")] {
            let outcome = try rewrite(["--server", server, "--facts"], page)
            #expect(outcome.code == 1 && outcome.output == page, "\(outcome)")
            #expect(outcome.log.hasSuffix("gifreel: 2 images stay because the server did not answer for them.\n"), "\(outcome)")
        }
        let scratch = try ScratchDirectory()
        let file = try scratch.write("a.html", page)
        #expect(try rewrite(["--server", closed.url(""), "--facts", "--in-place", file], "").code == 1)
        #expect(try scratch.text("a.html") == page)
        // Without facts, the server is not asked.
        #expect(try rewrite(["--server", closed.url("")], page).code == 0)
    }

    @Test func animatedPNGsAndWebPsChangeIfTheyAreNamedAndStillOnesStay() throws {
        let origin = try LoopbackOrigin([:])
        defer { origin.stop() }
        var still = APNGBuilder(width: 20, height: 16, plays: nil)
        still.addPicture(APNGBuilder.Frame(width: 20, height: 16, word: 0xff00_00ff))
        origin.on("/still.png", .ok(still.finish()))
        let server = try GifreelProcess()
        let arguments = ["--server", "http://127.0.0.1:\(server.port)"]
        let images = ["/still.png", "/a.gif"].map { "<img src=\"\(origin.url($0))\">" }
        let all = try rewrite(arguments + ["--sources", "gif, apng"], images.joined())
        #expect(all.code == 0 && all.log.contains("/still.png stays: it is"), "\(all)")
        #expect(all.output.hasPrefix(images[0] + "<img src=\"http://127.0.0.1:\(server.port)/auto/"))
        #expect(try rewrite(arguments, images.joined()).output == all.output)
    }

    @Test func aLinkOfAPageDoesNotReachATerminalAsControlCharacters() throws {
        let outcome = try rewrite(["--server", "https://g.test"], "<img src='http://[&#27;[2J/a.gif'>")
        let line = "gifreel: standard input: http://[\u{FFFD}[2J/a.gif stays: its address is relative; give --base\n"
        #expect(outcome.code == 0 && outcome.log == line, "\(outcome)")
    }

    @Test(arguments: [
        ("<rss><item>&lt;img src=a.gif></item></rss>", "a feed"),
        ("<html amp><amp-img><img src=https://x.test/a.gif>", "an AMP page"),
        ("<!--[if mso]><x><![endif]--><img src=https://x.test/a.gif>", "an email"),
    ]) func otherDocumentsThanPagesStay(_ document: String, _ words: String) throws {
        let outcome = try rewrite(["--server", "https://g.test"], document)
        #expect(
            outcome.code == 0 && outcome.output == document && outcome.log.contains("stays, because it is \(words); --for page")
        )
        let forced = try rewrite(["--server", "https://g.test", "--for", "page"], document)
        #expect(forced.output.contains("https://g.test/auto/") == document.contains("https"))
        #expect(
            try rewrite(["--server", "https://g.test", "--for", "mail"], "<img src=https://x.test/a.gif>").output.hasPrefix(
                "<img src=https:"))
    }

    @Test func whatStaysIsReportedWithItsReasonAndASecondRunChangesNothing() throws {
        let page =
            "<body><img src=a.gif><img src=https://x.test/b.gif><img src=\"https://x.test/c.gif\" data-gifreel=off></body>"
        let outcome = try rewrite(["--server", "https://g.test"], page)
        #expect(outcome.log.contains("a.gif stays: its address is relative; give --base\n"), "\(outcome)")
        #expect(outcome.log.contains("c.gif stays: data-gifreel is off\n"))
        // XML requires a value for every attribute.
        #expect(outcome.output.hasSuffix("<script src=\"https://g.test/gifreel.js\" defer=\"\"></script></body>"))
        #expect(try rewrite(["--server", "https://g.test"], outcome.output).output == outcome.output)
        let without = try rewrite(["--server", "https://g.test", "--no-script"], page)
        #expect(!without.output.contains("<script") && !without.log.contains("</body>"))
    }

    @Test(arguments: [
        "/avif/https://x.test/a.gif", "/jpg,width=20/http://x.test/a.gif", "/mp4/https%3A%2F%2Fx.test%2Fa.gif", "/object/a.gif",
        "/media/a.gif",
    ]) func filesOfTheServerStay(_ target: String) throws {
        let page = "<img src=\"https://g.test\(target)\">"
        let mount = ["--set", "mounts.media.origin=https://x.test/"]
        for server in ["https://g.test", "https://G.test:443/"] {
            let outcome = try rewrite(["--server", server] + mount, page)
            #expect(outcome.code == 0 && outcome.output == page, "\(outcome)")
        }
    }

    @Test(arguments: [
        (["sources.allow=other.test"], "https://x.test/a.gif"),
        (["sources.allow=x.test/b/", "mounts.m.origin=https://x.test/m/"], "https://x.test/a.gif"),
        (["signing.keys.blog.secret=an-example-key", "signing.keys.blog.hosts=other.test"], "https://x.test/a.gif"),
        // The mount has no address for a source with a query, and the source is available through the mount only.
        (["mounts.m.origin=https://x.test/m/", "mounts.m.headers=Authorization: Bearer t"], "https://x.test/m/a.gif?v=1"),
        (["mounts.m.origin=https://x.test/m/", "mounts.m.headers=Authorization: Bearer t"], "https://x.test//m/a.gif"),
    ]) func imagesThatTheSettingsRefuseStay(_ settings: [String], _ image: String) throws {
        let flags = settings.flatMap { ["--set", $0] }
        let page = "<p><img src=\"\(image)\" alt=a></p>"
        let outcome = try rewrite(["--server", "https://g.test"] + flags, page)
        #expect(outcome.code == 0 && outcome.output == page, "\(outcome)")
        // Others are replaced.
        let others = "<img src=https://other.test/a.gif><img src=https://x.test/b/a.gif><img src=https://x.test/m/a.gif>"
        #expect(try rewrite(["--server", "https://g.test"] + flags, others).output.contains("https://g.test/"))
    }

    /// A proxy may send only some paths of a host to Gifreel.
    @Test func imagesOfASiteOnTheSameHostChange() throws {
        let page = "<img src=https://site.test/uploads/a.gif>"
        let plain = try rewrite(["--server", "https://site.test"], page)
        #expect(plain.output.contains("https://site.test/auto/https://site.test/uploads/a.gif"), "\(plain)")
        let mounted = try rewrite(
            ["--server", "https://site.test", "--set", "mounts.uploads.origin=https://site.test/uploads/"], page)
        #expect(mounted.output.contains("https://site.test/uploads/a.auto"), "\(mounted)")
    }

    @Test func theImagesOfAPageHaveAddressesBelowOneMount() throws {
        let settings = ["mounts.a.origin=https://x.test/", "mounts.b.origin=https://y.test/"].flatMap { ["--set", $0] }
        let page = "<body><img src=https://y.test/1.gif><img src=https://x.test/2.gif><img src=https://y.test/3.gif></body>"
        let outcome = try rewrite(["--server", "https://g.test"] + settings, page)
        for address in ["/b/1.auto", "/auto/https://x.test/2.gif", "/b/3.auto"] {
            #expect(outcome.output.contains("src=\"https://g.test\(address)\""), "\(outcome)")
        }
        #expect(outcome.output.contains("data-mount=\"b\" data-origin=\"https://y.test/\""), "\(outcome)")
    }

    @Test func filesAreReplacedOnlyIfTheyHaveAGIF() throws {
        let scratch = try ScratchDirectory()
        let with = try scratch.write("a.html", "<img src=https://x.test/a.gif>")
        let without = try scratch.write("b.html", "<p>")
        let before = try FileManager.default.attributesOfItem(atPath: without)[.systemFileNumber] as? Int
        let outcome = try rewrite(["--server", "https://g.test", "--in-place", with, without], "")
        #expect(outcome.code == 0 && outcome.output.isEmpty, "\(outcome)")
        #expect(try scratch.text("a.html").contains("https://g.test/auto/https://x.test/a.gif"))
        #expect(try scratch.text("b.html") == "<p>")
        #expect(try FileManager.default.attributesOfItem(atPath: without)[.systemFileNumber] as? Int == before)
    }

    @Test func theOtherPagesAreRewrittenIfOneIsMissing() throws {
        let scratch = try ScratchDirectory()
        let page = "<img src=https://x.test/a.gif>"
        let (first, last) = (try scratch.write("a.html", page), try scratch.write("c.html", page))
        let outcome = try rewrite(["--server", "https://g.test", "--in-place", first, scratch.path("b.html"), last], "")
        #expect(outcome.code == 1 && outcome.log.contains("b.html cannot be read: No such file or directory."), "\(outcome)")
        for name in ["a.html", "c.html"] { #expect(try scratch.text(name).contains("https://g.test/auto/")) }
    }

    @Test func aReplacedFileKeepsItsPermissionsAndItsLinks() throws {
        let scratch = try ScratchDirectory()
        let page = try scratch.write("a.html", "<img src=https://x.test/a.gif>")
        try #require(chmod(page, 0o640) == 0)
        let link = scratch.path("link.html")
        try #require(symlink("a.html", link) == 0)
        let outcome = try rewrite(["--server", "https://g.test", "--in-place", link], "")
        #expect(outcome.code == 0, "\(outcome)")
        #expect(try scratch.text("a.html").contains("/auto/"))
        let attributes = try FileManager.default.attributesOfItem(atPath: page)
        #expect(attributes[.posixPermissions] as? Int == 0o640)
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "a.html")
        #expect(scratch.names() == ["a.html", "link.html"])
    }

    @Test(arguments: [
        (["--server", "https://g.test", "/nowhere/a.html"], Int32(1), "cannot be read"),
        ([], 1, "Give --server"),
        (["--server", "https://g.test", "--option", "quality=0"], 1, "quality"),
        (["--server", "https://g.test", "--sources", "gif,bmp"], 64, "--sources names \"bmp\""),
        (["--server", "g.test"], 64, "must be an http or https URL"),
        (["--server", "https://g.test", "--in-place"], 64, "--in-place needs files"),
        (["--server", "https://g.test", "--for", "letter"], 64, "--for"),
    ]) func errorsNameTheirCause(_ arguments: [String], _ code: Int32, _ sentence: String) throws {
        let outcome = try rewrite(arguments, "<p>")
        #expect(outcome.code == code && outcome.log.contains(sentence), "\(outcome)")
    }
}
