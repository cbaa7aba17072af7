import Fetch
import Foundation
import HTTP
import HTTPClient
import Logging
import Renditions
import Store
import Synchronization
import SystemIO
import Telemetry
import TestSupport
import Testing

@testable import Web

@Suite("Purges call the hooks of the operator", .timeLimit(.minutes(10))) struct PurgeHookTests {
    private let notice = PurgeNotice(
        scope: .url, urls: ["https://gifs.test/mp4/https://a.test/a.gif?v=\"1\"", "https://gifs.test/m/a.mp4"],
        tags: ["gifreel-source-1"])

    private func hook(_ url: String = "https://cdn.test/purge", _ body: String? = nil, fields: [String] = []) -> PurgeHook {
        PurgeHook(name: "cdn", url: url, method: "POST", fields: fields, body: body)
    }

    @Test func aHookWithoutABodySendsScopeAddressesAndTags() throws {
        let requests = hook(fields: ["Authorization: Bearer x"]).requests(for: notice)
        let request = try #require(requests.first)
        #expect(requests.count == 1 && request.method == "POST" && request.url == "https://cdn.test/purge")
        #expect(request.fields == ["Authorization: Bearer x", "Content-Type: application/json"])
        let body = try #require(try JSONSerialization.jsonObject(with: Data(request.text.utf8)) as? [String: Any])
        #expect(body["scope"] as? String == "url" && body["urls"] as? [String] == notice.urls)
        #expect(body["tags"] as? [String] == notice.tags)
    }

    @Test func placeholdersStandForAllTagsOrForOneURL() throws {
        #expect(
            hook("https://a.test/", #"{"surrogate_keys": {tags}}"#).requests(for: notice).map(\.text) == [
                #"{"surrogate_keys": ["gifreel-source-1"]}"#
            ])
        let single = hook("https://a.test/purge?async=true&url={url}").requests(for: notice)
        #expect(single.count == 2 && single.allSatisfy { $0.text.isEmpty && $0.fields.isEmpty })
        #expect(
            single[0].url
                == "https://a.test/purge?async=true&url=https%3A%2F%2Fgifs.test%2Fmp4%2Fhttps%3A%2F%2Fa.test%2Fa.gif%3Fv%3D%221%22"
        )
        #expect(
            hook("https://a.test/", #"{"tag": {tag}, "x": "{unknown}", "y": {"#).requests(for: notice).map(\.text) == [
                #"{"tag": "gifreel-source-1", "x": "{unknown}", "y": {"#
            ])
    }

    @Test func aValueIsNotSearchedForPlaceholders() {
        let odd = PurgeNotice(scope: .url, urls: ["https://a.test/{tags}"], tags: ["t"])
        #expect(hook("https://a.test/", "{urls}").requests(for: odd).map(\.text) == [#"["https://a.test/{tags}"]"#])
    }

    @Test func aPurgeThatAHookCannotNameDoesNotCallIt() {
        let object = PurgeNotice(scope: .object, urls: ["https://gifs.test/object/1.mp4"], tags: [])
        #expect(hook("https://a.test/", "{tags}").requests(for: object).isEmpty)
        #expect(hook("https://a.test/", "{tag}").requests(for: object).isEmpty)
        #expect(hook().requests(for: object).count == 1)
        #expect(hook("https://a.test/", #"{"purge_everything":true}"#).requests(for: object).count == 1)
    }

    @Test func aHookMayBeForSomePurges() {
        let everything = PurgeHook(
            name: "cdn", url: "https://a.test/", method: "POST", fields: [], body: #"{"purge_everything":true}"#, scopes: [.all]
        )
        #expect(everything.requests(for: notice).isEmpty)
        #expect(everything.requests(for: PurgeNotice(scope: .all, urls: [], tags: [])).count == 1)
    }

    @Test(arguments: PurgeNotice.Scope.allCases) func aHookWithTheScopeIsCalledAfterEachPurge(_ scope: PurgeNotice.Scope) {
        let texts = hook().requests(for: PurgeNotice(scope: scope, urls: [], tags: [])).map(\.text)
        #expect(texts == [#"{"scope":"\#(scope.rawValue)","urls":[],"tags":[]}"#])
    }

    @Test func aNoticeNamesAddressesAndTagsOfASource() throws {
        let mounts = ["m": Mount(origin: try SourceURL("https://a.test/up/"))]
        let notice = PurgeNotice(.url("https://a.test/up/a.gif"), mounts: mounts, publicURL: "https://gifs.test")
        for url in ["https://gifs.test/m/a.mp4", "https://gifs.test/m/a.gif", "https://gifs.test/m/a.json"] {
            #expect(notice.urls.contains(url), "\(notice.urls)")
        }
        #expect(notice.tags == [CDNTags("https://a.test/up/a.gif").source] && notice.scope == .url)
        #expect(PurgeNotice(.all, mounts: [:], publicURL: nil) == PurgeNotice(scope: .all, urls: [], tags: []))
        #expect(PurgeNotice(.prefix("https://a.test/x"), mounts: [:], publicURL: nil).tags == [CDNTags("https://a.test/").host])
        #expect(PurgeNotice(.prefix("https://a.te"), mounts: [:], publicURL: nil).tags.isEmpty)
    }

    @Test func aNoticeNamesTheAddressesOfAnObjectWithItsFacts() throws {
        let id = try #require(ObjectID(hex: String(repeating: "0", count: 64)))
        let notice = PurgeNotice(.object(id), mounts: [:], publicURL: "https://gifs.test")
        for name in ["mp4", "json"] {
            #expect(notice.urls.contains("https://gifs.test/object/\(id).\(name)"), "\(notice.urls)")
        }
        #expect(!notice.urls.contains { $0.hasSuffix(".html") } && notice.tags.isEmpty)
    }

    @Test func aNoticeNamesAddressesAndTagsOfAnObjectInS3() throws {
        let mounts = [
            "pics": Mount(origin: try SourceURL(bucketFolder: "s3://pics/up", of: "pics", at: "https://pics.s3.example/")),
            "media": Mount(origin: try SourceURL("https://a.test/up/")),
        ]
        let notice = PurgeNotice(.url("s3://pics/up/a.gif"), mounts: mounts, publicURL: "https://gifs.test")
        for url in ["https://gifs.test/pics/a.mp4", "https://gifs.test/pics/a.gif", "https://gifs.test/pics/a.json"] {
            #expect(notice.urls.contains(url), "\(notice.urls)")
        }
        #expect(notice.urls.allSatisfy { $0.hasPrefix("https://gifs.test/pics/") })
        #expect(notice.tags == [CDNTags("s3://pics/up/a.gif").source])
        // No mount serves it.
        #expect(PurgeNotice(.url("s3://pics/x/a.gif"), mounts: mounts, publicURL: "https://gifs.test").urls.isEmpty)
        #expect(PurgeNotice(.url("s3://pics/up/a.txt"), mounts: mounts, publicURL: "https://gifs.test").urls.isEmpty)
        let prefix = PurgeNotice(.prefix("s3://pics/up/"), mounts: mounts, publicURL: nil)
        #expect(prefix.tags == [CDNTags("s3://pics/up/a.gif").host])
        #expect(prefix.tags != [CDNTags("s3://other/up/a.gif").host])
    }

    /// Runs `body` with hooks whose requests get the statuses in turn; 0 is a failure to connect.
    private func run(
        _ statuses: [Int], queue: Int = 1000,
        _ body: (PurgeHooks, Recorded<ClientRequest>, PrometheusRegistry) async throws -> Void
    ) async throws {
        let registry = PrometheusRegistry(MetricFamily.instruments)
        let sent = Recorded<ClientRequest>()
        let left = Mutex(statuses)
        var limits = PurgeHooks.Limits()
        limits.deliveries = DeliveryLimits(
            items: queue, attempts: 3, backoff: Backoff(first: .milliseconds(1), longest: .milliseconds(2)))
        let hooks = PurgeHooks(limits, factory: registry, logger: Logger(label: "test")) {
            request in
            sent.append(request)
            let status = left.withLock { $0.isEmpty ? 200 : $0.removeFirst() }
            return status > 0 ? DeliveryResult(status: status) : .unavailable(cause: "refused")
        }
        hooks.setHooks([hook()])
        do {
            try await body(hooks, sent, registry)
        } catch {
            Issue.record(error)
        }
        await hooks.stop(within: .zero)
    }

    private func count(_ registry: PrometheusRegistry, _ result: String) -> Int {
        let line = registry.text(.prometheus).split(separator: "\n").first {
            $0.hasPrefix("gifreel_purge_hook_requests_total{") && $0.contains("result=\"\(result)\"")
        }
        return line.flatMap { $0.split(separator: " ").last.flatMap { Int($0) } } ?? 0
    }

    @Test func whatMayPassIsRepeated() async throws {
        try await run([0, 503]) { hooks, sent, registry in
            hooks.call(notice)
            try await waitUntil("the request is delivered") { count(registry, "delivered") == 1 }
            #expect(sent.all.count == 3 && count(registry, "repeated") == 2 && count(registry, "failed") == 0)
        }
    }

    @Test func otherFailuresAndTooManyAttemptsEndTheRequest() async throws {
        try await run([403, 500, 429, 0]) { hooks, sent, registry in
            hooks.call(notice)
            hooks.call(notice)
            try await waitUntil("both requests have failed") { count(registry, "failed") == 2 && hooks.waiting == 0 }
            #expect(sent.all.count == 4 && count(registry, "delivered") == 0)
            hooks.call(notice)
            try await waitUntil("the next one is delivered") { count(registry, "delivered") == 1 }
        }
    }

    @Test func hooksThatHangDoNotDelayOthers() async throws {
        let registry = PrometheusRegistry(MetricFamily.instruments)
        let (sent, gate) = (Recorded<String>(), AsyncGate())
        let hooks = PurgeHooks(factory: registry, logger: Logger(label: "test")) { request in
            sent.append(request.url)
            if request.url != "https://cdn.test/last" { await gate.pass() }
            return .delivered
        }
        let names = ["a", "b", "c", "last"]
        hooks.setHooks(
            names.map { PurgeHook(name: $0, url: "https://cdn.test/\($0)", method: "POST", fields: [], body: nil) })
        hooks.call(notice)
        try await waitUntil("the last hook is called and the others hang") {
            count(registry, "delivered") == 1 && sent.all.count == names.count
        }
        gate.open()
        await hooks.stop(within: .seconds(10))
        #expect(sent.all.sorted() == names.map { "https://cdn.test/\($0)" })
    }

    @Test func failuresAreCountedFromZero() async throws {
        try await run([]) { _, _, registry in
            let lines = registry.text(.prometheus).split(separator: "\n")
            for result in ["failed", "dropped"] {
                #expect(lines.contains("gifreel_purge_hook_requests_total{hook=\"cdn\",result=\"\(result)\"} 0"))
            }
        }
    }

    @Test func aFullQueueDropsRequestsAndCountsThem() async throws {
        try await run([], queue: 0) { hooks, sent, registry in
            hooks.call(notice)
            #expect(count(registry, "dropped") == 1 && sent.all.isEmpty)
        }
    }

    /// Collects the body of a request.
    private final class Sink: HTTPBodySink {
        let limit = 1 << 20
        private var bytes: [UInt8] = []
        private let received: Recorded<String>

        init(_ received: Recorded<String>) { self.received = received }

        func write(_ new: UnsafeRawBufferPointer) throws { bytes.append(contentsOf: new) }

        func finish() -> HTTPReply {
            received.append(String(decoding: bytes, as: UTF8.self))
            return .now(HTTPResponse(status: 200, contentType: "text/plain", text: "ok"))
        }

        func abort() {}
    }

    private final class CDN: HTTPHandler {
        let received = Recorded<String>()
        let heads = Recorded<String>()

        func respond(to request: borrowing HTTPRequest) -> HTTPReply {
            heads.append("\(request.method) \(request.target) \(request.header("Authorization") ?? "")")
            return .receive(Sink(received))
        }

        func response(to error: HTTPProtocolError) -> HTTPResponse { HTTPResponse(status: error.status) }
    }

    @Test func aPurgeCallsAServer() async throws {
        let cdn = CDN()
        var http = HTTPServerConfiguration()
        http.port = 0
        http.threads = 1
        http.usesSocketActivation = false
        let server = HTTPServer(configuration: http, handler: cdn)
        try server.start()
        let port = try #require(server.port)
        let body = #"{"tags":{tags}}"#
        let configure: (inout WebFixture.Settings) -> Void = {
            $0.policy.adminToken = "secret"
            $0.hooks = [
                PurgeHook(
                    name: "cdn", url: "http://127.0.0.1:\(port)/zones/1/purge_cache", method: "POST",
                    fields: ["Authorization: Bearer cdn-token"], body: body)
            ]
        }
        let paths: [String: LoopbackOrigin.Handler] = ["/a.gif": { _ in .ok(GIFBuilder.animation(frames: 2)) }]
        try await WebFixture.run(paths, configure) { web async throws in
            let target = web.target("mp4", "/a.gif")
            #expect(try await web.request("GET", target).status == 200)
            #expect(try await web.request("PURGE", target, headers: ["Authorization: Bearer wrong"]).status == 401)
            #expect(try await web.request("PURGE", target, headers: ["Authorization: Bearer secret"]).status == 200)
            try await waitUntil("the server is called") { cdn.received.all.count == 1 }
            #expect(cdn.heads.all == ["POST /zones/1/purge_cache Bearer cdn-token"])
            let tag = CDNTags(try SourceURL(web.origin.url("/a.gif")).canonical).source
            #expect(cdn.received.all == [#"{"tags":["\#(tag)"]}"#])
        }
        await server.stop()
    }
}

extension ClientRequest {
    /// The body.
    fileprivate var text: String {
        if case .bytes(let bytes)? = body { String(decoding: bytes, as: UTF8.self) } else { "" }
    }
}
