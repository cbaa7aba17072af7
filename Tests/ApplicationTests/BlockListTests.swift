import Foundation
import Glibc
import TestSupport
import Testing

@Suite("gifreel block and the setting block.list", .timeLimit(.minutes(10)))
struct BlockListTests {
    private let directory: ScratchDirectory
    private let gif = GIFBuilder.noise(frames: 3, width: 64, height: 48)

    init() throws {
        directory = try ScratchDirectory()
        try Data(gif).write(to: URL(fileURLWithPath: directory.path("cat.gif")))
    }

    private func block(_ arguments: String...) throws -> (code: Int32, output: String, log: String) {
        let outcome = try ChildProcess(GifreelProcess.executable, ["block"] + arguments).finish()
        return (outcome.code, outcome.output, outcome.log)
    }

    @Test func linesOfAFileAreThoseOfAURL() throws {
        let gif = gif
        let origin = try LoopbackOrigin(["/cat.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let file = try block("--label", "case 17", directory.path("cat.gif"))
        let lines = file.output.split(separator: "\n").map(String.init)
        #expect(file.code == 0 && lines.count == 4 && lines[0] == "sha256:\(sha256(gif)) case 17")
        #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("pdq:") && $0.hasSuffix(" case 17") })
        let url = try block(
            "--label", "case 17", "--set", "sources.allow_private=127.0.0.1", "--set", "sources.ports=1-65535",
            origin.url("/cat.gif"))
        #expect(url.code == 0 && url.output == file.output, "\(url.log)")
    }

    @Test func whatHasTooLittleDetailIsAComment() throws {
        var builder = GIFBuilder(width: 40, height: 40)
        builder.add(color: 3)
        try Data(builder.finish()).write(to: URL(fileURLWithPath: directory.path("plain.gif")))
        let plain = try block("--label", "x", directory.path("plain.gif"))
        #expect(plain.output.hasSuffix("# frame 0 has too little detail: quality 0"))
    }

    @Test func aSourceThatFailsIsNamed() throws {
        let failed = try block("--label", "x", directory.path("none.gif"), directory.path("cat.gif"))
        #expect(failed.code == 1 && failed.output.contains("sha256:") && failed.log.contains("none.gif: file_failed:"))
        #expect(try block().code == 64)
        #expect(try block("--label", "a\nb", directory.path("cat.gif")).code == 64)
        // The rules of sources apply.
        let refused = try block("--label", "x", "http://127.0.0.1:1/a.gif")
        #expect(refused.code == 1 && refused.log.contains("source_not_allowed"))
    }

    @Test func aReloadReadsTheListAgainAndKeepsTheOldOneIfItIsWrong() throws {
        let list = directory.path("block.list")
        try directory.write("block.list", "")
        let server = try GifreelProcess(["block.list=\(list)"])
        #expect(try server.request("POST", "/mp4", body: gif).status == 200)
        let lines = try block("--label", "case 17", directory.path("cat.gif")).output
        try directory.write("block.list", lines)
        kill(server.identifier, SIGHUP)
        try server.waitForLog("settings read again")
        // Its fingerprints are computed by one job and its video made by another.
        #expect(try server.request("POST", "/mp4", body: GIFBuilder.noise(frames: 2, width: 50, height: 40)).status == 200)
        // Another format: what is stored is answered until it is purged.
        #expect(try server.request("POST", "/jpg", body: gif).status == 451)
        #expect(try server.request("POST", "/mp4", body: gif).status == 200)
        try directory.write("block.list", lines + "\nsha256:12 wrong\n")
        kill(server.identifier, SIGHUP)
        try server.waitForLog("is not a block list: line 5 does not begin with")
        #expect(try server.request("POST", "/jpg", body: gif).status == 451)
    }

    /// The first source is stored before its pictures are on the list, and has no fingerprints if the list had no pictures then.
    @Test func whatIsStoredOfSourcesOnTheListIsFoundAndPurged() throws {
        let (gif, other) = (gif, GIFBuilder.noise(frames: 2, width: 50, height: 40))
        let origin = try LoopbackOrigin(["/cat.gif": { _ in .ok(gif) }, "/dog.gif": { _ in .ok(other) }])
        defer { origin.stop() }
        let list = directory.path("block.list")
        try directory.write("block.list", "pdq:\(String(repeating: "0f", count: 32)) another\n")
        let server = try GifreelProcess([
            "block.list=\(list)", "admin.token=secret-of-the-test", "sources.allow_private=127.0.0.1", "sources.ports=1-65535",
            "mounts.disk.origin=file://\(directory.path)",
        ])
        for name in ["/cat.gif", "/dog.gif"] { #expect(try server.request("GET", "/mp4/" + origin.url(name)).status == 200) }
        #expect(try server.request("GET", "/disk/cat.mp4").status == 200)
        let apply = ["--apply", "--server", "http://127.0.0.1:\(server.port)", "--token", "secret-of-the-test"]
        func applied() throws -> (code: Int32, output: String, log: String) {
            let outcome = try ChildProcess(GifreelProcess.executable, ["block"] + apply).finish()
            return (outcome.code, outcome.output, outcome.log)
        }
        let none = try applied()
        #expect(none.code == 0 && none.output == "3 sources compared, 0 of them without fingerprints", "\(none)")
        try directory.write("block.list", block("--label", "case 17", directory.path("cat.gif")).output)
        kill(server.identifier, SIGHUP)
        try server.waitForLog("settings read again")
        #expect(try server.request("GET", "/mp4/" + origin.url("/cat.gif")).status == 200)
        let some = try applied()
        for url in [origin.url("/cat.gif"), "file://\(directory.path)/cat.gif"] {
            #expect(some.code == 0 && some.output.contains("\(url) (case 17): 2 purged"), "\(some)")
        }
        #expect(try server.request("GET", "/disk/cat.mp4").status == 451)
        #expect(try server.request("GET", "/mp4/" + origin.url("/cat.gif")).status == 451)
        #expect(try server.request("GET", "/mp4/" + origin.url("/dog.gif")).status == 200)
    }

    @Test func aListCannotBeAppliedWithoutOne() throws {
        let server = try GifreelProcess(["admin.token=secret-of-the-test"])
        let refused = try block("--apply", "--server", "http://127.0.0.1:\(server.port)", "--token", "secret-of-the-test")
        #expect(refused.code == 1 && refused.log.contains("The setting block.list is not set."))
        #expect(try block("--apply", directory.path("cat.gif")).code == 64)
    }

    @Test func aServerDoesNotStartWithAWrongList() throws {
        try directory.write("block.list", "something\n")
        let outcome = try ChildProcess(
            GifreelProcess.executable, ["serve", "--check", "--set", "block.list=\(directory.path("block.list"))"]
        ).finish()
        #expect(outcome.code == 1 && outcome.log.contains("line 1 has no label after the hash"))
        let missing = try ChildProcess(GifreelProcess.executable, ["serve", "--check", "--set", "block.list=/nowhere"]).finish()
        #expect(missing.code == 1 && missing.log.contains("block.list: /nowhere cannot be read"))
    }
}
