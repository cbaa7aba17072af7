import Foundation
import Glibc
import TestSupport
import Testing

@Suite("Workers that end early leave nothing behind", .serialized) struct WorkerFaultTests {
    /// Keeps an encoder busy for many seconds: a dot that blinks on a large canvas.
    private static let long: [UInt8] = {
        var builder = GIFBuilder(width: 2000, height: 2000)
        for index in 0..<4000 {
            builder.add(GIFBuilder.Frame(width: 1, height: 1, color: UInt8(2 + index % 3))) { $0.delay = 2 }
        }
        return builder.finish()
    }()

    private static let settings = ["limits.total_pixels=100000000000", "limits.cpu=60s"]

    /// Processor time of a process, which the kernel counts in hundredths of a second (proc_pid_stat(5)).
    private static func processorMilliseconds(of process: Int32) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        // The name in parentheses may contain spaces; user and system time are the 12th and 13th field after it.
        let fields = text.split(separator: ")").last?.split(separator: " ").map(String.init) ?? []
        return try #require(fields.count > 12 ? Int(fields[11]) : nil) * 10 + (Int(fields[12]) ?? 0) * 10
    }

    /// Milliseconds of processor time after the worker's start: before, during and after the encoder's first pictures.
    @Test(arguments: [0, 30, 400]) func aKilledWorkerStoresNothingAndTheNextJobSucceeds(_ delay: Int) throws {
        let server = try GifreelProcess(Self.settings)
        var client = try RawHTTPClient(port: server.port)
        try client.send(Array("POST /mp4 HTTP/1.1\r\nHost: a\r\nContent-Length: \(Self.long.count)\r\n\r\n".utf8))
        try client.send(Self.long)
        try blockUntil("\(delay) ms of processor time of a worker") {
            try server.workers.contains { try Self.processorMilliseconds(of: $0) >= delay }
        }
        for worker in server.workers { kill(worker, SIGKILL) }
        let answer = try client.readResponse()
        #expect(answer.status == 503 && answer["retry-after"] != nil && answer["cache-control"] == "no-store")
        let body = String(decoding: answer.body, as: UTF8.self)
        #expect(body.contains("overloaded") && body.contains("The conversion was interrupted on the server."))
        try server.waitForLog(" warning gifreel: request failed cause=\"the worker was killed by signal 9 after ")
        try server.waitForLog(" s of CPU time; possibly out of memory\" client=127.0.0.1 code=overloaded ")
        #expect(server.storedObjects().isEmpty)
        #expect(try server.request("POST", "/mp4", body: GIFBuilder.animation(frames: 3)).status == 200)
        #expect(server.storedObjects().count == 1)
    }

    @Test func nothingIsStoredOfAWorkerThatTakesTooLong() throws {
        let server = try GifreelProcess(["limits.total_pixels=100000000000", "limits.cpu=1s"])
        // On a busy machine the worker may reach its wall-clock limit first, and the client is told to try again.
        try blockUntil("an answer about the processor limit") {
            let status = try server.request("POST", "/mp4", body: Self.long).status
            #expect([422, 503].contains(status))
            return status == 422
        }
        #expect(server.storedObjects().isEmpty)
        #expect(try server.request("POST", "/mp4", body: GIFBuilder.animation(frames: 3)).status == 200)
    }

    /// The wall-clock limit is twice the processor limit; a stopped worker uses no processor time.
    @Test func aConversionOverTheWallClockLimitIsTheServersFaultAndIsTriedAgainLater() throws {
        let gif = Self.long
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["limits.total_pixels=100000000000", "limits.cpu=1s"])
        var client = try RawHTTPClient(port: server.port)
        try client.send(Array("GET /mp4/\(origin.url("/a.gif")) HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        try blockUntil("a running worker") { !server.workers.isEmpty }
        for worker in server.workers { kill(worker, SIGSTOP) }
        let answer = try client.readResponse()
        #expect(answer.status == 503 && answer["retry-after"] == "2" && answer["cache-control"] == "no-store")
        #expect(answer["cache-status"]?.contains("negative") != true)
        // As long as the attempt took, no other one takes a worker.
        let again = try server.mp4(origin.url("/a.gif"))
        #expect(again.status == 503 && again["cache-status"]?.contains("negative") == true)
        #expect(again["retry-after"] != nil && again["cache-control"] == "no-store")
        try blockUntil("another attempt") {
            try server.mp4(origin.url("/a.gif"))["cache-status"]?.contains("negative") != true
        }
    }

    @Test func aGIFOverTheMemoryLimitIsRemembered() throws {
        var builder = GIFBuilder(width: 2800, height: 2800)
        builder.add(GIFBuilder.Frame(width: 1, height: 1, color: 2))
        let gif = builder.finish()
        let origin = try LoopbackOrigin(["/a.gif": { _ in .ok(gif) }])
        defer { origin.stop() }
        let server = try GifreelProcess(["limits.memory=64MiB"])
        for round in 0..<2 {
            let answer = try server.request("GET", "/mp4/\(origin.url("/a.gif"))")
            #expect(answer.status == 422 && String(decoding: answer.body, as: UTF8.self).contains("needs more memory"))
            #expect((answer["cache-status"]?.contains("negative") == true) == (round == 1))
        }
    }

    @Test func theLossOfTheZygoteIsLoggedAndCounted() throws {
        let server = try GifreelProcess()
        #expect(try server.request("POST", "/mp4", body: GIFBuilder.animation(frames: 3)).status == 200)
        let zygote = try #require(server.zygotes.first)
        kill(zygote, SIGKILL)
        #expect(try server.request("POST", "/mp4", body: GIFBuilder.animation(frames: 4)).status == 200)
        try server.waitForLog("lost the zygote process")
        let metrics = try server.request("GET", "/metrics")
        #expect(String(decoding: metrics.body, as: UTF8.self).contains("gifreel_zygote_replacements_total 1"))
    }
}
