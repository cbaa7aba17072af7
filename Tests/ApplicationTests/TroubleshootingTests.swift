import Foundation
import TestSupport
import Testing

/// Runs the commands of docs/troubleshooting.md. Each section with a block `console` is a situation here.
@Suite("The outputs in docs/troubleshooting.md are what the commands print", .serialized, .timeLimit(.minutes(10)))
struct TroubleshootingTests {
    /// What a section shows: a server and the requests that it has answered.
    struct Situation: Sendable, CustomTestStringConvertible {
        let heading: String
        var settings: [String] = []
        /// Sources of which the MP4 has been requested.
        var requested: [String] = []

        var testDescription: String { heading }
    }

    /// The names in the document for what is on loopback here: the origin, and a second name of it.
    private static let hosts = (first: "media.example.com", second: "blog.example.com")

    // MARK: The document

    private func blocks(_ heading: String, _ language: String = "console") throws -> [String] {
        try Document("docs/troubleshooting.md").codeBlocks.filter { $0.section == heading && $0.language == language }.map(
            \.text)
    }

    /// The command of a block, which begins with a dollar sign, and its output.
    private func shown(_ heading: String) throws -> (command: String, output: String) {
        let lines = try #require(try blocks(heading).first).split(separator: "\n", omittingEmptySubsequences: false)
        let command = try #require(lines.first)
        try #require(command.hasPrefix("$ "), "\(heading)")
        return (String(command.dropFirst(2)), lines.dropFirst().joined(separator: "\n").trimmingCharacters(in: .newlines))
    }

    /// A text without what differs from run to run: times, sizes, and what follows from the bytes of a rendition.
    private func lasting(_ text: String) -> String {
        text.replacing(#/ *\d+(?= (?:ms of CPU|s\b|bytes|MiB|are free))/#, with: " N")
            .replacing(#/(_ms )[\d.]+/#) { "\($0.1)N" }.replacing(#/below the \d+ /#, with: "below the N ")
            .replacing(#/\/object\/[0-9a-f…]+/#, with: "/object/…")
    }

    /// Runs a command of the document in a folder.
    private func run(_ command: String, in folder: ScratchDirectory) throws -> String {
        let path = GifreelProcess.executable.deletingLastPathComponent().path + ":/usr/bin:/bin"
        let environment = ["GIFREEL_ADMIN_TOKEN": "4f1c9a0be7d258364f1c9a0be7d25836", "PATH": path]
        let outcome = try ChildProcess(
            URL(fileURLWithPath: "/bin/bash"), ["-c", "cd '\(folder.path)' && \(command) 2>&1"], environment: environment
        ).finish()
        return outcome.output
    }

    @Test func everySectionWithAnOutputIsASituation() throws {
        let sections = try Document("docs/troubleshooting.md").codeBlocks.filter { $0.language == "console" }.map(\.section)
        #expect(sections == (Self.explanations + Self.checks).map(\.heading) + Self.costs)
    }

    // MARK: explain

    static let explanations = [
        Situation(heading: "A source without any request"),
        Situation(heading: "A rendition that is stored and fresh", requested: ["/cat.gif"]),
        Situation(
            heading: "A rendition that is stored and stale", settings: ["cache.min_fresh_for=0s"], requested: ["/stale.gif"]),
        Situation(heading: "A host that no rule allows"),
        Situation(heading: "A private address"),
        Situation(heading: "A file that is damaged", requested: ["/half.gif"]),
        Situation(heading: "A file that is too large", settings: ["sources.max_bytes=1KiB"], requested: ["/cat.gif"]),
        Situation(
            heading: "A request without a signature", settings: ["signing.keys=an-example-key-of-at-least-32-bytes"]),
        Situation(heading: "An address below a mount", requested: ["/pics/cat.gif"]),
        Situation(heading: "A source that is gone", requested: ["/gone.gif"]),
        Situation(
            heading: "A disk that is full", settings: ["cache.min_free_bytes=1000TiB"], requested: ["/cat.gif"]),
    ]

    private static let small = GIFBuilder.animation(frames: 12, width: 160, height: 120)

    private static func origin() throws -> LoopbackOrigin {
        let small = small
        let large = [UInt8](try Data(contentsOf: Document.root.appendingPathComponent(".assets/plasma.gif")))
        return try LoopbackOrigin([
            "/cat.gif": { _ in .ok(small) }, "/pics/cat.gif": { _ in .ok(large + [0]) }, "/large.gif": { _ in .ok(large) },
            "/stale.gif": { _ in .ok(small, ["Cache-Control: max-age=0"]) },
            "/half.gif": { _ in .ok(Array(large.prefix(100))) },
        ])
    }

    /// A server that may fetch from the origin under both names.
    private func server(_ origin: LoopbackOrigin, _ settings: [String] = []) throws -> GifreelProcess {
        try GifreelProcess(
            [
                "admin.token=4f1c9a0be7d258364f1c9a0be7d25836", "sources.allow=127.0.0.1,localhost,10.0.0.7",
                "mounts.pics.origin=\(origin.url("/pics/"))", "server.trusted_proxies=127.0.0.1",
            ] + settings)
    }

    /// The output of a command about a server, with the names of the document.
    private func printed(_ command: String, _ server: GifreelProcess, _ origin: LoopbackOrigin) throws -> String {
        let (first, second) = Self.hosts
        let local = command.replacing("https://\(first)", with: origin.url(""))
            .replacing(#/gifreel (explain|top)/#) { "gifreel \($0.1) --server http://127.0.0.1:\(server.port)" }
        return try run(local, in: ScratchDirectory())
            .replacing("http://127.0.0.1:\(origin.port)", with: "https://\(first)")
            .replacing("127.0.0.1:\(origin.port)", with: first).replacing("localhost:\(origin.port)", with: second)
            .replacing("127.0.0.1", with: first).replacing("localhost", with: second)
    }

    @Test(arguments: explanations) func explain(_ situation: Situation) throws {
        let origin = try Self.origin()
        defer { origin.stop() }
        let server = try server(origin, situation.settings)
        for path in situation.requested { _ = try server.mp4(origin.url(path)) }
        let (command, output) = try shown(situation.heading)
        let printed = try printed(command, server, origin)
        #expect(lasting(printed) == lasting(output), "\(printed)")
    }

    // MARK: doctor

    static let checks = [
        "A server that is ready for visitors", "A server for everybody", "A weak token", "A short signing key",
        "No admin token",
        "A proxy that is not listed", "No public address", "Few file descriptors", "A full disk", "An old unit of systemd",
        "An old site of nginx", "A mistake in the settings",
    ].map { Situation(heading: $0) }

    /// The settings, the unit and the site of the document, with a directory for the cache of this machine.
    private func machine() throws -> ScratchDirectory {
        let folder = try ScratchDirectory()
        try FileManager.default.createDirectory(atPath: folder.path("cache"), withIntermediateDirectories: true)
        let settings = try #require(try blocks("gifreel doctor", "yaml").first)
            .replacing("/var/cache/gifreel", with: folder.path("cache")).replacing(/\d+GiB/, with: "1MiB")
        try folder.write("gifreel.yaml", settings)
        let (unit, site) = try (Document("config/systemd/gifreel.service"), Document("config/nginx/gifreel.conf"))
        try folder.write("gifreel.service", unit.text)
        try folder.write("gifreel.conf", site.text)
        try folder.write("old.service", unit.text.replacing("LimitNOFILE=65536\n", with: ""))
        try folder.write("old.conf", site.text.replacing("merge_slashes off;", with: ""))
        return folder
    }

    /// The document shows the lines of the situation. The others depend on the machine.
    @Test(arguments: checks) func doctor(_ situation: Situation) throws {
        let folder = try machine()
        let (command, output) = try shown(situation.heading)
        let printed = try run(command, in: folder).replacing(folder.path("cache"), with: "/var/cache/gifreel")
        #expect(("\n" + lasting(printed) + "\n").contains("\n" + lasting(output) + "\n"), "\(printed)")
    }

    // MARK: top

    static let costs = [
        "The host whose sources cost most", "The client that costs most", "The source that costs most",
        "The mount that costs most", "The host whose responses are largest", "The source whose responses are largest",
        "The mount whose responses are largest", "The client that causes most conversions", "The mount with most conversions",
        "The client that is refused most", "The host that is refused most", "Nothing has cost anything",
    ]

    @Test func top() throws {
        let origin = try Self.origin()
        defer { origin.stop() }
        let server = try server(origin)
        let nothing = try shown("Nothing has cost anything")
        #expect(try printed(nothing.command, server, origin) == nothing.output)
        let (media, blog) = (origin.url(""), origin.url("", host: "localhost"))
        for (client, target) in [
            ("203.0.113.7", "/mp4/\(media)/large.gif"), ("203.0.113.7", "/webm/\(media)/large.gif"),
            ("203.0.113.7", "/mp4,width=120/\(media)/large.gif"), ("198.51.100.24", "/mp4/\(blog)/cat.gif"),
            ("198.51.100.24", "/pics/cat.mp4"), ("192.0.2.80", "/mp4/https://elsewhere.example/a.gif"),
            ("192.0.2.80", "/mp4/https://elsewhere.example/b.gif"), ("192.0.2.80", "/mp4/https://another.example/a.gif"),
            ("198.51.100.24", "/cache"),
        ] {
            _ = try server.request("GET", target, headers: ["X-Forwarded-For: \(client)"])
        }
        for heading in Self.costs.dropLast() {
            let (command, output) = try shown(heading)
            var printed = ""
            // The server counts a request after its response.
            let isSame: Void? = try? blockUntil("the output") {
                printed = try self.printed(command, server, origin)
                return lasting(printed) == lasting(output)
            }
            #expect(isSame != nil, "\(heading): \(printed)")
        }
    }
}
