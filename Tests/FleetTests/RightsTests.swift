import Foundation
import Store
import SystemIO
import TestSupport
import Testing

@testable import Fleet

@Suite("A node needs no more rights than are documented", .enabled(if: RedisServer.isAvailable)) struct RightsTests {
    private let url = "https://origin.test/a.gif"
    /// A source whose purge overtakes no flight of these tests, however soon after it they begin.
    private let purged = PurgeScope.url("https://origin.test/purged.gif")

    /// The rights after the user's name in `ACL SETUSER gifreel …` of docs/cluster.md.
    private func documentedRights() throws -> [String] {
        let document = URL(filePath: #filePath).appending(path: "../../../docs/cluster.md").standardized
        let text = try String(contentsOf: document, encoding: .utf8)
        let lines = text.split(separator: "\n").drop { !$0.hasPrefix("ACL SETUSER gifreel ") }.prefix { $0 != "```" }
        return lines.joined(separator: " ").split(separator: " ").map { String($0) }.filter { $0 != "\\" }
    }

    /// The documented rights but the given ones, for the cluster of the tests.
    private func rights(without missing: Set<String>) throws -> [String] {
        let rights = try documentedRights().map {
            $0.replacing("{gifreel}:*", with: "{test}:*").replacing(">password", with: ">secret")
        }
        try #require(rights.count > 20 && missing.isSubset(of: rights))
        return rights.filter { !missing.contains($0) }
    }

    /// A server with the user `gifreel`, who has the documented rights but the given ones, and its address for that user.
    private func server(without missing: Set<String>) async throws -> (RedisServer, String) {
        let server = try await RedisServer()
        #expect(try server.run(try rights(without: missing)) == "+OK\r\n")
        return (server, server.unixAddress + "?user=gifreel&password=secret")
    }

    private func session(_ address: String) throws(RedisError) -> Session {
        guard let address = try? RedisAddress(address) else { throw .unavailable("no address") }
        let rights = ClusterKeys(name: "test").rights
        return try Session(address, channel: nil, rights: rights, within: .seconds(10), TimeSource.system)
    }

    @Test func theDocumentedRightsAreThoseThatAreTried() throws {
        let documented = Set(try documentedRights().filter { $0.hasPrefix("+") }.map { $0.dropFirst() })
        // The others are needed by the connections themselves.
        let tried = Set(ClusterKeys(name: "test").rights.trials.map(\.name).map { $0[...] })
        #expect(documented == tried.union(["ping", "select", "subscribe"]))
    }

    @Test func everyMissingRightIsNamed() async throws {
        let names = ClusterKeys(name: "test").rights.trials.map(\.name).map { "+\($0)" }
        let (server, address) = try await server(without: [])
        defer { server.stop() }
        #expect(try session(address).server.contains(/\ [0-9]+\./))
        for name in Set(names + ["~{test}:*", "&{test}:*"]).sorted() {
            _ = try server.run(["ACL", "SETUSER", "gifreel", "reset"])
            _ = try server.run(try rights(without: [name]))
            let error = #expect(throws: RedisError.self) { try session(address) }
            #expect(error?.description == "the user lacks rights in the server: \(name)")
        }
    }

    @Test func aCommandThatTheServerLacksIsNamed() async throws {
        let server = try await RedisServer(options: ["--rename-command", "XAUTOCLAIM", "", "--rename-command", "EVAL", ""])
        defer { server.stop() }
        let error = #expect(throws: RedisError.self) { try session(server.address) }
        #expect(error?.description == "the user lacks rights in the server: +xautoclaim +eval")
    }

    @Test func aNodeWithoutARightWorksAloneAndSaysWhy() async throws {
        let (server, address) = try await server(without: ["+xclaim", "+llen"])
        defer { server.stop() }
        let node = try TestNode("one", address)
        try await waitUntil("the reason") { node.events.contains { $0.description.contains("+llen +xclaim") } }
        #expect(await node.cluster.flights.findOrLead("a", sourceURL: url).error != nil)
        // It takes part as soon as it may.
        try server.run("ACL", "SETUSER", "gifreel", "+xclaim", "+llen")
        try await node.joined()
    }

    @Test func aRefusedSubscriptionIsReportedOnce() async throws {
        let (server, address) = try await server(without: ["+subscribe"])
        defer { server.stop() }
        let node = try TestNode("one", address)
        try await waitUntil("the report") { node.events.contains { if case .deaf = $0 { true } else { false } } }
        try await waitUntil("the node to join") { node.cluster.isSharing }
        try server.run("ACL", "SETUSER", "gifreel", "+subscribe")
        try await node.joined()
        #expect(node.events.count { if case .deaf = $0 { true } else { false } } == 1)
    }

    /// A look at the nodes that fails does not make this node the only one.
    @Test func aPurgeWithoutALookAtTheNodesIsNotComplete() async throws {
        let (server, address) = try await server(without: [])
        defer { server.stop() }
        let (one, two) = (try TestNode("one", address), try TestNode("two", address))
        try await one.joined()
        try await two.joined()
        try server.run("ACL", "SETUSER", "gifreel", "-mget")
        let report = await one.cluster.purger.broadcast(.url(url))
        #expect(report.nodes == 2 && report.acknowledged < 2)
        try server.run("ACL", "SETUSER", "gifreel", "+mget")
        try await one.joined()
        try await two.joined()
        try await waitUntil("a complete purge") {
            let report = await one.cluster.purger.broadcast(.url(url))
            return report.nodes == 2 && report.acknowledged == 2
        }
    }

    @Test func aRedisClusterOfOneShardIsAServer() async throws {
        let server = try await RedisServer(isCluster: true)
        defer { server.stop() }
        try server.run("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        try await waitUntil("the slots") { try server.run("CLUSTER", "INFO").contains("cluster_state:ok") }
        let (one, two) = (try TestNode("one", server.address), try TestNode("two", server.address))
        try await one.joined()
        try await two.joined()
        #expect(await one.cluster.purger.broadcast(purged).acknowledged == 2)
        let lease = try #require(await one.cluster.flights.findOrLead("a1", sourceURL: url).lease)
        #expect(await lease.complete(.test("object1"), lifetime: .seconds(60)))
        #expect(await two.cluster.flights.findOrLead("a1", sourceURL: url).record != nil)
        _ = try await one.cluster.prewarm.add("list1", [[1]])
        let ticket = try #require(try await two.cluster.prewarm.claim(1).first)
        #expect(try await two.cluster.prewarm.finish(ticket, PrewarmOutcome(kind: .new, bytes: 1, sourceBytes: 2)))
    }

    @Test(arguments: [
        (
            "*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n6.2.7\r\n",
            "the server is redis 6.2.7; version 7.0 or newer is required"
        ),
        (
            "-ERR unknown command `HELLO`, with args beginning with: `2`, \r\n",
            "the server is older than redis 6.0; version 7.0 or newer is required"
        ),
        (
            "*4\r\n$7\r\nversion\r\n$5\r\n7.2.4\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n",
            "the server is a Sentinel; the address of Redis or Valkey itself is required"
        ),
        ("*2\r\n$6\r\nserver\r\n$5\r\nredis\r\n", "the server's reply makes no sense: a greeting without a version"),
    ]) func aServerThatNodesCannotUseIsNamed(_ greeting: String, _ description: String) async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let faults = FaultProxy.Faults(responses: FaultProxy.Stream(failure: .garbage(Array(greeting.utf8))))
        let proxy = try FaultProxy(to: server.port, faults: faults)
        defer { proxy.stop() }
        let error = #expect(throws: RedisError.self) { try session("redis://127.0.0.1:\(proxy.port)") }
        #expect(error?.description == description)
    }

    @Test func aServerThatRefusesWritesDoesNotPassTheCheck() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let configuration = try ClusterConfiguration(address: server.address, name: "test", node: "one")
        #expect(try Cluster.check(configuration).contains(/\ [0-9]+\./))
        try server.run("REPLICAOF", "127.0.0.1", "1")
        let error = #expect(throws: RedisError.self) { try Cluster.check(configuration) }
        #expect(error?.description.contains("READONLY") == true)
    }

    @Test func aServerWithTooManyClientsIsQuoted() async throws {
        let server = try await RedisServer(options: ["--maxclients", "1"])
        defer { server.stop() }
        // libcurl takes a Unix socket that is closed at once for one that refuses.
        let first = try session(server.address)
        withExtendedLifetime(first) {
            let error = #expect(throws: RedisError.self) { try session(server.address) }
            #expect(error?.description.contains("ERR max number of clients reached") == true)
        }
    }

    @Test func everythingThatNodesDoTogetherIsAllowed() async throws {
        let (server, address) = try await server(without: [])
        defer { server.stop() }
        let (one, two) = (try TestNode("one", address), try TestNode("two", address))
        try await one.joined()
        try await two.joined()

        let report = await one.cluster.purger.broadcast(purged)
        #expect(report.nodes == 2 && report.acknowledged == 2)
        let lease = try #require(await one.cluster.flights.findOrLead("a1", sourceURL: url).lease)
        async let follower = two.cluster.flights.findOrLead("a1", sourceURL: url)
        #expect(await lease.complete(.test("object1"), lifetime: .seconds(60)))
        #expect(await follower.record?.objectID == .test("object1"))
        let released = try #require(await one.cluster.flights.findOrLead("a2", sourceURL: url).lease)
        await released.release()
        _ = try await one.cluster.prewarm.add(PrewarmOrder(id: "list1", payloads: [[1], [2]]), limit: 2)
        #expect(await two.cluster.prewarm.arrivals.wait(for: .seconds(30)))
        let outcomes = [
            PrewarmOutcome(kind: .new, bytes: 1, sourceBytes: 2),
            PrewarmOutcome(code: "source_gone", detail: "It is gone."),
        ]
        for (number, ticket) in try await two.cluster.prewarm.claim(2).enumerated() {
            let result = PrewarmReport.Result(number: number, outcome: outcomes[number])
            #expect(try await two.cluster.prewarm.finish(ticket, result, url: url))
        }
        let list = try await one.cluster.prewarm.report("list1", from: 0)
        #expect(list?.errors?.map(\.code) == ["source_gone"] && list?.results?.map(\.outcome) == outcomes)
        #expect(try await !one.cluster.statuses.write("s", [1], for: .seconds(60)))
        #expect(try await two.cluster.statuses.cancel("s"))
        await one.cluster.leave()
        await two.cluster.leave()
        #expect(try server.run(["ACL", "LOG"]) == "*0\r\n")
    }
}
