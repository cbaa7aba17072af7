import Foundation
import Glibc
import TestSupport
import Testing

extension OperationsTests {
    @Suite("SIGHUP applies changed settings", .timeLimit(.minutes(10))) struct ReloadTests {
        private let directory = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")

        /// A server whose settings stand in a file, which the test may change.
        private func start(_ yaml: String) throws -> (server: GifreelProcess, file: URL) {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let file = directory.appendingPathComponent("settings.yaml")
            try yaml.write(to: file, atomically: true, encoding: .utf8)
            return (try GifreelProcess([], configuration: file.path, directory: directory), file)
        }

        private func reload(_ server: GifreelProcess, until said: String) throws {
            kill(server.identifier, SIGHUP)
            try server.waitForLog(said)
        }

        @Test func allowListsTokensAndLimitsAreReloaded() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .ok(gif + [0]) }])
            defer { origin.stop() }
            let (server, file) = try start("sources:\n  allow: [example.com]\n")
            #expect(try server.mp4(origin.url("/a.gif")).status == 403)
            try "sources:\n  allow: ['*']\nadmin:\n  token: secret\n".write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "changed=\"admin.token, sources.allow\"")
            #expect(try server.mp4(origin.url("/a.gif")).status == 200)
            #expect(try server.request("GET", "/cache", headers: ["Authorization: Bearer secret"]).status == 200)
            try "limits:\n  frames: 2\n".write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "changed=\"admin.token, limits.frames\"")
            #expect(try server.mp4(origin.url("/b.gif")).status == 422)
            #expect(try server.mp4(origin.url("/a.gif"))["cache-status"] == "gifreel; hit")
            #expect(try server.request("GET", "/cache").status == 404)
        }

        @Test func filesOfSecretsAreReadAgain() throws {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let token = directory.appendingPathComponent("token")
            try "first\n".write(to: token, atomically: true, encoding: .utf8)
            let (server, _) = try start("admin:\n  token: {file: \(token.path)}\n")
            func status(_ token: String) throws -> Int {
                try server.request("GET", "/cache", headers: ["Authorization: Bearer \(token)"]).status
            }
            #expect(try status("first") == 200 && status("second") == 401)
            try "second\n".write(to: token, atomically: true, encoding: .utf8)
            try reload(server, until: "changed=admin.token")
            #expect(try status("first") == 401 && status("second") == 200)
        }

        @Test func aVariableThatOverridesTheFileIsInTheLog() throws {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let file = directory.appendingPathComponent("settings.yaml")
            try "limits:\n  frames: 2\n".write(to: file, atomically: true, encoding: .utf8)
            let server = try GifreelProcess(
                configuration: file.path, directory: directory,
                environment: ["GIFREEL_LIMITS_FRAMES": "3", "GIFREEL_LIMITS_SIDE": "100"])
            let message = "an environment variable overrides the settings file"
            try server.waitForLog("\(message) overridden=\"\(file.path), line 2\"")
            #expect(server.log.contains("setting=limits.frames variable=GIFREEL_LIMITS_FRAMES"))
            try "limits:\n  frames: 2\n  side: 50\n".write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "setting=limits.side variable=GIFREEL_LIMITS_SIDE")
            #expect(server.log.matches(of: /setting=limits\.frames/).count == 1)
        }

        @Test func hotHitsFollowMaxAgeAndAllowedOrigin() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let (server, file) = try start("cache:\n  max_age: 100s\n")
            for _ in 0..<3 { _ = try server.mp4(origin.url("/a.gif")) }
            let before = try server.mp4(origin.url("/a.gif"))
            #expect(before["cache-status"] == "gifreel; hit")
            #expect(before.permits(100, ", stale-while-revalidate=604800, stale-if-error=604800"))
            #expect(before["access-control-allow-origin"] == "*")
            try "cache:\n  max_age: 200s\n  stale_for: 1h\nserver:\n  allow_origin: https://a.example\n"
                .write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "changed=\"cache.max_age, server.allow_origin\"")
            for _ in 0..<3 {
                let after = try server.mp4(origin.url("/a.gif"))
                #expect(after["cache-status"] == "gifreel; hit")
                // stale_for needs a restart: the field agrees with the cache, which still goes by the old value.
                #expect(after.permits(200, ", stale-while-revalidate=604800, stale-if-error=604800"))
                #expect(after["access-control-allow-origin"] == "https://a.example")
            }
        }

        @Test func aReloadKeepsRateBuckets() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .ok(gif + [0]) }])
            defer { origin.stop() }
            let limit = "rate_limit:\n  misses_per_minute: 1\n  burst: 1\n"
            let (server, file) = try start(limit)
            #expect(try server.mp4(origin.url("/a.gif")).status == 200)
            #expect(try server.mp4(origin.url("/b.gif")).status == 429)
            try (limit + "admin:\n  token: secret\n").write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "changed=admin.token")
            #expect(try server.mp4(origin.url("/b.gif")).status == 429)
        }

        @Test func aReloadKeepsRememberedFailures() throws {
            let origin = try LoopbackOrigin([:])
            defer { origin.stop() }
            let (server, file) = try start("log:\n  level: info\n")
            #expect(try server.mp4(origin.url("/a.gif")).status == 404)
            try "admin:\n  token: secret\n".write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "changed=admin.token")
            let again = try server.mp4(origin.url("/a.gif"))
            #expect(again.status == 404 && again["cache-status"] == "gifreel; hit; detail=negative")
            #expect(origin.count("/a.gif") == 1)
        }

        @Test func aReloadForgetsTheFailuresByItsLimits() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .redirect(to: "/a.gif") }])
            defer { origin.stop() }
            let (server, file) = try start("limits:\n  frames: 2\nsources:\n  max_redirects: 0\n")
            #expect(try server.mp4(origin.url("/a.gif")).status == 422)
            #expect(try server.mp4(origin.url("/b.gif")).status == 502)
            try "admin:\n  token: secret\n".write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "changed=\"admin.token, limits.frames, sources.max_redirects\"")
            #expect(try server.mp4(origin.url("/a.gif")).status == 200)
            #expect(try server.mp4(origin.url("/b.gif")).status == 200)
        }

        @Test func aReloadKeepsFetchCountersAndConnections() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }, "/b.gif": { _ in .ok(gif + [0]) }])
            defer { origin.stop() }
            let (server, file) = try start("sources:\n  max_redirects: 4\n")
            #expect(try server.mp4(origin.url("/a.gif")).status == 200)
            try "sources:\n  max_redirects: 3\n".write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "changed=sources.max_redirects")
            #expect(try server.mp4(origin.url("/b.gif")).status == 200)
            let metrics = try server.request("GET", "/metrics").text
            #expect(metrics.contains("gifreel_fetch_bytes_total \(gif.count * 2 + 1)\n"))
            #expect(origin.connections == 1)
        }

        @Test func requestsBeforeAndAfterAReloadShareAFlight() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let gate = try LoopbackGate()
            let origin = try LoopbackOrigin([
                "/a.gif": { _ in
                    var answer = LoopbackAnswer.ok(gif)
                    answer.steps.insert(.wait(until: gate), at: 0)
                    return answer
                }
            ])
            defer { origin.stop() }
            let (server, file) = try start("log:\n  level: info\n")
            let answers = try atOnce(3) { index in
                if index == 1 {
                    try blockUntil("the first request is at the origin") { origin.count("/a.gif") == 1 }
                    try "admin:\n  token: secret\n".write(to: file, atomically: true, encoding: .utf8)
                    try reload(server, until: "changed=admin.token")
                } else if index == 2 {
                    // Both requests have looked into the cache; the second one is about to join or has joined.
                    try blockUntil("both requests missed") {
                        try server.request("GET", "/metrics").text.contains("gifreel_cache_misses_total 2\n")
                    }
                    gate.open()
                }
                return try server.mp4(origin.url("/a.gif"))
            }
            #expect(answers.allSatisfy { $0.status == 200 })
            #expect(origin.count("/a.gif") == 1)
        }

        @Test func aReloadThatForbidsASourceRefusesWhatIsCachedOfIt() throws {
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
            defer { origin.stop() }
            let (server, file) = try start("admin:\n  token: secret\n")
            let targets =
                ["mp4", "jpg", "json", "html"].map { "/\($0)/\(origin.url("/a.gif"))" }
                + ["/oembed?url=\(origin.url("/a.gif"))", "/mp4?url=\(origin.url("/a.gif"))"]
            for target in targets + targets { #expect(try server.request("GET", target).status == 200, "\(target)") }
            let object = try #require(try server.request("POST", "/mp4", body: gif)["content-location"])
            try "admin:\n  token: secret\nsources:\n  allow: [example.com]\n".write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "sources.allow")
            for target in targets + targets {
                for method in ["GET", "HEAD"] {
                    let answer = try server.request(method, target)
                    #expect(answer.status == 403, "\(target)")
                    if method == "GET" { #expect(answer.text.contains("source_not_allowed"), "\(target)") }
                }
            }
            // An object is not bound to a source, and what is forbidden can still be purged.
            #expect(try server.request("GET", object).status == 200)
            let purged = try server.request("PURGE", targets[0], headers: ["Authorization: Bearer secret"])
            #expect(purged.text.contains("\"purged\":3"), "\(purged.text)")
        }

        @Test func settingsThatNeedARestartAreLogged() throws {
            let (server, file) = try start("server:\n  idle_timeout: 60s\n")
            try "server:\n  idle_timeout: 61s\ncache:\n  fresh_for: 1h\n".write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "settings=\"cache.fresh_for, server.idle_timeout\"")
            #expect(try server.request("GET", "/healthz").status == 200)
        }

        @Test(arguments: [
            ("cluster:\n  redis: nowhere\n", "cluster.redis: the address must begin with"),
            ("cluster:\n  redis: redis://127.0.0.1:1\n  node: a b\n", "cluster.node"),
            ("store:\n  s3:\n    bucket: A BUCKET\n", "store.s3.bucket"),
            ("tracing:\n  endpoint: nowhere\n", "tracing.endpoint"),
            ("tracing:\n  endpoint: http://127.0.0.1:9/\n  headers: [nothing]\n", "tracing.headers"),
            ("server:\n  unix_path: /no/such/socket\n", "server.unix_path"),
            ("server:\n  unix_path: socket\n  unix_group: no-such-group\n", "server.unix_group"),
        ])
        func settingsWithWhichARestartWouldFailChangeNothing(_ yaml: String, _ cause: String) throws {
            let (server, file) = try start("admin:\n  token: secret\n")
            try ("admin:\n  token: other\n" + yaml).write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "settings not read again")
            #expect(server.log.contains(cause))
            #expect(try server.request("GET", "/cache", headers: ["Authorization: Bearer secret"]).status == 200)
            // A setting that can start waits.
            try "admin:\n  token: other\nserver:\n  threads: 1\n".write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "a restart is needed")
            #expect(try server.request("GET", "/cache", headers: ["Authorization: Bearer other"]).status == 200)
        }

        @Test func anInvalidSettingsFileChangesNothing() throws {
            let (server, file) = try start("admin:\n  token: secret\n")
            try "admin:\n  tocken: other\n".write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "settings not read again")
            #expect(server.log.contains("admin.tocken"))
            #expect(try server.request("GET", "/cache", headers: ["Authorization: Bearer secret"]).status == 200)
        }

        /// As by `sops decrypt secrets.yaml >gifreel.yaml` without the key.
        @Test func aFileThatHasBecomeEmptyChangesNothing() throws {
            let (server, file) = try start("admin:\n  token: secret\n")
            try "# Nothing\n".write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "has no settings any more")
            #expect(try server.request("GET", "/cache", headers: ["Authorization: Bearer secret"]).status == 200)
        }

        /// As in `--config <(sops decrypt gifreel.yaml)`.
        @Test func aPipeIsNotReadAgain() throws {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let pipe = directory.path + "/settings.yaml"
            try #require(mkfifo(pipe, 0o600) == 0)
            Thread.detachNewThread {
                // Waits for the server to open it.
                let (number, text) = (open(pipe, O_WRONLY | O_CLOEXEC), "admin:\n  token: secret\n")
                _ = write(number, text, text.utf8.count)
                close(number)
            }
            let server = try GifreelProcess([], configuration: pipe, directory: directory)
            try reload(server, until: "settings not read again")
            #expect(try server.request("GET", "/cache", headers: ["Authorization: Bearer secret"]).status == 200)
            #expect(server.terminate() == 0)
        }

        @Test func requestsInProgressKeepTheOldSettings() throws {
            let gate = try LoopbackGate()
            let gif = GIFBuilder.animation(frames: 3)
            let origin = try LoopbackOrigin(["/a.gif": { _ in LoopbackAnswer.ok(gif).after(gate) }])
            defer { origin.stop() }
            let (server, file) = try start("sources:\n  allow: ['*']\n")
            var client = try RawHTTPClient(port: server.port)
            try client.send(Array("GET /mp4/\(origin.url("/a.gif")) HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
            try origin.waitForRequests(for: "/a.gif")
            try "sources:\n  allow: [example.com]\n".write(to: file, atomically: true, encoding: .utf8)
            try reload(server, until: "settings read again")
            gate.open()
            #expect(try client.readResponse().status == 200)
            #expect(try server.mp4(origin.url("/b.gif")).status == 403)
        }

        @Test func systemdIsToldWhenTheServerIsReadyAndWhenItStops() throws {
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let path = directory.path + "/notify"
            let number = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
            defer { close(number) }
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
            let bound = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            try #require(bound == 0)
            var limit = timeval(tv_sec: 30, tv_usec: 0)
            setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
            func next() -> String {
                var buffer = [UInt8](repeating: 0, count: 256)
                let count = recv(number, &buffer, buffer.count, 0)
                return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
            }
            let server = try GifreelProcess([], directory: directory, environment: ["NOTIFY_SOCKET": path])
            #expect(next() == "READY=1")
            kill(server.identifier, SIGHUP)
            #expect(next().hasPrefix("RELOADING=1\nMONOTONIC_USEC="))
            #expect(next() == "READY=1")
            #expect(server.terminate() == 0)
            #expect(next() == "STOPPING=1")
            // The watchdog with the longest limit, and that of another process.
            let patient = try GifreelProcess(
                [], directory: directory.appendingPathComponent("patient"),
                environment: ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "\(Int64.max)"])
            #expect([next(), next()].sorted() == ["READY=1", "WATCHDOG=1"])
            #expect(patient.terminate() == 0)
            #expect(next() == "STOPPING=1")
            let other = try GifreelProcess(
                [], directory: directory.appendingPathComponent("other"),
                environment: ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"])
            #expect(next() == "READY=1")
            #expect(other.terminate() == 0)
            #expect(next() == "STOPPING=1")
            let watched = try GifreelProcess(
                [], directory: directory.appendingPathComponent("watched"),
                environment: ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"])
            #expect(next() == "READY=1")
            for _ in 0..<3 { #expect(next() == "WATCHDOG=1") }
            #expect(watched.terminate() == 0)
        }
    }
}
