import SystemIO
import TestSupport
import Testing

@testable import Fleet

@Suite("Live nodes are listed", .enabled(if: RedisServer.isAvailable)) struct NodeRegistryTests {
    /// The context's own connection is not used.
    private func registry(_ name: String, _ link: RedisLink) -> NodeRegistry {
        NodeRegistry(.test(link, name: name, timings: .generous))
    }

    @Test func aDeadNodeIsTakenOffTheList() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let (one, two, three) = (registry("one", link), registry("two", link), registry("three", link))
        for node in [one, two, three] { try await node.register(link) }
        try server.run("DEL", "{test}:v1:node:two")
        #expect(try await one.liveNodes(link) == ["one", "three"])
        #expect(try server.run("SISMEMBER", "{test}:v1:nodes", "two") == ":0\r\n")
        #expect(try server.run("SCARD", "{test}:v1:nodes") == ":2\r\n")
    }

    @Test func aNodeThatComesBackDuringALookStaysListed() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let (one, two) = (registry("one", link), registry("two", link))
        try await one.register(link)
        try server.run("SADD", "{test}:v1:nodes", "two")
        let interrupted = InterruptedCommands(base: link) { command in
            if command.arguments[0] == Array("MGET".utf8) { try? await two.register(link) }
        }
        #expect(try await one.liveNodes(interrupted) == ["one"])
        #expect(try await one.liveNodes(link) == ["one", "two"])
    }

    @Test func looksDuringARegistrationDoNotUndoIt() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let (one, two) = (registry("one", link), registry("two", link))
        try await one.register(link)
        try server.run("SADD", "{test}:v1:nodes", "two")
        try await two.register(InterruptedCommands(base: link) { _ in _ = try? await one.liveNodes(link) })
        #expect(try await one.liveNodes(link) == ["one", "two"])
    }

    @Test func aNodeThatRegistersDuringALookupIsKnown() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let (one, two) = (registry("one", link), registry("two", link))
        try await one.register(link)
        let interrupted = InterruptedCommands(base: link) { command in
            guard command.arguments[0] == Array("SMEMBERS".utf8) else { return }
            try? await two.register(link)
            one.registered("two")
        }
        _ = try await one.liveNodes(interrupted)
        try server.run("DEL", "{test}:v1:nodes")
        #expect(try await one.liveNodes(link) == ["one", "two"])
    }

    /// A server in another region may be far away.
    @Test func aLookUpOfTheNodesMayTakeTheLimitForEachCommand() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let proxy = try FaultProxy(to: server.port)
        defer { proxy.stop() }
        let link = try await RedisLink.connected("redis://127.0.0.1:\(proxy.port)")
        defer { link.close() }
        var timings = ClusterTimings()
        timings.commandLimit = .seconds(3)
        let one = NodeRegistry(.test(link, name: "one", timings: timings))
        try await one.register(link)
        proxy.faults = .delay(.milliseconds(1800))
        #expect(try await one.liveNodes(ClusterContext.test(link, timings: timings)) == ["one"])
    }

    @Test(arguments: [
        ["FLUSHALL"], ["DEL", "{test}:v1:nodes"], ["DEL", "{test}:v1:nodes", "{test}:v1:node:one", "{test}:v1:node:two"],
    ])
    func nodesThatTheServerHasLostCountAsLive(_ loss: [String]) async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        for first in 0..<3 {
            let (one, two) = (registry("one", link), registry("two", link))
            for node in [two, one] { try await node.register(link) }
            _ = try server.run(loss)
            switch first {
            case 0: break
            case 1: _ = try await one.beat(link, at: .zero)
            default: try await one.register(link)
            }
            // Two has not noticed the loss, and may still send what it has stored.
            for _ in 0..<2 { #expect(try await one.liveNodes(link) == ["one", "two"]) }
        }
    }

    @Test func heartbeatsRestoreAListThatTheServerHasLost() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let link = try await RedisLink.connected(server.unixAddress)
        defer { link.close() }
        let (one, two) = (registry("one", link), registry("two", link))
        for node in [one, two] { try await node.register(link) }
        // Simulates an eviction, which leaves the nodes' own keys.
        try server.run("DEL", "{test}:v1:nodes")
        for node in [one, two] { #expect(try await node.beat(link, at: .zero)) }
        #expect(try await one.liveNodes(link) == ["one", "two"])
    }

    @Test func nodesOfAnotherDatabaseAreNotHeard() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.address), try TestNode("two", server.address + "/1"))
        try await one.joined()
        try await two.joined()
        for channel in ["{test}:v1:events", "{test}:v1:events:1"] {
            #expect(try server.run("PUBSUB", "NUMSUB", channel).hasSuffix("\r\n:1\r\n"))
        }
    }
}

/// Sends each command alone, and does something else between it and the next one.
private struct InterruptedCommands: RedisCommands {
    let base: any RedisCommands
    let interruption: @Sendable (RedisCommand) async -> Void

    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue] {
        var replies: [RedisValue] = []
        for command in commands {
            replies += try await base.replies(to: [command], within: limit)
            await interruption(command)
        }
        return replies
    }
}

extension ClusterTimings {
    fileprivate static var generous: ClusterTimings {
        var timings = ClusterTimings()
        timings.commandLimit = .seconds(10)
        return timings
    }
}

extension NodeRegistry {
    fileprivate func register(_ commands: any RedisCommands) async throws(RedisError) {
        try await register(ClusterContext.test(commands, timings: .generous))
    }

    fileprivate func beat(_ commands: any RedisCommands, at position: StreamID) async throws(RedisError) -> Bool {
        try await beat(ClusterContext.test(commands, timings: .generous), at: position)
    }

    fileprivate func liveNodes(_ commands: any RedisCommands) async throws(RedisError) -> [String] {
        try await liveNodes(ClusterContext.test(commands, timings: .generous))
    }
}
