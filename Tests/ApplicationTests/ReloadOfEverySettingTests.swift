import HTTP
import Fetch
import Foundation
import Glibc
import Logging
import Sandbox
import Settings
import Store
import TestSupport
import Testing

@testable import gifreel

extension OperationsTests {
    /// For each setting in the table: what a reload says is what happens.
    @Suite("Each setting takes effect on reload, or is named as needing a restart", .timeLimit(.minutes(10)))
    struct ReloadOfEverySettingTests {
        /// A server in this process whose settings a test changes one by one.
        fileprivate final class Server {
            let origin: LoopbackOrigin
            let base: Settings
            let port: Int
            private let service: GifreelService
            private let zygote: Zygote
            private let directory: URL
            /// What each source URL has in its path, so that each observation causes misses of its own.
            private var sources = 0

            init() throws {
                let gif = GIFBuilder.animation(frames: 3, width: 40, height: 30)
                origin = try LoopbackOrigin([
                    "/a.gif": { _ in .ok(gif, ["Cache-Control: max-age=7200"]) },
                    "/m/a.gif": { _ in .ok(gif, ["Cache-Control: max-age=7200"]) },
                    "/r.gif": { _ in .redirect(to: "/a.gif") },
                ])
                directory = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")
                var settings = Settings()
                settings.http.port = 0
                settings.cache.directory = directory.path
                settings.cache.minFreeBytes = 0
                settings.transcode.workers = 2
                settings.fetch.allowPrivate = [try #require(AddressException("127.0.0.1"))]
                settings.fetch.ports = PortSet([1...65_535])
                settings.mounts["m"] = Settings.Mount()
                settings.mounts["m"]?.origin = origin.url("/m/")
                base = settings
                zygote = try Zygote.spawn(executable: GifreelProcess.executable.path)
                service = try GifreelService(
                    configuration: ServiceConfiguration(settings), zygote: zygote, logger: Logger(label: "test"))
                try service.start()
                port = try #require(service.port)
                #expect(try get("/mp4/" + origin.url("/a.gif")).status == 200)
                #expect(try get("/m/a.mp4").status == 200)
            }

            func stop() async {
                await service.stop()
                zygote.stop()
                origin.stop()
                try? FileManager.default.removeItem(at: directory)
            }

            func apply(_ settings: Settings) throws {
                try service.reload(ServiceConfiguration(settings), logger: Logger(label: "test"))
            }

            func request(
                _ method: String, _ target: String, headers: [String] = [], body: [UInt8] = []
            ) throws -> RawHTTPResponse {
                var client = try RawHTTPClient(port: port)
                return try client.request(method, target, headers: headers, body: body)
            }

            func get(_ target: String, headers: [String] = []) throws -> RawHTTPResponse {
                try request("GET", target, headers: headers)
            }

            /// A source that was not requested before.
            func freshSource(_ path: String = "/a.gif") -> String {
                sources += 1
                return origin.url(path) + "?\(sources)"
            }
        }

        /// A list with the source.
        private static let blockList: String = {
            let path = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-block.list").path
            let gif = GIFBuilder.animation(frames: 3, width: 40, height: 30)
            try? "sha256:\(sha256(gif)) test\n".write(toFile: path, atomically: true, encoding: .utf8)
            return path
        }()

        /// Another value for each setting whose type does not give one.
        private static let samples: [String: [String]] = [
            "server.host": ["::1"], "server.port_file": ["/tmp/port"], "server.unix_path": ["/tmp/socket"],
            "server.unix_mode": ["0600"], "server.unix_group": ["root"],
            "log.client": ["true"], "server.trusted_proxies": ["10.0.0.0/8"], "server.allow_origin": ["https://a.example"],
            "server.public_url": ["https://gifs.example"], "cache.dir": ["/tmp/other"],
            "cache.max_bytes": ["8MiB"], "cache.min_free_bytes": ["1B"], "cache.max_age": ["1h"],
            "cache.min_fresh_for": ["4h"], "cache.max_fresh_for": ["1h"],
            "sources.allow": ["example.com"], "sources.allow_private": [], "sources.nat64_prefixes": ["64:ff9b::/96"],
            "sources.ports": ["1"], "sources.max_bytes": ["64B"], "sources.max_redirects": ["0"],
            "block.list": [blockList], "sources.require_signature": ["false"], "sources.loop_name": ["other"],
            "signing.keys": ["a key of a test"],
            "rate_limit.misses_per_minute": ["1"], "rate_limit.uploads_per_minute": ["1"],
            "signing.keys.*.hosts": ["a.test"], "purge.hooks.*.url": ["https://a.test/"], "purge.hooks.*.headers": ["X-Key: 1"],
            "signing.keys.*.misses_per_minute": ["1"], "transcode.queue_bytes": ["2GiB"],
            "limits.side": ["39"],
            "limits.canvas_pixels": ["1199"], "limits.total_pixels": ["3599"], "limits.frames": ["2"],
            "limits.duration": ["10ms"], "mounts.*.origin": ["https://b.example/"], "mounts.*.allow": ["b/"],
            "mounts.*.fresh_for": ["1h"], "mounts.*.max_age": ["1h"], "mounts.*.query": ["forward"],
            "mounts.*.require_signature": ["false"], "mounts.*.s3.endpoint": ["https://s3.example"],
            "mounts.*.s3.path_style": ["true"], "mounts.*.on_miss": ["wait"],
            "mounts.*.s3.region": ["eu-west-1"], "mounts.*.headers": ["X-Key: 1"],
            "presets.*": ["width=20"], "admin.token": ["secret"],
            "async.max_statuses": ["0"], "webhooks.allow": ["hooks.example"], "webhooks.key": ["secret"],
            "tracing.endpoint": ["http://127.0.0.1:9/v1/traces"], "tracing.headers": ["X-Key: 1"],
            "tracing.sample": ["50"],
            "metrics.allow": ["10.0.0.1"], "log.level": ["error"],
        ]

        /// The settings without which another one is refused.
        private static let conditions: [String: (name: String, value: String)] = [
            "mounts.*.on_miss": ("mounts.*.negotiate", "true"), "webhooks.allow": ("webhooks.key", "secret"),
            "renditions.av1_after": ("renditions.av1", "background"),
        ]

        private static func sample(_ setting: Setting) -> [String] {
            if let sample = samples[setting.name] { return sample }
            switch setting.kind {
            case .pair: return ["width=20"]
            case .flag: return [setting.texts(Settings()) == ["true"] ? "false" : "true"]
            case .choice(let words): return [words.last { [$0] != setting.texts(Settings()) } ?? ""]
            case .text: return ["sample"]
            case .number, .bytes, .duration: return [setting.range?.upper ?? ""]
            }
        }

        /// The lifetime of a response, of which seconds pass between two requests.
        private static func hours(_ response: RawHTTPResponse) -> String {
            "\(((response.maxAge() ?? 0) + 3599) / 3600) h"
        }

        /// What a client notices of a live setting. Settings that only show under load or with a slow origin are missing:
        /// for those the configuration that the service gets is compared.
        private static let observations: [String: @Sendable (Server) throws -> String] = [
            "server.allow_origin": { try $0.hit()["access-control-allow-origin"] ?? "none" },
            "server.public_url": {
                let page = String(decoding: try $0.get("/html/" + $0.origin.url("/a.gif")).body, as: UTF8.self)
                return page.contains("https://gifs.example/") ? "public" : "host"
            },
            "cache.max_age": { hours(try $0.hit()) },
            "cache.cdn_max_age": { try $0.hit()["cdn-cache-control"] ?? "" },
            "sources.allow": { "\(try $0.hit().status)" },
            "sources.allow_private": { "\(try $0.hit().status)" },
            "sources.ports": { "\(try $0.hit().status)" },
            "sources.max_bytes": { "\(try $0.upload())" },
            "sources.max_redirects": { "\(try $0.get("/mp4/" + $0.freshSource("/r.gif")).status)" },
            "sources.loop_name": {
                "\(try $0.get("/mp4/" + $0.freshSource(), headers: ["CDN-Loop: other"]).status)"
            },
            "sources.user_agent": {
                _ = try $0.get("/mp4/" + $0.freshSource())
                return $0.origin.requests.last?.headers["user-agent"] ?? "none"
            },
            "signing.keys": { "\(try $0.hit().status)" },
            "block.list": { "\(try $0.get("/mp4/" + $0.freshSource()).status)" },
            "options.allow": { "\(try $0.get("/mp4,width=20/" + $0.origin.url("/a.gif")).status)" },
            "presets.*": { "\(try $0.get("/mp4,preset=m/" + $0.origin.url("/a.gif")).status)" },
            "rate_limit.misses_per_minute": { server in
                try (0..<40).map { _ in "\(try server.get("/json/" + server.freshSource()).status)" }.contains("429")
                    ? "limited" : "free"
            },
            "rate_limit.uploads_per_minute": { server in
                try (0..<20).map { _ in try server.upload() }.contains(429) ? "limited" : "free"
            },
            "limits.side": { "\(try $0.upload())" },
            "limits.canvas_pixels": { "\(try $0.upload())" },
            "limits.total_pixels": { "\(try $0.upload())" },
            "limits.frames": { "\(try $0.upload())" },
            "limits.duration": { "\(try $0.upload())" },
            "mounts.*.origin": { "\(try $0.get("/m/a.mp4").status)" },
            "mounts.*.allow": { "\(try $0.get("/m/a.mp4").status)" },
            "mounts.*.negotiate": { try $0.get("/m/a.gif")["vary"] ?? "none" },
            "mounts.*.max_age": { hours(try $0.get("/m/a.mp4")) },
            "mounts.*.query": { "\(try $0.get("/m/a.mp4?unknown=1").status)" },
            "pages.home": { "\(try $0.get("/").status)" },
            "admin.token": { "\(try $0.get("/cache", headers: ["Authorization: Bearer secret"]).status)" },
            "webhooks.allow": {
                try $0.get("/mp4,callback=http%3A%2F%2Fhooks.example/" + $0.freshSource(), headers: ["Prefer: respond-async"])
                    .text
            },
            "async.max_statuses": {
                "\(try $0.get("/mp4/" + $0.freshSource(), headers: ["Prefer: respond-async"]).status)"
            },
            "metrics.allow": { "\(try $0.get("/metrics").status)" },
        ]

        @Test func aReloadDoesWhatItsPlanSays() async throws {
            let server = try Server()
            do {
                for setting in Setting.all { try check(setting, server) }
            } catch {
                Issue.record(error)
            }
            await server.stop()
        }

        private func check(_ setting: Setting, _ server: Server) throws {
            var base = server.base
            if setting.name.hasPrefix("mounts.*.s3.") {
                base.mounts["m"]?.origin = "s3://bucket/prefix"
                base.mounts["m"]?.s3.accessKey = "key"
                base.mounts["m"]?.s3.secretKey = "secret"
            }
            if setting.name.hasPrefix("signing.keys.*.") {
                base.signing.named["m"] = Settings.Signing.Key()
                base.signing.named["m"]?.secret = "a secret"
                base.signing.named["m"]?.missesPerMinute = 5
                base.signing.isRequired = false
            }
            if setting.name.hasPrefix("purge.hooks.*.") {
                base.purge.hooks["m"] = Settings.Purge.Hook()
                base.purge.hooks["m"]?.url = "http://127.0.0.1:1/"
            }
            if let condition = Self.conditions[setting.name] {
                let other = try #require(Setting.all.first { $0.name == condition.name })
                try #require(other.set([condition.value], chosenName: "m", in: &base) == nil)
            }
            var changed = base
            let rejection = setting.set(Self.sample(setting), chosenName: "m", in: &changed)
            try #require(rejection == nil, "\(setting.name)")
            let plan = ReloadPlan(from: base, to: changed)
            let name = setting.name.replacing("*", with: "m")
            guard setting.effect == .live else {
                // Nothing of the new value reaches the service.
                #expect(plan.waiting == [name] && plan.changed.isEmpty && plan.settings == base)
                return
            }
            #expect(plan.changed == [name] && plan.waiting.isEmpty && plan.settings == changed)
            let configurations = try [base, plan.settings].map { String(reflecting: try ServiceConfiguration($0)) }
            if !setting.isSecret && setting.name != "sources.require_signature"
                && !["rate_limit.burst", "rate_limit.upload_burst"].contains(setting.name)
            {
                #expect(configurations[0] != configurations[1], "\(name) reaches no configuration")
            }
            guard let observe = Self.observations[setting.name] else { return }
            try server.apply(base)
            let before = try observe(server)
            try server.apply(plan.settings)
            let during = try observe(server)
            try server.apply(base)
            let after = try observe(server)
            #expect(before != during, "\(name) has no effect: \(before)")
            #expect(before == after, "\(name) stays in effect: \(after)")
        }

        /// Only a connection shows the addresses of a name.
        @Test func aCachedSourceAtAPrivateNameIsRefusedOnceTheNameIsNotAllowed() async throws {
            let server = try Server()
            let target = "/mp4/http://localhost:\(server.origin.port)/a.gif"
            var settings = server.base
            for (name, status) in [("localhost", 200), ("other.test", 403)] {
                settings.fetch.allowPrivate = [try #require(AddressException(name))]
                try server.apply(settings)
                for _ in 0..<3 { #expect(try server.get(target).status == status) }
            }
            await server.stop()
        }

        @Test func theLogNamesWhatNeedsARestart() throws {
            let directory = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let file = directory.appendingPathComponent("settings.yaml")
            try "cache:\n  max_age: 1h\n".write(to: file, atomically: true, encoding: .utf8)
            let server = try GifreelProcess([], configuration: file.path, directory: directory)
            try "cache:\n  max_age: 2h\n  stale_for: 1d\ntranscode:\n  queue: 3\n".write(
                to: file, atomically: true, encoding: .utf8)
            kill(server.identifier, SIGHUP)
            try blockUntil("the reload", within: .seconds(30)) { server.log.contains("a restart is needed") }
            #expect(server.log.contains("changed=cache.max_age\n"))
            #expect(server.log.contains("settings=\"cache.stale_for, transcode.queue\"\n"))
        }
    }
}

extension OperationsTests.ReloadOfEverySettingTests.Server {
    /// The answer to a request for a rendition that is in the cache's memory.
    fileprivate func hit() throws -> RawHTTPResponse { try get("/mp4/" + origin.url("/a.gif")) }

    /// The status of an upload that no request made before.
    fileprivate func upload() throws -> Int {
        let number = UInt8(truncatingIfNeeded: freshSource().hashValue)
        let gif = GIFBuilder.animation(frames: 3, width: 40, height: 30) + [number] + Array(freshSource().utf8)
        return try request("POST", "/mp4", body: gif).status
    }
}
