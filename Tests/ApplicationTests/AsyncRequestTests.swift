import Foundation
import Glibc
import TestSupport
import Testing

@Suite("A client can watch a conversion and do without waiting for it", .timeLimit(.minutes(10)))
struct AsyncRequestTests {
    /// Takes an encoder seconds, because no part of a frame follows from another.
    private static let long = GIFBuilder.noise(frames: frames, width: 160, height: 120)
    private static let frames = 200

    /// A processor limit far from the usual one: a worker may be stopped for twice as long.
    private static let patient = ["limits.cpu=60s"]

    private struct Status: Decodable {
        var state: String
        var fetched_bytes: Int
        var total_bytes: Int?
        var frames_done: Int
        var frames_total: Int?
        var url: String?
    }

    private func begin(_ server: GifreelProcess, _ target: String) throws -> String {
        let answer = try server.request("GET", target, headers: ["Prefer: respond-async"])
        #expect(answer.status == 202)
        return try #require(answer["location"])
    }

    /// Passes on the events of a status until `body` returns false or the stream ends.
    private func follow(_ server: GifreelProcess, _ path: String, _ body: (Status) throws -> Bool) throws {
        var client = try RawHTTPClient(port: server.port)
        try client.send("GET", path, headers: ["Accept: text/event-stream"])
        #expect(try client.readHead()["content-type"] == "text/event-stream")
        while true {
            let size = try #require(Int(try line(&client), radix: 16))
            let chunk = try client.read(size)
            #expect(try line(&client).isEmpty)
            if size == 0 { return }
            for line in String(decoding: chunk, as: UTF8.self).split(separator: "\n") where line.hasPrefix("data: ") {
                let status = try JSONDecoder().decode(Status.self, from: Data(line.dropFirst(6).utf8))
                guard try body(status) else { return }
            }
        }
    }

    private func line(_ client: inout RawHTTPClient) throws -> String {
        var bytes: [UInt8] = []
        while bytes.suffix(2) != [13, 10] { bytes += try client.read(1) }
        return String(decoding: bytes.dropLast(2), as: UTF8.self)
    }

    /// The document at the path of a status.
    private func status(_ server: GifreelProcess, _ path: String) throws -> Status {
        try JSONDecoder().decode(Status.self, from: Data(try server.request("GET", path).body))
    }

    /// Stops (SIGSTOP) the worker of the only conversion of a server.
    ///
    /// - Returns: The worker; nil if the conversion ended first.
    private func stopWorker(_ server: GifreelProcess, _ path: String) throws -> Int32? {
        var stopped: Int32?
        try blockUntil("a stopped worker or the end of the conversion") {
            for worker in server.workers { kill(worker, SIGSTOP) }
            stopped = server.workers.first(where: isStopped)
            return try stopped != nil || ["done", "failed"].contains(status(server, path).state)
        }
        return stopped
    }

    /// Whether a process is stopped by a signal (proc_pid_stat(5)).
    private func isStopped(_ process: Int32) -> Bool {
        let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        return text?.split(separator: ")").last?.hasPrefix(" T") == true
    }

    /// Lets a stopped worker run until frames are done, and stops it again. It runs for longer each time, so that a busy machine
    /// does not keep it from running at all.
    ///
    /// - Returns: Whether it was stopped before its end.
    private func runWorkerToFirstFrames(_ worker: Int32, _ server: GifreelProcess, _ path: String) throws -> Bool {
        var slice: Duration = .milliseconds(10)
        while isStopped(worker) {
            if (1..<Self.frames).contains(try status(server, path).frames_done) { return true }
            kill(worker, SIGCONT)
            let end = ContinuousClock.now + slice
            try blockUntil("\(slice)") { ContinuousClock.now >= end }
            slice = slice * 3 / 2
            kill(worker, SIGSTOP)
            try blockUntil("the stop of the worker or its end") { isStopped(worker) || !server.workers.contains(worker) }
        }
        return false
    }

    /// Runs a test that stops a worker, again if the machine was so busy that the conversion ended first.
    ///
    /// - Parameter body: Returns false if the conversion ended before its worker was stopped.
    private func withLongSource(_ body: (_ server: GifreelProcess, _ origin: LoopbackOrigin) throws -> Bool) throws {
        for _ in 1...3 {
            let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(Self.long) }])
            defer { origin.stop() }
            if try body(GifreelProcess(Self.patient), origin) { return }
        }
        Issue.record("no worker could be stopped")
    }

    @Test func theProgressRisesToAllFramesWhileThePosterIsAvailable() throws {
        try withLongSource { server, origin in
            let target = "/mp4/" + origin.url("/a.gif")
            let path = try begin(server, target)
            guard let worker = try stopWorker(server, path) else { return false }
            defer { kill(worker, SIGCONT) }
            guard try runWorkerToFirstFrames(worker, server, path) else { return false }
            let poster = try server.request("GET", "/jpg/" + origin.url("/a.gif"))
            #expect(poster.status == 200 && poster["content-type"] == "image/jpeg")
            #expect(try status(server, path).state == "encoding", "the poster came after the video")
            var statuses: [Status] = []
            try follow(server, path) { status in
                statuses.append(status)
                kill(worker, SIGCONT)
                return true
            }
            let counts = statuses.map(\.frames_done)
            #expect(counts == counts.sorted() && statuses.first?.state == "encoding", "\(counts)")
            #expect(counts.first.map { $0 > 0 && $0 < Self.frames } == true, "\(counts)")
            #expect(statuses.allSatisfy { $0.frames_total == Self.frames })
            let last = try #require(statuses.last)
            #expect(last.state == "done" && last.frames_done == Self.frames && last.url == target, "\(server.log)")
            #expect(last.fetched_bytes == Self.long.count && last.total_bytes == Self.long.count)
            let rendition = try server.request("GET", target)
            #expect(rendition.status == 200 && rendition["cache-status"] == "gifreel; hit")
            // Poster and video share the fetch.
            #expect(origin.count("/a.gif") == 1)
            try blockUntil("the end of the status") {
                try server.request("GET", "/metrics").text.contains("gifreel_async_statuses{state=\"ended\"} 1")
            }
            return true
        }
    }

    @Test func aConversionThatRunsGoesOnWithoutItsClient() throws {
        try withLongSource { server, origin in
            let target = "/mp4/" + origin.url("/a.gif")
            let path = try begin(server, target)
            guard let worker = try stopWorker(server, path) else { return false }
            defer { kill(worker, SIGCONT) }
            #expect(try server.request("DELETE", path).status == 204)
            #expect(try server.request("GET", path).status == 404)
            let misses = try lookupsWithoutResult(server)
            var client = try RawHTTPClient(port: server.port, timeout: 120)
            try client.send("GET", target)
            try blockUntil("the lookup of the second request") { try lookupsWithoutResult(server) > misses }
            kill(worker, SIGCONT)
            #expect(try client.readResponse()["cache-status"] == "gifreel; fwd=miss; collapsed")
            #expect(origin.count("/a.gif") == 1)
            return true
        }
    }

    private func lookupsWithoutResult(_ server: GifreelProcess) throws -> Int {
        let metrics = try server.request("GET", "/metrics").text
        return try #require(metrics.firstMatch(of: /gifreel_cache_misses_total (\d+)/).flatMap { Int($0.1) })
    }

    @Test func aStopEndsTheStreamsAtOnce() throws {
        let gate = try LoopbackGate()
        let origin = try LoopbackOrigin(["/a.gif": { _ in LoopbackAnswer.ok(Self.long).after(gate) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["server.drain_timeout=10m"])
        let path = try begin(server, "/mp4/" + origin.url("/a.gif"))
        var last: Status?
        try follow(server, path) { status in
            if last == nil { kill(server.identifier, SIGTERM) }
            last = status
            return true
        }
        #expect(last?.state == "failed")
        #expect(server.waitForExit() == 0)
    }
}
