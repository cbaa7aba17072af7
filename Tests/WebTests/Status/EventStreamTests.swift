import Foundation
import TestSupport
import Testing

@testable import Web

@Suite("A status is also a stream of events, which ends with the work", .timeLimit(.minutes(10))) struct EventStreamTests {
    private static let gif = GIFBuilder.animation(frames: 4, width: 40, height: 30)
    private static let accept = ["Accept: text/event-stream"]

    /// Starts a conversion whose source waits for the gate.
    private func begin(_ web: WebFixture) async throws -> String {
        let answer = try await web.request("GET", web.target("mp4", "/a.gif"), headers: ["Prefer: respond-async"])
        return try #require(answer["location"])
    }

    private func documents(_ text: String) throws -> [[String: Any]] {
        try text.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("data: ") }.map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.dropFirst(6).utf8))
            return try #require(object as? [String: Any])
        }
    }

    private func run(
        _ configure: @escaping (inout WebFixture.Settings) -> Void = { _ in },
        _ body: @escaping (WebFixture, LoopbackGate) async throws -> Void
    ) async throws {
        let gate = try LoopbackGate()
        try await WebFixture.run(["/a.gif": { _ in .ok(Self.gif).after(gate) }], configure) { web async throws in
            try await body(web, gate)
            gate.open()
        }
    }

    @Test func theFirstEventComesAtOnceAndTheLastOneEndsTheStream() async throws {
        try await run { web, gate in
            let path = try await begin(web)
            let port = try #require(web.port)
            let (head, text) = try await onThread {
                var client = try RawHTTPClient(port: port)
                try client.send("GET", path, headers: Self.accept + ["Connection: close"])
                let head = try client.readHead()
                var text = ""
                while !text.contains("\n\n") { text += String(decoding: try client.read(1), as: UTF8.self) }
                gate.open()
                return (head, text + String(decoding: client.readToEnd().bytes, as: UTF8.self))
            }
            #expect(head.status == 200 && head["content-type"] == "text/event-stream" && head["cache-control"] == "no-store")
            #expect(head["x-accel-buffering"] == "no" && head["access-control-allow-origin"] == "*")
            let documents = try documents(text)
            #expect(documents.first?["state"] as? String == "fetching")
            #expect(documents.last?["state"] as? String == "done" && documents.last?["frames_done"] as? Int == 4)
            #expect(text.contains("\nid: end\ndata: ") && text.hasSuffix("0\r\n\r\n"))
            // A browser that reconnects is told to stop.
            let again = try await web.request("GET", path, headers: Self.accept + ["Last-Event-ID: end"])
            #expect(again.status == 204)
        }
    }

    @Test func aStreamOfAnEndedRequestHasOneEvent() async throws {
        try await run { web, gate in
            let path = try await begin(web)
            gate.open()
            try await waitUntil("the end") { try await web.request("GET", path).json()["state"] as? String == "done" }
            let port = try #require(web.port)
            let text = try await onThread {
                var client = try RawHTTPClient(port: port)
                try client.send("GET", path, headers: Self.accept + ["Connection: close"])
                return String(decoding: client.readToEnd().bytes, as: UTF8.self)
            }
            #expect(try documents(text).count == 1)
            #expect(try await web.request("HEAD", path, headers: Self.accept)["content-type"] == "text/event-stream")
        }
    }

    @Test func aWaitEndsAlsoIfItsIntervalIsOverWhenItBegins() async {
        let request = AsyncRequest(client: nil)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<16 {
                group.addTask { for _ in 0..<1000 { await request.awaitEnd(within: .zero) } }
            }
        }
        #expect(request.current.outcome == nil)
    }

    @Test func aStreamWithoutNewsSendsComments() async throws {
        try await run {
            $0.timings.interval = .milliseconds(1)
            $0.timings.heartbeat = .milliseconds(5)
        } _: { web, gate in
            let path = try await begin(web)
            let port = try #require(web.port)
            let text = try await onThread {
                var client = try RawHTTPClient(port: port)
                try client.send("GET", path, headers: Self.accept)
                _ = try client.readHead()
                var text = ""
                while text.matches(of: /3\r\n:\n\n/).count < 3 {
                    text += String(decoding: try client.read(1), as: UTF8.self)
                }
                return text
            }
            #expect(try documents(text).count == 1)
        }
    }

    @Test func leavingAndStoppingEndTheStreams() async throws {
        try await run { web, gate in
            for isStop in [false, true] {
                let path = try await begin(web)
                let port = try #require(web.port)
                async let text = onThread {
                    var client = try RawHTTPClient(port: port)
                    try client.send("GET", path, headers: Self.accept + ["Connection: close"])
                    _ = try client.readHead()
                    return String(decoding: client.readToEnd().bytes, as: UTF8.self)
                }
                try await waitUntil("the stream") { web.statuses.streams == 1 }
                if isStop {
                    web.statuses.close()
                } else {
                    #expect(try await web.request("DELETE", path).status == 204)
                }
                let ended = try await text
                #expect(ended.hasSuffix("0\r\n\r\n"))
                #expect(try documents(ended).last?["state"] as? String == "failed")
            }
            #expect(
                try await web.request("GET", web.target("mp4", "/a.gif"), headers: ["Prefer: respond-async"]).code == "draining"
            )
        }
    }

    @Test func aClientThatHasLeftCostsNothing() async throws {
        try await run {
            $0.timings.interval = .milliseconds(1)
            $0.timings.heartbeat = .milliseconds(5)
        } _: { web, gate in
            let path = try await begin(web)
            let port = try #require(web.port)
            try await onThread {
                // Four streams at a time may follow one status.
                let streams = try (0..<4).map { _ in try Stream(port, path) }
                #expect(streams.map(\.status) == [200, 200, 200, 200])
                var client = try RawHTTPClient(port: port)
                let refused = try client.request("GET", path, headers: Self.accept)
                #expect(refused.status == 503 && refused["retry-after"] == "1")
            }
            try await waitUntil("the end of the streams") { web.statuses.streams == 0 }
            #expect(try await onThread { try Stream(port, path).status } == 200)
        }
    }

    /// A stream that is open as long as the value exists.
    private final class Stream {
        let status: Int
        private let client: RawHTTPClient

        init(_ port: Int, _ path: String) throws {
            var client = try RawHTTPClient(port: port)
            try client.send("GET", path, headers: EventStreamTests.accept)
            status = try client.readHead().status
            self.client = client
        }
    }
}
