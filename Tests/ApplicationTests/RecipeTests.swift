import Foundation
import Glibc
import TestSupport
import Testing

@Suite(
    "The recipes of the documentation work as they are written", .timeLimit(.minutes(10)),
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/curl")))
struct RecipeTests {
    private let directory: ScratchDirectory
    private let origin: LoopbackOrigin
    private let server: GifreelProcess
    private let gif = GIFBuilder.animation(frames: 24, width: 160, height: 120)

    init() throws {
        directory = try ScratchDirectory()
        let uploads = directory.path("uploads")
        try FileManager.default.createDirectory(atPath: uploads + "/original", withIntermediateDirectories: true)
        for file in ["cat.gif", "uploads/original/cat.gif"] {
            try Data(gif).write(to: URL(fileURLWithPath: directory.path(file)))
        }
        let gif = gif
        origin = try LoopbackOrigin(["/cat.gif": { _ in .ok(gif) }])
        try directory.write("block.list", "")
        server = try GifreelProcess([
            "mounts.uploads.origin=file://\(uploads)", "mounts.uploads.negotiate=true",
            "block.list=\(directory.path("block.list"))", "admin.token=secret",
        ])
    }

    /// The commands of a recipe.
    private static func commands(_ heading: String) throws -> [String] {
        try Document("docs/recipes.md").codeBlocks.filter { $0.section == heading && $0.language == "sh" }.map(\.text)
    }

    private func follow(_ heading: String) throws {
        let commands = try Self.commands(heading)
        #expect(!commands.isEmpty)
        for text in commands { try run(text) }
    }

    private func run(_ text: String) throws {
        let program = GifreelProcess.executable.deletingLastPathComponent().path
        let environment = [
            "SERVER": "http://127.0.0.1:\(server.port)", "GIF": origin.url("/cat.gif"), "PATH": "\(program):/usr/bin:/bin",
            "GIFREEL_ADMIN_TOKEN": "secret", "XDG_STATE_HOME": directory.path,
        ]
        let script = "set -euo pipefail\ncd '\(directory.path)'\n\(text)"
        let outcome = try ChildProcess(URL(fileURLWithPath: "/bin/bash"), ["-c", script], environment: environment).finish()
        #expect(outcome.code == 0, "\(text): \(outcome.log)")
    }

    private func file(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(fileURLWithPath: directory.path(name))))
    }

    private func facts() throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(try file("facts.json"))) as? [String: Any])
    }

    @Test func anAttachmentHasAVideoAPreviewAndFacts() throws {
        defer { origin.stop() }
        try follow("Attachments of a social network")
        let video = try MP4Boxes(file("attachment.mp4"))
        #expect(video.durations.count == 24 && video.width == 160)
        #expect(try file("preview.jpg").starts(with: [0xff, 0xd8, 0xff]))
        let source = try #require(try facts()["source"] as? [String: Any])
        #expect(source["width"] as? Int == 160 && source["frames"] as? Int == 24)
    }

    @Test func anUploadIsRefusedUntilAnAppeal() throws {
        defer { origin.stop() }
        let commands = try Self.commands("Moderation")
        #expect(commands.count == 2)
        func status(_ format: String) throws -> Int {
            try server.request("POST", "/\(format)", body: gif).status
        }
        try run(commands[0])
        kill(server.identifier, SIGHUP)
        try server.waitForLog("settings read again")
        #expect(try status("jpg") == 451)
        try run(commands[1])
        #expect(try !directory.text("block.list").contains("case 17"))
        kill(server.identifier, SIGHUP)
        try blockUntil("the second reload") { server.log.components(separatedBy: "settings read again").count == 3 }
        #expect(try status("jpg") == 200)
    }

    @Test func anUploadIsWhatEachBrowserShows() throws {
        defer { origin.stop() }
        try follow("Uploads of a forum")
        #expect(try file("cat.avif").dropFirst(4).starts(with: Array("ftypavis".utf8)))
        #expect(try file("same.gif") == gif)
    }

    @Test func aPostHasWhatEachBrowserShows() throws {
        defer { origin.stop() }
        try directory.write("post.html", "<p><img src=\"a/cat.gif\" alt=\"A cat\"></p>")
        try follow("Posts of a blog")
        let page = try directory.text("published.html")
        #expect(page.contains("<img src=") && page.contains("/auto/https://blog.example/2026/a/cat.gif"))
    }

    /// A name of a file may have characters that mean something else in a URL. One failure would be the exit status 1.
    @Test func theFilesOfAMountArePrewarmedWhateverTheirNames() throws {
        defer { origin.stop() }
        let names = ["a b", "a#b", "a?b", "a%41b", "100%", "a\\b", "a&b=c;d,e\"f", "größe"]
        for name in names { try Data(gif).write(to: URL(fileURLWithPath: directory.path("uploads/\(name).gif"))) }
        let commands = try Document("docs/operations.md").codeBlocks.filter { $0.section == "Prewarming" }.map(\.text)
        let command = try #require(commands.first { $0.hasPrefix("find ") })
        try run(
            command.replacing("/srv/gifs", with: directory.path("uploads")).replacing("http://127.0.0.1:8080", with: "$SERVER"))
        let stored = try server.request("GET", "/uploads/a%23b.mp4")
        #expect(stored["cache-status"]?.hasPrefix("gifreel; hit") == true, "\(stored.status)")
    }

    @Test(.enabled(if: ChildProcess.find("jq") != nil)) func exportsAndLogsBecomeLists() throws {
        defer { origin.stop() }
        try directory.write(
            "export.json",
            #"{"a": ["https:\/\/a.test\/1.gif", null, 1], "b": {"html": "<p title=\"x\"><img src='//a.test/2.gif?x=1&amp;y=2'></p>"},"#
                + #" "c": "![](https://a.test/3.webp \"x\") https://a.test/4.png, (//a.test/5.gif), https://a.test/6.gif.\n/7","#
                + #" "d": {"ghost": "<img src=\"__GHOST_URL__/a/8.gif\">", "strapi": "/uploads/9.gif"}}"#)
        try directory.write(
            "access.log",
            [("1", 200), ("2", 200), ("2", 200), ("3", 404)].map {
                "192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] \"GET /\($0).gif?x HTTP/1.1\" \($1) 9 \"-\" \"-\"\n"
            }.joined())
        try directory.write("inventory.csv", "\"b\",\"a/1+2%2B.gif\",\"9\"\n\"b\",\"a/3.png\",\"9\"\n")
        try directory.write(
            "report.json",
            #"{"results": [{"url": "u", "format": "mp4", "options": {"width": "9"}, "result": "failed"}, {"result": "hit"}]}"#)
        let commands = try Document("docs/operations.md").codeBlocks.filter { $0.section == "Prewarming" }.map(\.text)
        let steps = try #require(commands.first { $0.contains("export.json") }).components(separatedBy: "\n# ")
        let lists = [
            [
                "https://a.test/1.gif", "https://a.test/2.gif?x=1&y=2", "https://a.test/3.webp", "https://a.test/5.gif",
                "https://a.test/6.gif", "https://example.com/a/8.gif", "https://example.com/uploads/9.gif",
            ],
            ["https://example.com/2.gif?x", "https://example.com/1.gif?x"], ["s3://b/a/1%202%2B.gif"],
            [#"{"url":"u","format":"mp4","width":"9"}"#],
        ]
        #expect(steps.count == lists.count)
        for (step, list) in zip(steps, lists) {
            try run("# " + step)
            #expect(try directory.text("list.txt").components(separatedBy: "\n").dropLast() == list[...])
        }
    }

    @Test func aMessageAndAStickerKeepTheirLimits() throws {
        defer { origin.stop() }
        try follow("Messages and stickers of a chat bot")
        #expect(try MP4Boxes(file("message.mp4")).durations.count == 24)
        let sticker = try file("sticker.webp")
        #expect(sticker.starts(with: Array("RIFF".utf8)) && sticker.count <= 500_000)
        // The canvas of VP8X, less one (RFC 9649 section 2.7).
        #expect(sticker[12..<16].elementsEqual("VP8X".utf8) && Array(sticker[24..<30]) == [255, 1, 0, 255, 1, 0])
        let gif = try file("sticker.gif")
        // The logical screen (GIF89a section 18).
        #expect(gif.count <= 512_000 && Array(gif[6..<10]) == [64, 1, 64, 1])
    }

    @Test func theFactsHaveWhatAClientOfTenorReads() throws {
        defer { origin.stop() }
        #expect(try server.mp4(origin.url("/cat.gif")).status == 200)
        try follow("Clients of Tenor's API")
        let renditions = try #require(try facts()["renditions"] as? [String: [String: Any]])
        let video = try #require(renditions["mp4"])
        #expect(video["width"] as? Int == 160 && video["height"] as? Int == 120 && video["duration"] as? Double == 2.4)
        #expect(video["bytes"] as? Int ?? 0 > 0 && (video["type"] as? String)?.hasPrefix("video/mp4; codecs=") == true)
        for name in ["webm", "awebp", "jpg"] { #expect(renditions[name]?["url"] is String, "\(name)") }
    }

    // MARK: Sites

    /// The address of the document on this server and this origin.
    private func local(_ address: some StringProtocol) -> String {
        String(address).replacing("https://gifs.example.com", with: "").replacing("https://example.com", with: origin.url(""))
    }

    private static func blocks(_ heading: String, _ language: String) throws -> [String] {
        try Document("docs/recipes.md").codeBlocks.filter { $0.section == heading && $0.language == language }.map(\.text)
    }

    @Test func theElementsOfASiteShowWhatTheyName() throws {
        defer { origin.stop() }
        let html = try #require(try Self.blocks("Sites and frameworks", "html").first)
        var types: [String] = []
        for match in html.matches(of: /(?:src|poster)="([^"]+)"/) {
            let response = try server.request("GET", local(match.1), headers: ["Accept: image/avif,image/webp,*/*"])
            #expect(response.status == 200, "\(match.1)")
            types.append(response["content-type"].map { String($0.prefix { $0 != ";" }) } ?? "")
        }
        // The first visitor of an image gets the source.
        #expect(types == ["video/mp4", "image/jpeg", "image/gif"])
    }

    @Test(.enabled(if: ChildProcess.find("node") != nil)) func aLoaderForNextWritesTheAddressForAWidth() throws {
        defer { origin.stop() }
        let module = try directory.write("gifs.mjs", try #require(try Self.blocks("Sites and frameworks", "javascript").first))
        let address = try javaScript(
            "import gifs from '\(module)'; console.log(gifs({ src: 'https://example.com/cat.gif', width: 640 }))")
        #expect(address == "https://gifs.example.com/auto,width=640/https://example.com/cat.gif")
        #expect(try server.request("GET", local(address)).status == 200)
    }

    @Test(.enabled(if: ChildProcess.find("node") != nil)) func aProviderForLibrariesReadsTheAddressesThatItWrites() throws {
        defer { origin.stop() }
        let module = try directory.write(
            "provider.mjs", try #require(try Self.blocks("Libraries for images", "javascript").first))
        let lines = try javaScript(
            """
            import { extract, generate, transform } from '\(module)';
            const first = transform("https://example.com/cat.gif", { width: 80, height: 40, format: "webp" });
            console.log(first);
            console.log(transform(first, { width: 120, quality: 50 }));
            console.log(generate("https://example.com/a cat.gif", { width: undefined }));
            console.log(JSON.stringify(extract(first)), extract("https://example.com/cat.gif"), extract("https://gifs.example.com/"));
            """
        ).split(separator: "\n")
        let source = "https://example.com/cat.gif"
        #expect(
            lines == [
                "https://gifs.example.com/awebp,fit=cover,height=40,width=80/\(source)",
                "https://gifs.example.com/awebp,fit=cover,height=40,quality=50,width=120/\(source)",
                "https://gifs.example.com/auto/https://example.com/a%20cat.gif",
                #"{"src":"\#(source)","operations":{"format":"awebp","fit":"cover","height":"40","width":"80"}} null null"#,
            ])
        for address in lines.prefix(2) { #expect(try server.request("GET", local(address)).status == 200, "\(address)") }
    }

    /// An option of time, such as `fps`, is refused for a poster.
    @Test(.enabled(if: ChildProcess.find("ruby") != nil)) func theHelperForRailsHasAPosterForAVideoWithAnyOption() throws {
        defer { origin.stop() }
        let ruby = try #require(ChildProcess.find("ruby"))
        let helper = try #require(try Self.blocks("Sites and frameworks", "ruby").first)
        let use = """
            class Recorder
              def video(**given) = puts(given[:src], given[:poster])
            end
            def tag = Recorder.new
            include GifHelper
            gif_tag("https://example.com/cat.gif", alt: "A cat", width: 80, fps: 5, loops: 2)
            """
        let clients = Document.root.path + "/config/clients"
        let outcome = try ChildProcess(ruby, ["-I", clients, "-e", helper + use]).finish()
        let addresses = outcome.output.split(separator: "\n")
        #expect(addresses.count == 2, "\(outcome.log)")
        for address in addresses { #expect(try server.request("GET", local(address)).status == 200, "\(address)") }
    }

    /// Hugo's text of an image has entities for quotation marks and apostrophes, which a template escapes once more.
    @Test(.enabled(if: ChildProcess.find("hugo") != nil)) func theHookForHugoWritesTheTextOfAnImageAsItIs() throws {
        defer { origin.stop() }
        let hugo = try #require(ChildProcess.find("hugo"))
        let hook = try #require(try Self.blocks("Sites and frameworks", "html").first { $0.contains(".Destination") })
        try directory.write("site/layouts/_default/_markup/render-image.html", hook)
        try directory.write("site/layouts/index.html", "{{ range .Site.RegularPages }}{{ .Content }}{{ end }}")
        try directory.write("site/config.toml", "baseURL = \"https://example.com/\"\n")
        try directory.write("site/content/a.md", "---\ntitle: A\n---\n![A cat's \"nap\" & more](cat.gif)\n")
        let outcome = try ChildProcess(hugo, ["--quiet", "--source", directory.path("site")]).finish()
        try #require(outcome.code == 0, "\(outcome.log)")
        let page = try directory.text("site/public/index.html")
        let source = "https://gifs.example.com/auto,width=480/https://example.com/cat.gif"
        #expect(page.contains("<img src=\"\(source)\" alt=\"A cat’s “nap” &amp; more\""), "\(page)")
    }

    private func javaScript(_ text: String) throws -> String {
        let node = try #require(ChildProcess.find("node"))
        let outcome = try ChildProcess(node, ["--input-type=module", "-e", text]).finish()
        #expect(outcome.code == 0, "\(outcome.log)")
        return outcome.output
    }

    @Test(.enabled(if: ChildProcess.find("php") != nil)) func thePluginInPHPHasNoMistakeOfSyntax() throws {
        try checkPlugin("php", "-l")
    }

    @Test(.enabled(if: ChildProcess.find("ruby") != nil)) func thePluginInRubyHasNoMistakeOfSyntax() throws {
        try checkPlugin("ruby", "-c")
    }

    private func checkPlugin(_ language: String, _ check: String) throws {
        defer { origin.stop() }
        let file = try directory.write("plugin", try #require(try Self.blocks("Sites and frameworks", language).first))
        let outcome = try ChildProcess(try #require(ChildProcess.find(language)), [check, file]).finish()
        #expect(outcome.code == 0, "\(outcome.output)\(outcome.log)")
    }
}
