import Foundation
import TestSupport
import Testing

@Suite("gifreel purge removes sources from a running server", .timeLimit(.minutes(10))) struct PurgeCommandTests {
    private let gif = GIFBuilder.animation()

    private func purge(_ arguments: [String], token: String? = nil) throws -> ChildProcess.Outcome {
        try ChildProcess(
            GifreelProcess.executable, ["purge"] + arguments, environment: token.map { ["GIFREEL_ADMIN_TOKEN": $0] } ?? [:]
        ).finish()
    }

    private func cache(_ arguments: [String]) throws -> ChildProcess.Outcome {
        try ChildProcess(GifreelProcess.executable, ["cache"] + arguments, environment: ["GIFREEL_ADMIN_TOKEN": "secret"])
            .finish()
    }

    @Test func sourcesAreForgottenByURLPrefixAndAltogether() throws {
        let gif = gif
        let origin = try LoopbackOrigin(["/x/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        for path in ["/x/b.gif", "/y/c.gif"] { origin.on(path, .ok(gif)) }
        let server = try GifreelProcess(["admin.token=secret"])
        let address = "http://127.0.0.1:\(server.port)"
        let paths = ["/x/a.gif", "/x/b.gif", "/y/c.gif"]
        for path in paths { #expect(try server.mp4(origin.url(path)).status == 200) }
        func isHit(_ path: String) throws -> Bool { try server.mp4(origin.url(path))["cache-status"] == "gifreel; hit" }

        let one = try purge([origin.url("/x/a.gif?"), "--server", address], token: "secret")
        #expect(one.code == 0 && one.output.contains(": 1 purged, 0 bytes"), "\(one)")
        #expect(try !isHit("/x/a.gif") && isHit("/x/b.gif"))
        // The scheme and the host of a prefix are compared as URLs are.
        let some = try purge(["--prefix", "HTTP://127.0.0.1:\(origin.port)/x/", "--server", address + "/", "--token", "secret"])
        #expect(some.code == 0 && some.output.contains(": 2 purged"), "\(some)")
        #expect(try !isHit("/x/b.gif") && isHit("/y/c.gif"))
        let shown = try cache([origin.url("/y/c.gif"), "--server", address])
        let object = try #require(shown.output.firstMatch(of: /\/object\/[0-9a-f]{64}\.mp4/)).output
        #expect(shown.code == 0 && shown.output.contains("/y/c.gif: 1 stored\n  mp4: "), "\(shown)")
        let numbers = try cache(["--server", address])
        #expect(numbers.code == 0 && numbers.output.contains("renditions   1, "), "\(numbers)")
        let named = try purge(["--object", address + object, "--server", address], token: "secret")
        #expect(named.code == 0 && named.output.hasPrefix("\(object): 2 purged"), "\(named)")
        #expect(try cache([origin.url("/y/c.gif"), "--server", address]).output.contains(": nothing stored"))
        for path in paths.dropFirst() { #expect(try server.mp4(origin.url(path)).status == 200) }
        let all = try purge(["--all", "--server", address], token: "secret")
        #expect(all.code == 0 && all.output.hasPrefix("everything: 2 purged"), "\(all)")
        #expect(server.storedObjects().isEmpty)
    }

    @Test func severalSourcesAreForgottenAtOnce() throws {
        let gif = gif
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .ok(gif + [0]) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["admin.token=secret"])
        let urls = ["/a.gif", "/b.gif"].map { origin.url($0) }
        for url in urls { #expect(try server.mp4(url).status == 200) }
        let outcome = try purge(urls + ["--server", "http://127.0.0.1:\(server.port)"], token: "secret")
        #expect(outcome.code == 0 && outcome.output.matches(of: /: 1 purged, \d+ bytes/).count == 2, "\(outcome)")
        #expect(server.storedObjects().isEmpty)
    }

    @Test func hooksAreCalledAfterPurgesOfEveryScope() async throws {
        let origin = try LoopbackOrigin(["/purged": { _ in .ok([]) }])
        defer { origin.stop() }
        let server = try GifreelProcess([
            "admin.token=secret", "purge.hooks.cdn.url=\(origin.url("/purged"))", "purge.hooks.cdn.body={\"scope\":{scope}}",
        ])
        let object = "/object/" + String(repeating: "0", count: 64) + ".mp4"
        let purges = [
            ("DELETE", "/cache?url=http://a.test/a.gif", "url"), ("DELETE", "/cache?prefix=http://a.test/b/", "prefix"),
            ("DELETE", "/cache?host=a.test", "host"), ("PURGE", object, "object"), ("DELETE", "/cache?all=true", "all"),
        ]
        for (method, target, _) in purges {
            let answer = try server.request(method, target, headers: ["Authorization: Bearer secret"])
            #expect(answer.status == 200, "\(target): \(answer)")
        }
        try await waitUntil("the hook's calls") { origin.count("/purged") == purges.count }
        let scopes = origin.requests.map { String(decoding: $0.body, as: UTF8.self) }
        for (_, _, scope) in purges { #expect(scopes.contains { $0.contains("\"scope\":\"\(scope)\"") }, "\(scopes)") }
    }

    @Test func hostsAndMountsAreForgottenAndTheirNeighboursStay() throws {
        let gif = gif
        let origin = try LoopbackOrigin(["/m/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        origin.on("/b.gif", .ok(gif + [1]))
        origin.on("/c.gif", .ok(gif + [2]))
        let server = try GifreelProcess(["admin.token=secret", "mounts.m.origin=\(origin.url("/m/"))"])
        let address = "http://127.0.0.1:\(server.port)"
        let local = "http://localhost:\(origin.port)/c.gif"
        func fill() throws {
            #expect(try server.request("GET", "/m/a.mp4").status == 200)
            for url in [origin.url("/b.gif"), local] { #expect(try server.mp4(url).status == 200) }
        }
        try fill()
        let mount = try purge(["--mount", "m", "--server", address], token: "secret")
        #expect(mount.code == 0 && mount.output.hasPrefix("the mount m: 1 purged, "), "\(mount)")
        try fill()
        let host = try purge(["--host", "127.0.0.1", "--mount", "m", "--json", "--server", address], token: "secret")
        let lines = host.output.split(separator: "\n")
        #expect(host.code == 0 && lines.count == 2 && lines.allSatisfy { $0.hasPrefix("{") }, "\(host)")
        #expect(lines.first?.contains("\"purged\":2") == true && lines.last?.contains("\"purged\":0") == true, "\(host)")
        #expect(try server.mp4(local)["cache-status"] == "gifreel; hit")
        try fill()
        let both = try purge(["--host", "LOCALHOST", "--host", "127.0.0.1", "--server", address], token: "secret")
        #expect(both.code == 0 && both.output.contains("127.0.0.1: 2 purged") && server.storedObjects().isEmpty, "\(both)")
        for (arguments, message) in [
            (["--host", "127.0.0.1:80"], "host must be the name"), (["--host", "a/b"], "host must be the name"),
            (["--mount", "n"], "There is no mount “n”."), (["--host", "a b"], "bad_source_url"),
        ] {
            let outcome = try purge(arguments + ["--server", address], token: "secret")
            #expect(outcome.code == 1 && outcome.log.contains(message), "\(outcome)")
        }
    }

    @Test func theTokenIsReadFromAFile() throws {
        let folder = try ScratchDirectory()
        let file = try folder.write("token", "secret\n")
        let server = try GifreelProcess(environment: ["GIFREEL_ADMIN_TOKEN_FILE": file])
        let arguments = ["purge", "--all", "--server", "http://127.0.0.1:\(server.port)"]
        let outcome = try ChildProcess(
            GifreelProcess.executable, arguments, environment: ["GIFREEL_ADMIN_TOKEN_FILE": file]
        ).finish()
        #expect(outcome.code == 0 && outcome.output.hasPrefix("everything: 0 purged"), "\(outcome)")
        let missing = try ChildProcess(
            GifreelProcess.executable, arguments, environment: ["GIFREEL_ADMIN_TOKEN_FILE": folder.path("none")]
        ).finish()
        #expect(missing.code == 1 && missing.log.contains("none of admin.token cannot be read: No such file"), "\(missing)")
    }

    @Test func aServerIsReachedThroughItsSocket() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("purge-\(UUID().uuidString.prefix(8))").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let server = try GifreelProcess(["admin.token=secret", "server.unix_path=\(path)"])
        let outcome = try purge(["--all", "--server", "unix:\(path)"], token: "secret")
        #expect(outcome.code == 0 && outcome.output.hasPrefix("everything: 0 purged"), "\(outcome)")
        withExtendedLifetime(server) {}
    }

    @Test func purgeErrorsNameTheirCause() throws {
        let server = try GifreelProcess(["admin.token=secret"])
        let address = "http://127.0.0.1:\(server.port)"
        let wrong = try purge(["--all", "--server", address], token: "other")
        #expect(wrong.code == 1 && wrong.log.contains("unauthorized"))
        let bad = try purge(["nonsense", "--server", address], token: "secret")
        #expect(bad.code == 1 && bad.log.contains("nonsense: bad_source_url"))
        let nobody = try purge(["--all", "--server", "http://127.0.0.1:1"], token: "secret")
        #expect(nobody.code == 1 && nobody.log.contains("http://127.0.0.1:1: unreachable"))
        for arguments in [[], ["--all", "http://a.test/"], ["--prefix", ""], ["--object", "/object/x.mp4"]] {
            let usage = try purge(arguments)
            #expect(usage.code == 64 && usage.log.contains("Usage"))
        }
        let off = try GifreelProcess()
        let refused = try purge(["--all", "--server", "http://127.0.0.1:\(off.port)"], token: "secret")
        #expect(refused.code == 1 && refused.log.contains("admin.token"))
    }
}
