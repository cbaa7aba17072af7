import Foundation
import TestSupport
import Testing

@testable import Cluster

@Suite("A node needs no more rights than are documented", .enabled(if: RedisServer.isAvailable)) struct RightsTests {
    private let url = "https://origin.test/a.gif"

    /// The rights after the user's name in `ACL SETUSER gifreel …` of docs/cluster.md.
    private func documentedRights() throws -> [String] {
        let document = URL(filePath: #filePath).appending(path: "../../../docs/cluster.md").standardized
        let text = try String(contentsOf: document, encoding: .utf8)
        let lines = text.split(separator: "\n").drop { !$0.hasPrefix("ACL SETUSER gifreel ") }.prefix { $0 != "```" }
        return lines.joined(separator: " ").split(separator: " ").map { String($0) }.filter { $0 != "\\" }
    }

    @Test func everythingThatNodesDoTogetherIsAllowed() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        // The cluster of the tests has another name than the default.
        let rights = try documentedRights().map {
            $0.replacing("gifreel:*", with: "test:*").replacing(">password", with: ">secret")
        }
        try #require(rights.count > 20)
        #expect(try server.run(rights) == "+OK\r\n")
        let address = server.unixAddress + "?user=gifreel&password=secret"
        let (one, two) = (try TestNode("one", address), try TestNode("two", address))
        try await one.joined()
        try await two.joined()

        let report = await one.cluster.broadcastPurge(.url(url))
        #expect(report.nodes == 2 && report.acknowledged == 2)
        let lease = try #require(await one.cluster.joinFlight("a1", sourceURL: url).lease)
        async let follower = two.cluster.joinFlight("a1", sourceURL: url)
        #expect(await lease.complete(.test("object1"), lifetime: .seconds(60)) == .published)
        #expect(await follower.record?.objectID == "object1")
        let released = try #require(await one.cluster.joinFlight("a2", sourceURL: url).lease)
        await released.release()
        _ = try await one.cluster.prewarm.add("list1", [[1], [2]])
        try await waitUntil("the node is told") { two.prewarmSignals > 0 }
        let failure = SharedPrewarm.Failure(url: url, code: "source_gone", detail: "It is gone.")
        let outcomes = [.made(isHit: false, bytes: 1, saved: 1), SharedPrewarm.Outcome.failed(failure)]
        for (ticket, outcome) in zip(try await two.cluster.prewarm.claim(2), outcomes) {
            #expect(try await two.cluster.prewarm.finish(ticket, outcome))
        }
        #expect(try await one.cluster.prewarm.progress(of: "list1")?.errors == [failure])
        #expect(try await !one.cluster.statuses.write("s", [1], for: .seconds(60)))
        #expect(try await two.cluster.statuses.leave("s"))
        await one.cluster.leave()
        await two.cluster.leave()
        #expect(try server.run(["ACL", "LOG"]) == "*0\r\n")
    }
}
