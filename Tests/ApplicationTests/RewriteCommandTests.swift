import Foundation
import Glibc
import TestSupport
import Testing

@Suite("gifreel rewrite prints pages with videos that the server has") struct RewriteCommandTests {
    private func rewrite(_ arguments: [String], _ page: String, environment: [String: String] = [:]) throws
        -> ChildProcess.Outcome
    {
        try GifreelCommandLine.run(["rewrite"] + arguments, environment: environment, input: Array(page.utf8))
    }

    /// The values of an attribute in markup.
    private func values(_ name: String, in text: String) -> [String] {
        text.components(separatedBy: " \(name)=\"").dropFirst().map { String($0.prefix { $0 != "\"" }) }
    }

    @Test func theServerAnswersEveryAddressOfARewrittenPage() throws {
        let origin = try LoopbackOrigin([:])
        defer { origin.stop() }
        let gif = GIFBuilder.animation(frames: 3)
        origin.on("/a.gif", .ok(gif))
        let key = String(repeating: "k", count: 32)
        let settings = ["signing.keys=\(key)", "sources.require_signature=true", "mounts.media.origin=\(origin.url("/"))"]
        let server = try GifreelProcess(settings)
        let address = "http://127.0.0.1:\(server.port)"
        let page = "<p><img src=\"\(origin.url("/a.gif"))\" alt=a></p>"
        for mount in [[], ["--set", "mounts.media.origin=\(origin.url("/"))"]] {
            let outcome = try rewrite(
                ["--server", address, "--facts", "--option", "width=20"] + mount, page,
                environment: ["GIFREEL_SIGNING_KEYS": key])
            #expect(
                outcome.code == 0 && outcome.output.hasPrefix("<p><video ") && outcome.output.hasSuffix("</video></p>"),
                "\(outcome)")
            #expect(outcome.output.contains(mount.isEmpty ? "/mp4,width=20,sig=" : "/media/a.mp4?width=20&amp;sig="))
            let addresses = values("src", in: outcome.output) + values("poster", in: outcome.output)
            #expect(addresses.count == 2)
            for url in addresses {
                let target = String(url.dropFirst(address.count)).replacingOccurrences(of: "&amp;", with: "&")
                #expect(try server.request("GET", target).status == 200, "\(target)")
            }
            #expect(values("width", in: outcome.output) == ["20"])
        }
    }

    @Test func aStoredAV1ComesFirstAndVideosStateTheirCodecs() throws {
        let gif = GIFBuilder.animation(frames: 3)
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let page = "<img src=\"\(origin.url("/a.gif"))\">"
        let arguments = ["--server", "http://127.0.0.1:\(server.port)", "--facts"]
        #expect(try values("type", in: rewrite(arguments, page).output) == ["video/mp4"])
        for format in ["mp4", "mp4,codec=av1"] {
            #expect(try server.request("GET", "/\(format)/\(origin.url("/a.gif"))").status == 200)
        }
        let types = try values("type", in: rewrite(arguments, page).output)
        #expect(types.count == 2 && types[0].hasPrefix("video/mp4; codecs=&quot;av01.0."), "\(types)")
        #expect(types.last?.hasPrefix("video/mp4; codecs=&quot;avc1.") == true, "\(types)")
    }

    @Test func aGIFThatTheServerCannotConvertStays() throws {
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Array("no GIF".utf8)) }])
        defer { origin.stop() }
        let server = try GifreelProcess()
        let page = "<img src=\"\(origin.url("/a.gif"))\">"
        let outcome = try rewrite(["--server", "http://127.0.0.1:\(server.port)", "--facts"], page)
        #expect(outcome.code == 0 && outcome.output == page && outcome.log.contains(": 415"), "\(outcome)")
    }

    @Test func aServerThatDoesNotAnswerIsAFailureAndImagesWithoutFactsStay() throws {
        let gif = GIFBuilder.animation(frames: 3)
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
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
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString).html")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(page.utf8).write(to: file)
        #expect(try rewrite(["--server", closed.url(""), "--facts", "--in-place", file.path], "").code == 1)
        #expect(try String(contentsOf: file, encoding: .utf8) == page)
        // Without facts, the server is not asked.
        #expect(try rewrite(["--server", closed.url("")], page).code == 0)
    }

    @Test func animatedPNGsAndWebPsAreReplacedIfTheyAreNamedAndStillOnesStay() throws {
        let origin = try LoopbackOrigin([:])
        defer { origin.stop() }
        var still = APNGBuilder(width: 20, height: 16, plays: nil)
        still.addPicture(APNGBuilder.Frame(width: 20, height: 16, word: 0xff00_00ff))
        origin.on("/still.png", .ok(still.finish()))
        var animated = APNGBuilder(width: 20, height: 16)
        for word: UInt32 in [0xff00_00ff, 0xff00_ff00] { animated.add(APNGBuilder.Frame(width: 20, height: 16, word: word)) }
        origin.on("/a.png", .ok(animated.finish()))
        origin.on("/a.gif", .ok(GIFBuilder.animation(frames: 2)))
        let server = try GifreelProcess(["mounts.media.origin=\(origin.url("/m/"))"])
        let arguments = ["--server", "http://127.0.0.1:\(server.port)"]
        let images = ["/still.png", "/a.png", "/a.gif"].map { "<img src=\"\(origin.url($0))\">" }
        let all = try rewrite(arguments + ["--sources", "gif, apng"], images.joined())
        #expect(all.code == 0 && all.log.isEmpty, "\(all)")
        #expect(all.output.hasPrefix(images[0] + "<video ") && all.output.components(separatedBy: "<video ").count == 3)
        // The size is known of the image that the server was asked for.
        #expect(values("width", in: all.output) == ["20"])
        let plain = try rewrite(arguments, images.joined())
        #expect(plain.code == 0 && plain.output.hasPrefix(images[0] + images[1] + "<video "), "\(plain)")
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
        #expect(try rewrite(["--server", "https://g.test"] + flags, others).output.contains("<video "))
    }

    /// A proxy may send only some paths of a host to Gifreel.
    @Test func imagesOfASiteOnTheSameHostAreReplaced() throws {
        let page = "<img src=https://site.test/uploads/a.gif>"
        let plain = try rewrite(["--server", "https://site.test"], page)
        #expect(plain.output.contains("https://site.test/mp4/https://site.test/uploads/a.gif"), "\(plain)")
        let mounted = try rewrite(
            ["--server", "https://site.test", "--set", "mounts.uploads.origin=https://site.test/uploads/"], page)
        #expect(mounted.output.contains("https://site.test/uploads/a.mp4"), "\(mounted)")
    }

    @Test func filesAreReplacedOnlyIfTheyHaveAGIF() throws {
        let scratch = try ScratchDirectory()
        let with = try scratch.write("a.html", "<img src=https://x.test/a.gif>")
        let without = try scratch.write("b.html", "<p>")
        let before = try FileManager.default.attributesOfItem(atPath: without)[.systemFileNumber] as? Int
        let outcome = try rewrite(["--server", "https://g.test", "--in-place", with, without], "")
        #expect(outcome.code == 0 && outcome.output.isEmpty, "\(outcome)")
        #expect(try scratch.text("a.html").contains("https://g.test/mp4/https://x.test/a.gif"))
        #expect(try scratch.text("b.html") == "<p>")
        #expect(try FileManager.default.attributesOfItem(atPath: without)[.systemFileNumber] as? Int == before)
    }

    @Test func aReplacedFileKeepsItsPermissionsAndItsLinks() throws {
        let scratch = try ScratchDirectory()
        let page = try scratch.write("a.html", "<img src=https://x.test/a.gif>")
        try #require(chmod(page, 0o640) == 0)
        let link = scratch.path("link.html")
        try #require(symlink("a.html", link) == 0)
        let outcome = try rewrite(["--server", "https://g.test", "--in-place", link], "")
        #expect(outcome.code == 0, "\(outcome)")
        #expect(try scratch.text("a.html").contains("<video"))
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
    ]) func errorsNameTheirCause(_ arguments: [String], _ code: Int32, _ sentence: String) throws {
        let outcome = try rewrite(arguments, "<p>")
        #expect(outcome.code == code && outcome.log.contains(sentence), "\(outcome)")
    }
}
