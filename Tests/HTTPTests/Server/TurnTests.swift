import Glibc
import TestSupport
import Testing

@testable import HTTP

/// Turns of several connections at once: all are read, then answered, then sent.
@Suite("Connections are served in turns") struct TurnTests {
    /// Answers with the request's path and the length of its target; blocks the loop at `/hold` until `isHeld` is false.
    private static func handler(_ isHeld: Shared<Bool>, _ isHolding: Shared<Bool>) -> ClosureHandler {
        ClosureHandler { request in
            if request.target == "/hold" {
                isHolding.update { $0 = true }
                try? isHeld.block { !$0 }
            }
            let target = request.target
            return .now(
                HTTPResponse(
                    status: 200, contentType: "text/plain", text: "\(target.prefix { $0 != "?" }) \(target.utf8.count)"))
        }
    }

    @Test func requestsOfOneTurnAreAnsweredOnTheirConnections() async throws {
        let isHeld = Shared(true)
        let isHolding = Shared(false)
        try await withServer(Self.handler(isHeld, isHolding), configure: { $0.threads = 1 }) { _, port in
            try await onThread {
                // The poller knows the connections before the turn that the test is about.
                let clients = try (0..<50).map { _ in try RawClient(port: port) }
                for client in clients {
                    #expect(try client.request("GET /first HTTP/1.1\r\nHost: h\r\n\r\n").text == "/first 6")
                }
                let holder = try RawClient(port: port)
                try holder.send("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n")
                try isHolding.block { $0 }
                // Together more than is read at once.
                for (index, client) in clients.enumerated() {
                    let path = "/\(index)?" + String(repeating: "x", count: index * 100)
                    let rest = index % 10 == 3 ? "Connection: close\r\n\r\n" : index % 10 == 4 ? "" : "\r\n"
                    let next = index % 10 == 5 ? "GET /next\(index) HTTP/1.1\r\nHost: h\r\n\r\n" : ""
                    try client.send("GET \(path) HTTP/1.1\r\nHost: h\r\n\(rest)\(next)")
                    if index % 10 == 6 { client.finishSending() }
                }
                isHeld.update { $0 = false }
                #expect(try holder.response().text == "/hold 5")
                for (index, client) in clients.enumerated() {
                    if index % 10 == 4 { try client.send("\r\n") }
                    #expect(try client.response().text == "/\(index) \(index * 100 + "/\(index)?".utf8.count)")
                    if index % 10 == 3 || index % 10 == 6 {
                        #expect(client.isClosed())
                    } else if index % 10 == 5 {
                        #expect(try client.response().text == "/next\(index) \("/next\(index)".utf8.count)")
                    } else {
                        #expect(try client.request("GET /last HTTP/1.1\r\nHost: h\r\n\r\n").text == "/last 5")
                    }
                }
            }
        }
    }

    @Test func aPingIsAnsweredOnceNoLoopHangs() async throws {
        let isHeld = Shared(true)
        let isHolding = Shared(false)
        try await withServer(Self.handler(isHeld, isHolding)) { server, port in
            let wasHeld = Shared<Bool?>(nil)
            try await onThread {
                let holder = try RawClient(port: port)
                try holder.send("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n")
                try isHolding.block { $0 }
                server.ping { isHeld.update { held in wasHeld.update { $0 = held } } }
                isHeld.update { $0 = false }
                #expect(try holder.response().text == "/hold 5")
                try wasHeld.block { $0 != nil }
            }
            #expect(wasHeld.value == false)
            await server.stop()
            // Loops that have ended do not hang.
            let isAnswered = Shared(false)
            server.ping { isAnswered.update { $0 = true } }
            #expect(isAnswered.value)
        }
    }

    @Test func responseThatDoesNotFitTheSocketIsSentLater() async throws {
        let lines = Shared<[String]>([])
        let asked = Shared(0)
        let content = (0..<30_000).map { UInt8(truncatingIfNeeded: $0 % 241) }
        let handler = ClosureHandler { _ in
            asked.update { $0 += 1 }
            return .now(HTTPResponse(status: 200, headers: ["Content-Type": "video/mp4"], body: .bytes(content)))
        }
        try await withServer(handler, observer: AccessCollector(lines: lines)) { server, port in
            let count = try await onThread {
                let client = try RawClient(port: port, receiveBuffer: 4096)
                var count = 0
                // One after the other, until a response fills the buffers and the next request is not read.
                while asked.value == count {
                    count += 1
                    try client.send("GET /\(count) HTTP/1.1\r\nHost: h\r\n\r\n")
                    try? blockUntil("the request", within: .seconds(2)) { asked.value >= count }
                }
                // A smaller number would fit the buffers of the sockets.
                #expect(count > 2)
                for _ in 1...count { #expect(try client.response().body == content) }
                return count
            }
            await server.drain()
            #expect(lines.value == (1...count).map { "127.0.0.1 GET /\($0) 200 30000 true []" })
        }
    }

    @Test func responseToAClientThatHasLeftIsRecordedAsIncomplete() async throws {
        let lines = Shared<[String]>([])
        let leave = Shared<(@Sendable () -> Void)?>(nil)
        let handler = ClosureHandler { _ in
            leave.value?()
            return .now(HTTPResponse(status: 200, contentType: "text/plain", text: "too late"))
        }
        try await withServer(handler, observer: AccessCollector(lines: lines)) { _, port in
            try await onThread {
                let client = try RawClient(port: port)
                try withExtendedLifetime(client) {
                    let descriptor = client.descriptor
                    leave.update { $0 = { RawClient.reset(descriptor) } }
                    try client.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
                    try lines.block { !$0.isEmpty }
                }
            }
        }
        #expect(lines.value == ["127.0.0.1 GET /a 200 0 false []"])
    }
}
