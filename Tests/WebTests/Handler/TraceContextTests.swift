import Foundation
import Telemetry
import TestSupport
import Testing

@testable import Web

@Suite("A request's trace is read, continued and logged") struct TraceContextTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let parent = "traceparent: 00-\(trace)-00f067aa0ba902b7-01"

    @Test(arguments: [
        "", "00", "00-\(trace)-00f067aa0ba902b7", "00-\(trace)-00f067aa0ba902b7-01-more",
        "ff-\(trace)-00f067aa0ba902b7-01", "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-\(trace)-0000000000000000-01", "01-\(trace)-00f067aa0ba902b7-011", "00-\(trace)-00f067aa0ba902b7-01-",
        "00-\(trace)-00f067aa0ba902b7é01", "00-\(trace.uppercased())-00f067aa0ba902b7-01", "00-\(trace)-00f067aa0ba902b-01",
    ])
    func aMalformedTraceIsIgnored(_ text: String) {
        #expect(TraceParent(text) == nil)
    }

    @Test func aNewerVersionMayAppendValues() {
        #expect(TraceParent("01-\(Self.trace)-00f067aa0ba902b7-01-more")?.traceID == Self.trace)
    }

    @Test func aChildIsAnotherSpanOfTheSameTrace() throws {
        let parent = try #require(TraceParent("00-\(Self.trace)-00f067aa0ba902b7-01"))
        let child = parent.child()
        #expect(child.traceID == parent.traceID && child.spanID != parent.spanID && child.spanID.count == 16)
        #expect(TraceParent(child.description) == child && child.description.hasSuffix("-01"))
    }

    @Test(arguments: [("ff", "03"), ("fc", "00"), ("02", "02")])
    func reservedFlagsAreNotPassedOn(_ flags: String, _ sent: String) throws {
        let parent = try #require(TraceParent("00-\(Self.trace)-00f067aa0ba902b7-\(flags)"))
        #expect(parent.child().description.hasSuffix("-\(sent)"))
        #expect(parent.sampled(true).isSampled && !parent.sampled(false).isSampled)
    }

    @Test func everySpanHasSixteenDigits() throws {
        let parent = try #require(TraceParent("00-\(Self.trace)-00f067aa0ba902b7-00"))
        for _ in 0..<1000 {
            let child = parent.child()
            #expect(TraceParent(child.description) == child)
        }
    }

    @Test func theOriginGetsAChildSpanAndTheStateUnchanged() async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(GIFBuilder.animation(frames: 2)) }]) { web async throws in
            let state = "vendor=" + String(repeating: "v", count: 500)
            _ = try await web.request("GET", web.target("mp4", "/a.gif"), headers: [Self.parent, "tracestate: \(state)"])
            let fields = try #require(web.origin.requests.first?.headers)
            let sent = try #require(fields["traceparent"].flatMap { TraceParent($0) })
            #expect(sent.traceID == Self.trace && sent.spanID != "00f067aa0ba902b7")
            #expect(fields["tracestate"] == state)
        }
    }

    @Test func severalFieldsOfStateAreOneList() async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(GIFBuilder.animation(frames: 2)) }]) { web async throws in
            let fields = [Self.parent, "tracestate: a=1, b=2", "TraceState: c=3", "tracestate:"]
            _ = try await web.request("GET", web.target("mp4", "/a.gif"), headers: fields)
            #expect(web.origin.requests.first?.headers["tracestate"] == "a=1, b=2,c=3")
        }
    }

    @Test func aStateThatIsTooLongIsDropped() async throws {
        try await WebFixture.run(["/a.gif": { _ in .ok(GIFBuilder.animation(frames: 2)) }]) { web async throws in
            let state = "vendor=" + String(repeating: "v", count: 600)
            _ = try await web.request("GET", web.target("mp4", "/a.gif"), headers: [Self.parent, "tracestate: \(state)"])
            let fields = try #require(web.origin.requests.first?.headers)
            #expect(fields["traceparent"] != nil && fields["tracestate"] == nil)
        }
    }

    @Test func everyKindOfResponseIsLoggedWithItsRequestAndTrace() async throws {
        let gif = GIFBuilder.animation(frames: 3)
        let paths = ["/video.gif", "/facts.gif", "/page.gif", "/embedded.gif"]
        let handlers = Dictionary(
            uniqueKeysWithValues: paths.map { path in
                (path, { _ in .ok(gif + [UInt8(path.utf8.count)]) } as LoopbackOrigin.Handler)
            })
        try await WebFixture.run(handlers) { web async throws in
            let requests: [(id: String, method: String, target: String, status: Int)] = [
                ("video", "GET", web.target("mp4", "/video.gif"), 200),
                ("facts", "GET", web.target("json", "/facts.gif"), 200),
                ("page", "GET", web.target("html", "/page.gif"), 200),
                ("embedded", "GET", "/oembed?url=\(web.origin.url("/embedded.gif"))", 200),
                ("upload", "POST", "/png", 200),
                ("no-video", "GET", web.target("mp4", "/none1.gif"), 404),
                ("no-facts", "GET", web.target("json", "/none2.gif"), 404),
                ("no-page", "GET", web.target("html", "/none3.gif"), 404),
                ("no-embed", "GET", "/oembed?url=\(web.origin.url("/none4.gif"))", 404),
            ]
            for request in requests {
                let response = try await web.request(
                    request.method, request.target, headers: [Self.parent, "X-Request-Id: \(request.id)"],
                    body: request.method == "POST" ? gif : [])
                #expect(response.status == request.status, "\(request.id)")
                let lines = web.log.lines(of: request.id)
                let message = request.status == 200 ? "answered" : "request failed"
                #expect(lines.contains { $0.message == message }, "\(request.id): \(web.log.all.map(\.message))")
                #expect(lines.allSatisfy { $0.metadata["trace_id"] == Self.trace && $0.metadata["span_id"] != nil })
            }
            // Hits in memory write no line: the access log has them.
            let count = web.log.all.count
            for target in [requests[0].target, requests[1].target, requests[2].target] {
                #expect(try await web.request("GET", target).status == 200)
            }
            #expect(web.log.all.count == count)
        }
    }
}
