import Foundation
import TestSupport
import Testing

@Suite("Commands for operators", .timeLimit(.minutes(10))) struct OperatorCommandTests {
    // MARK: explain

    @Test func explainSaysWhyASourceIsNotConverted() throws {
        let gif = GIFBuilder.animation()
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }, "/half.gif": { _ in .ok(Array(gif.prefix(60))) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["admin.token=secret"])
        func explain(_ arguments: String..., slash: String = "") throws -> ChildProcess.Outcome {
            try GifreelCommandLine.run(
                ["explain", "--server", "http://127.0.0.1:\(server.port)\(slash)"] + arguments,
                environment: ["GIFREEL_ADMIN_TOKEN": "secret"])
        }
        let first = try explain(origin.url("/a.gif"))
        #expect(first.code == 0 && first.output.contains("  stored   nothing\n"), "\(first)")
        #expect(first.output.contains("  now      A request has the source fetched and the rendition produced."))
        let tried = try explain("--fetch", origin.url("/a.gif"))
        #expect(tried.code == 0 && tried.output.contains("  tried    gif of \(gif.count) bytes to "), "\(tried)")
        #expect(try server.mp4(origin.url("/a.gif")).status == 200 && server.mp4(origin.url("/half.gif")).status == 422)
        let stored = try explain("/mp4/" + origin.url("/a.gif"))
        #expect(stored.code == 0 && stored.output.contains("  stored   mp4: "), "\(stored)")
        let seconds = #/\d+ s/#
        for slash in ["", "/"] {
            let address = try explain("http://127.0.0.1:\(server.port)/mp4/" + origin.url("/a.gif"), slash: slash)
            #expect(
                address.code == 0
                    && address.output.replacing(seconds, with: "") == stored.output.replacing(seconds, with: ""), "\(address)")
        }
        let failed = try explain(origin.url("/half.gif"))
        #expect(
            failed.code == 1 && failed.output.contains(#/failed   mp4, \d+ s ago, tried again in \d+ s: 422 corrupt_gif: /#),
            "\(failed)")
        let refused = try explain("http://127.0.0.1:1/a.gif", "--json")
        #expect(refused.output.hasPrefix("{\"answer\":\""), "\(refused)")
        #expect(try explain("nonsense").log.contains("bad_source_url"))
        #expect(try explain().code == 64)
    }

    // MARK: doctor

    private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func doctor(_ settings: [String], _ arguments: [String] = []) throws -> ChildProcess.Outcome {
        let folder = try ScratchDirectory()
        let directory = ["cache.dir=\(folder.path("cache"))", "cache.max_bytes=1MiB", "cache.min_free_bytes=1MiB"]
        let outcome = try GifreelCommandLine.run(
            ["doctor"] + (directory + settings).flatMap { ["--set", $0] } + arguments)
        withExtendedLifetime(folder) {}
        return outcome
    }

    private let ready = [
        "sources.allow=example.com", "server.public_url=https://gifs.example.com", "server.trusted_proxies=127.0.0.1",
        "admin.token=4f1c9a0be7d258364f1c9a0be7d25836", "sandbox.require=false",
    ]

    @Test func aServerThatIsReadyForVisitorsPasses() throws {
        let files = ["--unit", "systemd/gifreel.service", "--nginx", "nginx/gifreel.conf"]
            .map { $0.hasPrefix("--") ? $0 : root.path + "/config/" + $0 }
        let outcome = try doctor(ready, files)
        #expect(outcome.code == 0 && !outcome.output.contains("failure "), "\(outcome)")
        for check in ["sources", "secrets", "public_url", "proxies", "disk", "inodes", "unit", "nginx"] {
            let line = try Regex("(?m)^ok +\(check) ")
            #expect(outcome.output.contains(line), "\(check): \(outcome)")
        }
    }

    @Test func whatIsNotReadyIsNamedWithWhatToType() throws {
        for (setting, check, advice) in [
            ("sources.allow=*", "sources", "sources.allow: ["), ("admin.token=abc", "secrets", "openssl rand -hex 32"),
            ("server.trusted_proxies=", "proxies", "server.trusted_proxies: ["),
            ("cache.min_free_bytes=1048576TiB", "disk", "du -xh "),
        ] {
            let outcome = try doctor(ready + [setting])
            #expect(outcome.code == 1, "\(setting) \(outcome)")
            let lines = outcome.output.split(separator: "\n")
            let index = try #require(lines.firstIndex { $0.hasPrefix("failure") && $0.contains(" \(check) ") }, "\(outcome)")
            #expect(lines[index + 1].contains("→") && lines[index + 1].contains(advice), "\(outcome)")
        }
        #expect(try doctor(["server.port=eighty"]).log.contains("server.port (--set) is “eighty”"))
    }

    @Test func theQueueOfTheSharedStoreCountsForTheDisk() throws {
        let queue = ["store.s3.queue_bytes=1TiB", "cache.max_bytes=1048575TiB"]
        let store = ["store.s3.bucket=gifreel", "store.s3.endpoint=http://127.0.0.1:1", "store.s3.path_style=true"]
        let sentence = " MiB, less than cache.max_bytes"
        #expect(try doctor(ready + queue).output.contains(sentence + " and cache.min_free_bytes\n"))
        let outcome = try doctor(ready + queue + store)
        #expect(outcome.output.contains(sentence + ", cache.min_free_bytes and store.s3.queue_bytes\n"), "\(outcome)")
    }

    @Test func aPatternOfEveryHostIsOpenWithAScheme() throws {
        let outcome = try doctor(ready + ["sources.allow=https://*"])
        #expect(outcome.code == 1 && outcome.output.hasPrefix("failure  sources "), "\(outcome)")
        #expect(try doctor(ready + ["sources.allow=https://*.example.com"]).code == 0)
        #expect(try doctor(ready + ["sources.allow="]).output.hasPrefix("ok       sources      sources.allow is empty, "))
    }

    @Test(.enabled(if: SmallDisk.isPossible, "needs the right to mount"))
    func aReadOnlyFileSystemFails() throws {
        let folder = try ScratchDirectory()
        let disk = try #require(SmallDisk(on: folder.path, bytes: 8 << 20))
        defer { disk.unmount() }
        #expect(disk.makeReadOnly())
        let outcome = try doctor(ready + ["cache.dir=\(folder.path("cache"))"])
        #expect(outcome.code == 1, "\(outcome)")
        let finding = #/failure +disk +the file system of .+ is read-only\n +→ see why: dmesg/#
        #expect(outcome.output.contains(finding), "\(outcome)")
    }

    @Test func aFileThatLacksALineOfTheShippedOneIsNamed() throws {
        let folder = try ScratchDirectory()
        for (option, file, line) in [
            ("--unit", "systemd/gifreel.service", "KillMode=mixed"), ("--nginx", "nginx/gifreel.conf", "merge_slashes off;"),
        ] {
            let text = try String(contentsOf: root.appendingPathComponent("config/" + file), encoding: .utf8)
            let copy = try folder.write("copy", text.replacing(line, with: "# " + line))
            let outcome = try doctor(ready, [option, copy])
            #expect(outcome.code == 0 && outcome.output.contains("add: \(line)"), "\(outcome)")
            let json = try doctor(ready, [option, copy, "--json"])
            let findings = try #require(try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [[String: Any]])
            #expect(findings.contains { $0["state"] as? String == "warning" && $0["advice"] as? String == "add: \(line)" })
        }
    }

    @Test func eachMissingLineIsGivenAsTheShippedFileHasIt() throws {
        let folder = try ScratchDirectory()
        let empty = try folder.write("empty", "")
        for (option, file, count) in [("--unit", "systemd/gifreel.service", 8), ("--nginx", "nginx/gifreel.conf", 8)] {
            let shipped = try String(contentsOf: root.appendingPathComponent("config/" + file), encoding: .utf8)
                .split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            let advice = try doctor(ready, [option, empty]).output.matches(of: #/→ add: (.+)/#).map { String($0.1) }
            #expect(advice.count == count && Set(advice).isSubset(of: shipped), "\(advice)")
        }
    }

    // MARK: serve --check --changed

    @Test func onlyChangedSettingsArePrinted() throws {
        let outcome = try GifreelCommandLine.run(["serve", "--check", "--changed", "--set", "cache.max_bytes=1GiB"])
        #expect(outcome.code == 0, "\(outcome)")
        #expect(outcome.output.contains("cache.max_bytes: 1GiB  # --set; default 10GiB"), "\(outcome)")
        #expect(!outcome.output.contains("server.port:"))
        #expect(try GifreelCommandLine.run(["serve", "--changed"]).code == 64)
    }
}
