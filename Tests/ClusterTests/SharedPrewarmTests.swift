import TestSupport
import Testing

@testable import Cluster

@Suite("All nodes work on prewarm lists", .enabled(if: RedisServer.isAvailable)) struct SharedPrewarmTests {
    @Test func everyEntryIsClaimedOnceAndCounted() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        try await one.cluster.prewarm.add("list1", (0..<450).map { Array("entry \($0)".utf8) })
        try await waitUntil("both nodes are told") { one.prewarmSignals > 0 && two.prewarmSignals > 0 }
        var seen: Set<String> = []
        var turn = 0
        while true {
            let node = [one, two][turn % 2]
            turn += 1
            let tickets = try await node.cluster.prewarm.claim(20)
            if tickets.isEmpty { break }
            for ticket in tickets {
                #expect(seen.insert(String(decoding: ticket.payload, as: UTF8.self)).inserted)
                let isOdd = seen.count % 2 == 1
                #expect(try await node.cluster.prewarm.finish(ticket, bytes: 10, error: isOdd ? "bad" : nil))
                #expect(try await !node.cluster.prewarm.finish(ticket, bytes: 10, error: nil))
            }
        }
        #expect(seen.count == 450)
        let progress = try #require(try await two.cluster.prewarm.progress(of: "list1"))
        #expect(progress.total == 450 && progress.done == 225 && progress.failed == 225 && progress.bytes == 4500)
        #expect(progress.errors == Array(repeating: "bad", count: SharedPrewarm.maxErrors))
        #expect(try await two.cluster.prewarm.progress(of: "other") == nil)
        #expect(try server.run("XLEN", "test:v1:prewarm") == ":0\r\n")
    }

    @Test func entriesOfADeadNodeAreClaimedByOthers() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        var timings = ClusterTimings.patient
        timings.claimTime = .milliseconds(200)
        let (one, two) = (
            try TestNode("one", server.unixAddress, timings: timings), try TestNode("two", server.unixAddress, timings: timings)
        )
        try await one.joined()
        try await two.joined()
        try await one.cluster.prewarm.add("list1", [[1], [2]])
        let claimed = try await one.cluster.prewarm.claim(2)
        #expect(claimed.count == 2)
        var taken: [SharedPrewarm.Ticket] = []
        try await waitUntil("the other node takes the entry that is not renewed") {
            try await one.cluster.prewarm.renew([claimed[0]])
            taken += try await two.cluster.prewarm.claim(2)
            return !taken.isEmpty
        }
        #expect(taken == [claimed[1]])
        #expect(try await two.cluster.prewarm.finish(taken[0], bytes: 1, error: nil))
        #expect(try await !one.cluster.prewarm.finish(claimed[1], bytes: 1, error: nil))
        #expect(try await one.cluster.prewarm.progress(of: "list1")?.done == 1)
    }

    @Test func entriesOfAListThatWasNotAddedWholeAreDropped() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        try await one.cluster.prewarm.add("list1", [[1], [2]])
        try server.run("DEL", "test:v1:prewarm:list1")
        #expect(try await one.cluster.prewarm.claim(10) == [])
        #expect(try server.run("XLEN", "test:v1:prewarm") == ":0\r\n")
    }
}
