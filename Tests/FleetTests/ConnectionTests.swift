import Foundation
import Store
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Fleet

@Suite("Connections to a server", .enabled(if: RedisServer.isAvailable)) struct ConnectionTests {
    private let time = TimeSource.system

    /// Runs `body` with a connected link.
    private func withLink(_ address: String, _ body: (RedisLink) async throws -> Void) async throws {
        let events = Mutex<[RedisLink.Event]>([])
        let link = RedisLink(try RedisAddress(address), name: "test")
        link.start { event in events.withLock { $0.append(event) } }
        defer { link.close() }
        try await waitUntil("the connection: \(events.withLock { $0 })") { link.isConnected }
        try await body(link)
    }

    /// The first failure of a link that does not connect.
    private func failure(_ address: String) async throws -> RedisError {
        let failures = Mutex<[RedisError]>([])
        let link = RedisLink(try RedisAddress(address), name: "test")
        link.start { event in if case .failed(let error) = event { failures.withLock { $0.append(error) } } }
        defer { link.close() }
        try await waitUntil("a failure") { failures.withLock { !$0.isEmpty } }
        return failures.withLock { $0[0] }
    }

    @Test func pipelinesOfManyCallersGetTheirOwnReplies() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        try await withLink(server.unixAddress) { link in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<500 {
                    group.addTask {
                        let replies = try await link.run(
                            [
                                RedisCommand(.status, ["SET", "k\(number)", "v\(number)"]),
                                RedisCommand(.bytesOrNone, ["GET", "k\(number)"]),
                            ], within: .seconds(10))
                        return replies == [.status("OK"), .bytes(Array("v\(number)".utf8))]
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
        }
    }

    @Test func largeValuesPassWhole() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        try await withLink(server.address) { link in
            let value = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            let replies = try await link.run(
                [RedisCommand(.status, ["SET", "k", value]), RedisCommand(.bytesOrNone, ["GET", "k"])],
                within: .seconds(20))
            #expect(replies[1] == .bytes(value))
        }
    }

    @Test func aCommandHasADeadlineAndLaterRepliesAreSkipped() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        try await withLink(server.unixAddress) { link in
            server.pause(true)
            // The server replies to nothing, so only the deadline ends the command.
            await #expect(throws: RedisError.timedOut) {
                try await link.replies(to: [RedisCommand(.status, ["SET", "a", "1"])], within: .milliseconds(100))
            }
            server.pause(false)
            // On a slow machine, the link may have given up the connection, and connects again.
            var reply: RedisValue?
            try await waitUntil("a reply") {
                reply = try? await link.run(RedisCommand(.bytesOrNone, ["GET", "a"]), within: .seconds(5))
                return reply != nil
            }
            #expect(reply == .bytes([49]))
        }
    }

    @Test func aCancelledCallerLeavesAtOnce() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        try await withLink(server.unixAddress) { link in
            let blocking = Task {
                try await link.run(
                    RedisCommand(.arrayOrNone, ["BLPOP", "none", "30"]), within: .seconds(40))
            }
            try await waitUntil("the command to block") { try server.run("INFO", "clients").contains("blocked_clients:1") }
            blocking.cancel()
            await #expect(throws: RedisError.cancelled) { try await blocking.value }
        }
    }

    @Test func passwordsUsersAndDatabasesAreSent() async throws {
        let server = try await RedisServer(options: [
            "--user", "me", "on", ">p@ss", "~*", "&*", "+@all", "--user", "default", "off",
        ])
        defer { server.stop() }
        try await withLink("redis://me:p%40ss@127.0.0.1:\(server.port)/3") { link in
            _ = try await link.run(RedisCommand(.status, ["SET", "a", "1"]), within: .seconds(5))
            let reply = try await link.run(RedisCommand(.bytesOrNone, ["CLIENT", "INFO"]), within: .seconds(5))
            let list = try reply.text()
            #expect(list.contains("db=3") && list.contains("user=me"))
        }
        #expect(try await failure("redis://me:wrong@127.0.0.1:\(server.port)").kind == "noauth")
        #expect(try await failure("redis://127.0.0.1:\(server.port)").kind == "noauth")
    }

    @Test func theCertificateOfAServerIsVerified() async throws {
        let server = try await RedisServer(usesTLS: true)
        defer { server.stop() }
        try await withLink("rediss://127.0.0.1:\(server.port)?ca=\(server.certificate)") { link in
            let value = [UInt8](repeating: 7, count: 300_000)
            let replies = try await link.run(
                [RedisCommand(.status, ["SET", "k", value]), RedisCommand(.bytesOrNone, ["GET", "k"])],
                within: .seconds(10))
            #expect(replies[1] == .bytes(value))
        }
        let unknown = try await failure("rediss://127.0.0.1:\(server.port)")
        #expect(unknown.description.contains("certificate is not trusted"))
        let otherName = try await failure("rediss://localhost:\(server.port)?ca=\(server.certificate)")
        #expect(otherName.description.contains("certificate is not trusted"))
        #expect(try await failure("redis://127.0.0.1:\(server.port)").kind != "")
    }

    @Test func messagesOfASubscriptionArrive() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let messages = Mutex<[[UInt8]]>([])
        let link = RedisLink(
            try RedisAddress(server.unixAddress), name: "test", channel: "c")
        link.start(onMessage: { message in messages.withLock { $0.append(message) } })
        defer { link.close() }
        try await waitUntil("the subscription") { try server.run("PUBLISH", "c", "one").contains(":1") }
        try await waitUntil("the message") { messages.withLock { $0 } == [Array("one".utf8)] }
        // A subscription that is lost is made again.
        try server.kill()
        try await server.start()
        try await waitUntil("the subscription") { try server.run("PUBLISH", "c", "two").contains(":1") }
        try await waitUntil("the message") { messages.withLock { $0.last } == Array("two".utf8) }
    }

    @Test func aMessageThatComesWithTheConfirmationOfTheSubscriptionArrives() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let confirmation = "*2\r\n$7\r\nversion\r\n$3\r\n7.0\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
        let message = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\none\r\n"
        let responses = FaultProxy.Stream(failure: .garbage(Array((confirmation + message).utf8)))
        let proxy = try FaultProxy(to: server.port, faults: FaultProxy.Faults(responses: responses, failureLimit: 1))
        defer { proxy.stop() }
        let messages = Mutex<[[UInt8]]>([])
        let link = RedisLink(
            try RedisAddress("redis://127.0.0.1:\(proxy.port)"), name: "test", channel: "c")
        link.start(onMessage: { message in messages.withLock { $0.append(message) } })
        defer { link.close() }
        try await waitUntil("the message", within: .seconds(10)) { messages.withLock { $0 } == [Array("one".utf8)] }
    }

    @Test func anIdleSubscriptionIsCheckedAndReplaced() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let proxy = try FaultProxy(to: server.port)
        defer { proxy.stop() }
        let losses = Mutex(0)
        let link = RedisLink(
            try RedisAddress("redis://127.0.0.1:\(proxy.port)"), name: "test", channel: "c")
        link.start { event in if case .lost = event { losses.withLock { $0 += 1 } } }
        defer { link.close() }
        try await waitUntil("the connection") { link.isConnected }
        proxy.faults = FaultProxy.Faults(responses: FaultProxy.Stream(failure: .stall, after: 1), failureLimit: 1)
        try await waitUntil("the loss is noticed", within: .seconds(20)) { losses.withLock { $0 } == 1 }
        try await waitUntil("the connection") { link.isConnected }
    }

    @Test func theBreakerAdmitsOneProbeAtOnceAfterAReconnection() throws {
        let breaker = CircuitBreaker<RedisError>(
            BreakerLimits(failures: 2, pause: .seconds(3600), maxPause: .seconds(3600)), now: { [time] in time.now }
        ) { _ in }
        for expected in [BreakerPhase.closed, .open] {
            breaker.failed(try #require(breaker.admit()), .timedOut)
            #expect(breaker.phase == expected)
        }
        #expect(breaker.admit() == nil)
        breaker.retry()
        let probe = try #require(breaker.admit())
        #expect(breaker.admit() == nil && breaker.phase == .halfOpen)
        // A probe that is cancelled is followed by another one.
        breaker.abandoned(probe)
        breaker.succeeded(try #require(breaker.admit()))
        #expect(breaker.phase == .closed && breaker.admit() != nil && breaker.admit() != nil)
        breaker.trip(.timedOut)
        #expect(breaker.phase == .open && breaker.admit() == nil)
    }
}

extension RedisLink {
    fileprivate func run(_ commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue] {
        try await replies(to: commands, within: limit)
    }

    fileprivate func run(_ command: RedisCommand, within limit: Duration) async throws(RedisError) -> RedisValue {
        try await replies(to: [command], within: limit)[0]
    }
}
