import Foundation
import Glibc
import TestSupport
import Testing

@Suite("The server under pressure: many clients, few descriptors, slow clients", .timeLimit(.minutes(10))) struct PressureTests
{
    /// A client that a collection can hold.
    private final class Client {
        var connection: RawHTTPClient

        init(port: Int) throws {
            connection = try RawHTTPClient(port: port)
        }

        func send(_ text: String) throws { try connection.send(Array(text.utf8)) }
    }

    @Test func withFewDescriptorsEveryClientIsAnsweredInTheEnd() throws {
        let server = try GifreelProcess()
        let limiting = try ChildProcess(
            URL(fileURLWithPath: "/usr/bin/prlimit"), ["--pid", "\(server.identifier)", "--nofile=64:64"])
        try #require(try limiting.finish().code == 0)
        let clients = try (0..<120).map { _ in try Client(port: server.port) }
        for client in clients { try client.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n") }
        for client in clients { #expect(try client.connection.readResponse().status == 200) }
        #expect(try server.request("GET", "/healthz").status == 200)
    }

    @Test func withFewDescriptorsEverySourceIsAnswered() throws {
        let count = 60
        let gifs = (0..<count).map { GIFBuilder.animation(frames: 2, width: 8, height: 8, delay: 3 + $0) }
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        for (number, gif) in gifs.enumerated() { origin.on("/\(number).gif", .ok(gif)) }
        let server = try GifreelProcess(["mounts.m.origin=\(origin.url("/"))", "mounts.m.negotiate=true"])
        // Some more than an idle server has. Each source takes one for its rendition.
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(server.identifier)/fd").count
        let limiting = try ChildProcess(
            URL(fileURLWithPath: "/usr/bin/prlimit"), ["--pid", "\(server.identifier)", "--nofile=\(open + 30):\(open + 30)"])
        try #require(try limiting.finish().code == 0)
        for (number, gif) in gifs.enumerated() {
            try blockUntil("source \(number) is answered") {
                let answer = try server.request("GET", "/m/\(number).gif", headers: ["Accept: image/gif"])
                return answer.status == 200 && answer.body == gif
            }
        }
        try server.waitForLog("file descriptors are exhausted (limit \(open + 30))")
        #expect(try server.request("GET", "/m/0.gif", headers: ["Accept: image/gif"]).body == gifs[0])
    }

    @Test func slowClientsDelayNoOtherClient() throws {
        let server = try GifreelProcess()
        let upload = try server.request("POST", "/mp4", body: GIFBuilder.animation())
        let path = try #require(upload["content-location"])
        let slow = try (0..<90).map { _ in try Client(port: server.port) }
        for (index, client) in slow.enumerated() {
            switch index % 3 {
            case 0: try client.send("GET / HT")
            case 1: break
            default: try client.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
            }
        }
        for _ in 0..<50 {
            let hit = try server.request("GET", path)
            #expect(hit.status == 200 && hit.body == upload.body)
        }
        // They were there all the time: who asked still has the answer to read.
        for index in stride(from: 2, to: 90, by: 3) { #expect(try slow[index].connection.readResponse().body == upload.body) }
    }

    @Test func readinessEndsWithTermination() throws {
        let server = try GifreelProcess()
        var client = try RawHTTPClient(port: server.port)
        // A head is under way, so the connection is not idle when listening stops.
        try client.send(Array("GET /readyz HTTP/1.1\r\nHost: a\r\n".utf8))
        kill(server.identifier, SIGTERM)
        try server.waitForLog("draining")
        try client.send(Array("\r\n".utf8))
        let answer = try client.readResponse()
        #expect(answer.status == 503 && answer["retry-after"] != nil)
        #expect(server.waitForExit() == 0)
    }
}
