import HTTP
import HTTPClient
import Synchronization
import Telemetry
import TestSupport
import Testing

@testable import Web

@Suite("A traced miss has one span per step, a hit has none", .timeLimit(.minutes(10))) struct RequestSpanTests {
    private static let gif = GIFBuilder.animation(frames: 3)
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let caller = "00f067aa0ba902b7"

    /// The spans that a server has exported.
    private final class Collected: Sendable {
        private let spans = Mutex<[ExportedSpan]>([])

        var all: [ExportedSpan] { spans.withLock { $0 } }

        func named(_ name: String) -> ExportedSpan? { all.first { $0.name == name } }

        func add(_ document: String) -> DeliveryResult {
            guard let read = try? ExportedSpan.all(in: Array(document.utf8)) else { return .refused(cause: "no document") }
            spans.withLock { $0 += read }
            return .delivered
        }
    }

    private func run(
        share: Double = 1, trusting proxies: ClientList = ClientList(), _ body: (WebFixture, Collected) async throws -> Void
    ) async throws {
        let collected = Collected()
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif) }]) {
            $0.traces = WebFixture.Traces(share: share) { collected.add($0) }
            $0.trustedProxies = proxies
        } _: { web async throws in
            try await body(web, collected)
        }
    }

    @Test func theStepsOfAMissAreSpansBelowItsRequest() async throws {
        try await run(share: 0, trusting: ClientList([try #require(ClientPattern("127.0.0.1"))])) { web, collected in
            let header = "traceparent: 00-\(Self.trace)-\(Self.caller)-01"
            let response = try await web.request(
                "GET", web.target("mp4", "/a.gif"), headers: [header, "X-Request-Id: call-7"])
            #expect(response.status == 200)
            try await waitUntil("all spans, of which there are \(collected.all.map(\.name))") { collected.all.count == 5 }
            let request = try #require(collected.named("GET /mp4"))
            #expect(request.traceId == Self.trace && request.parentSpanId == Self.caller && request.kind == 2)
            #expect(request["http.response.status_code"] == "200" && request["gifreel.request_id"] == "call-7")
            #expect(request["http.request.method"] == "GET" && request["http.route"] == "/mp4" && request.statusCode == nil)
            #expect(request["gifreel.cache_status"] == "gifreel; fwd=miss; stored")
            for name in ["fetch", "queue", "convert", "publish"] {
                let step = try #require(collected.named(name), "\(name)")
                #expect(step.traceId == Self.trace && step.parentSpanId == request.spanId && step.statusCode == nil, "\(name)")
                let (start, end) = (try #require(UInt64(step.startTimeUnixNano)), try #require(UInt64(step.endTimeUnixNano)))
                #expect(try #require(UInt64(request.startTimeUnixNano)) <= start && start <= end, "\(name)")
            }
            let fetch = try #require(collected.named("fetch"))
            #expect(fetch["server.address"] == "127.0.0.1" && fetch["http.response.body.size"] == "\(Self.gif.count)")
            #expect(collected.named("convert")?["gifreel.frames"] == "3")
            // The origin's caller is the fetch.
            let sent = try #require(web.origin.requests.last?.headers["traceparent"].flatMap { TraceParent($0) })
            #expect(sent.spanID == fetch.spanId && sent.traceID == Self.trace)
        }
    }

    @Test func aHitInMemoryHasNoSpan() async throws {
        try await run { web, collected in
            let target = web.target("mp4", "/a.gif")
            #expect(try await web.request("GET", target).status == 200)
            try await waitUntil("the spans of the miss") { collected.all.count == 5 }
            #expect(try await web.request("GET", target)["cache-status"] == "gifreel; hit")
            // What comes after it is exported after it.
            #expect(try await web.request("POST", "/png", body: Self.gif).status == 200)
            try await waitUntil("the spans of the upload") { collected.named("POST /png") != nil }
            #expect(collected.all.count { $0.name == "GET /mp4" } == 1)
            #expect(Set(collected.all.map(\.traceId)).count == 2)
        }
    }

    @Test func anErrorIsRecordedAtItsStep() async throws {
        try await run { web, collected in
            #expect(try await web.request("GET", web.target("mp4", "/none.gif")).status == 404)
            try await waitUntil("the spans") { collected.all.count == 2 }
            #expect(collected.named("fetch")?.statusCode == 2)
            // The request was answered as it should be.
            let request = try #require(collected.named("GET /mp4"))
            #expect(request.statusCode == nil && request["http.response.status_code"] == "404")
        }
    }

    /// Otherwise any client could have its requests recorded, and bring the collector down.
    @Test func aClientDoesNotDecideWhetherItsTraceIsRecorded() async throws {
        try await run(share: 0) { web, _ in
            let header = "traceparent: 00-\(Self.trace)-\(Self.caller)-01"
            #expect(try await web.request("GET", web.target("mp4", "/a.gif"), headers: [header]).status == 200)
            let sent = try #require(web.origin.requests.last?.headers["traceparent"].flatMap { TraceParent($0) })
            #expect(sent.traceID == Self.trace && !sent.isSampled)
        }
        try await run(share: 1) { web, collected in
            let header = "traceparent: 00-\(Self.trace)-\(Self.caller)-00"
            #expect(try await web.request("GET", web.target("mp4", "/a.gif"), headers: [header]).status == 200)
            try await waitUntil("the spans of the share") { collected.all.count == 5 }
            #expect(collected.all.allSatisfy { $0.traceId == Self.trace })
        }
    }

    @Test func aRequestThatIsNotSampledIsNotRecorded() async throws {
        try await run(trusting: ClientList([try #require(ClientPattern("127.0.0.1"))])) { web, collected in
            let header = "traceparent: 00-\(Self.trace)-\(Self.caller)-00"
            #expect(try await web.request("GET", web.target("mp4", "/a.gif"), headers: [header]).status == 200)
            let sent = try #require(web.origin.requests.last?.headers["traceparent"].flatMap { TraceParent($0) })
            #expect(sent.traceID == Self.trace && !sent.isSampled)
            #expect(try await web.request("POST", "/png", body: Self.gif).status == 200)
            try await waitUntil("the spans of the next request") { collected.named("POST /png") != nil }
            #expect(collected.all.allSatisfy { $0.traceId != Self.trace })
        }
    }

    @Test func whatARequestDoesNotWaitForBelongsToItsTrace() async throws {
        try await run { web, collected in
            let accepted = try await web.request("GET", web.target("mp4", "/a.gif"), headers: ["Prefer: respond-async"])
            #expect(accepted.status == 202)
            try await waitUntil("the spans, of which there are \(collected.all.map(\.name))") { collected.all.count == 5 }
            let request = try #require(collected.named("GET /mp4"))
            #expect(request["http.response.status_code"] == "202")
            #expect(collected.named("publish")?.parentSpanId == request.spanId)
        }
    }
}
