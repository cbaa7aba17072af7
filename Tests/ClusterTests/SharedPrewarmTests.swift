import TestSupport
import Testing

@testable import Cluster

@Suite("All nodes work on prewarm lists", .enabled(if: RedisServer.isAvailable)) struct SharedPrewarmTests {
    private let made = SharedPrewarm.Outcome.made(isHit: false, bytes: 10, saved: 5)
    private let failure = SharedPrewarm.Failure(url: "https://origin.test/a.gif", code: "source_gone", detail: "It is gone.")

    @Test func everyEntryIsClaimedOnceAndCounted() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        _ = try await one.cluster.prewarm.add("list1", (0..<450).map { Array("entry \($0)".utf8) })
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
                let outcome = seen.count % 2 == 1 ? SharedPrewarm.Outcome.failed(failure) : made
                #expect(try await node.cluster.prewarm.finish(ticket, outcome))
                #expect(try await !node.cluster.prewarm.finish(ticket, made))
            }
        }
        #expect(seen.count == 450)
        let progress = try #require(try await two.cluster.prewarm.progress(of: "list1"))
        #expect(progress.total == 450 && progress.done == 225 && progress.failed == 225)
        #expect(progress.hits == 0 && progress.bytes == 2250 && progress.saved == 1125)
        #expect(progress.errors == Array(repeating: failure, count: 100))
        #expect(try await two.cluster.prewarm.progress(of: "other") == nil)
        #expect(try server.run("XLEN", "{test}:v1:prewarm") == ":0\r\n")
    }

    @Test func hitsAndSavedBytesAreCounted() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        _ = try await one.cluster.prewarm.add("list1", [[1], [2], [3]])
        let outcomes = [made, .made(isHit: true, bytes: 7, saved: 0), .failed(failure)]
        for (ticket, outcome) in zip(try await one.cluster.prewarm.claim(3), outcomes) {
            try await one.cluster.prewarm.finish(ticket, outcome)
        }
        #expect(
            try await one.cluster.prewarm.progress(of: "list1")
                == SharedPrewarm.Progress(total: 3, done: 2, failed: 1, hits: 1, bytes: 17, saved: 5, errors: [failure]))
    }

    @Test func singleOutcomesAreKeptInTheOrderOfTheirArrival() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        _ = try await one.cluster.prewarm.add("list1", [[1], [2], [3]])
        let tickets = try await one.cluster.prewarm.claim(3)
        for (number, ticket) in tickets.enumerated().reversed() {
            try await one.cluster.prewarm.finish(ticket, made, result: [UInt8(number)])
            // It counts once.
            try await two.cluster.prewarm.finish(ticket, made, result: [9])
        }
        let lists = two.cluster.prewarm
        #expect(try await lists.results(of: "list1", from: 0, limit: 10) == [[2], [1], [0]])
        #expect(try await lists.results(of: "list1", from: 1, limit: 1) == [[1]])
        #expect(try await lists.results(of: "list1", from: .max, limit: 1000).isEmpty)
        try await lists.cancel("list1")
        #expect(try await one.cluster.prewarm.results(of: "list1", from: 0, limit: 10).isEmpty)
    }

    @Test func theUnfinishedEntriesOfAllNodesAreBounded() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        #expect(try await one.cluster.prewarm.add("list1", [[1], [2], [3]], limit: 4) == nil)
        #expect(try await two.cluster.prewarm.add("list2", [[1], [2]], limit: 4) == .full(waiting: 3, limit: 4))
        #expect(try await two.cluster.prewarm.progress(of: "list2") == nil)
        let ticket = try #require(try await one.cluster.prewarm.claim(1).first)
        try await one.cluster.prewarm.finish(ticket, made)
        #expect(try await two.cluster.prewarm.add("list2", [[1], [2]], limit: 4) == nil)
    }

    @Test func listsAreReportedNewestFirstByEveryNode() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        for (number, node) in [one, two, one].enumerated() {
            #expect(try await node.cluster.prewarm.add("list\(number)", [[1]]) == nil)
        }
        try await two.cluster.prewarm.cancel("list1")
        let lists = try await two.cluster.prewarm.lists()
        #expect(lists.map(\.id) == ["list2", "list0"])
        let totals: [Int64] = lists.map(\.progress.total)
        let times: [Int64] = lists.map(\.added)
        #expect(totals == [1, 1])
        #expect(times[0] >= times[1] && times[1] > 0)
    }

    @Test func aRequestThatIsRepeatedAddsOneList() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let request = PrewarmRequest(key: "k", content: "c")
        #expect(try await one.cluster.prewarm.add("list1", [[1]], for: request) == nil)
        #expect(try await two.cluster.prewarm.add("list2", [[1]], for: request) == .known(id: "list1"))
        let other = PrewarmRequest(key: "k", content: "d")
        #expect(try await two.cluster.prewarm.add("list3", [[2]], for: other) == .conflict)
        #expect(try server.run("XLEN", "{test}:v1:prewarm") == ":1\r\n")
        // One that is not carried out to its end is in progress for a while.
        try server.run("SET", "{test}:v1:prewarm:request:k2", "c list4")
        let begun = PrewarmRequest(key: "k2", content: "c")
        #expect(try await two.cluster.prewarm.add("list5", [[1]], for: begun) == .inProgress)
        // One that is refused may be repeated.
        let refused = PrewarmRequest(key: "k3", content: "c")
        #expect(try await one.cluster.prewarm.add("list6", [[1]], limit: 1, for: refused) == .full(waiting: 1, limit: 1))
        #expect(try await one.cluster.prewarm.add("list6", [[1]], limit: 2, for: refused) == nil)
    }

    /// A policy that evicts keys with an expiry must not evict them.
    @Test func aListExpiresOnlyAfterItsEnd() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        _ = try await one.cluster.prewarm.add("list1", [[1], [2]])
        let tickets = try await one.cluster.prewarm.claim(2)
        try await one.cluster.prewarm.finish(tickets[0], .failed(failure))
        for key in ["", ":list1", ":list1:errors"] {
            #expect(try server.run("PTTL", "{test}:v1:prewarm" + key) == ":-1\r\n", "\(key)")
        }
        try await one.cluster.prewarm.finish(tickets[1], made)
        for key in [":list1", ":list1:errors"] {
            #expect(try server.run("PTTL", "{test}:v1:prewarm" + key) != ":-1\r\n", "\(key)")
        }
    }

    @Test func theEndOfAListWithACallbackIsReportedByOneNode() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        var timings = ClusterTimings.patient
        timings.claimTime = .milliseconds(100)
        let nodes = try ["one", "two"].map { try TestNode($0, server.unixAddress, timings: timings) }
        for node in nodes { try await node.joined() }
        let (one, two) = (nodes[0].cluster.prewarm, nodes[1].cluster.prewarm)
        _ = try await one.add("list1", [[1], [2]], callback: "https://a.test/hook")
        _ = try await one.add("list2", [[3]])
        for ticket in try await one.claim(3) { #expect(try await one.finish(ticket, made) && !ticket.isReport) }
        let report = try #require(try await one.claim(3).first)
        #expect(report.isReport && report.list == "list1")
        #expect(try await two.progress(of: "list1")?.callback == "https://a.test/hook")
        // The first node is gone before it has sent the report.
        var taken: [SharedPrewarm.Ticket] = []
        try await waitUntil("the other node takes the report") {
            taken += try await two.claim(3)
            return !taken.isEmpty
        }
        #expect(taken == [report])
        try await two.finishReport(report)
        #expect(try server.run("XLEN", "{test}:v1:prewarm") == ":0\r\n")
        #expect(try await two.progress(of: "list1")?.done == 2)
    }

    @Test func aListThatNeverEndsIsRemovedLater() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        try server.run("XADD", "{test}:v1:prewarm:lists", "1000-0", "l", "old")
        try server.run("HSET", "{test}:v1:prewarm:old", "total", "1")
        _ = try await one.cluster.prewarm.add("list1", [[1]])
        #expect(try server.run("EXISTS", "{test}:v1:prewarm:old") == ":0\r\n")
        #expect(try await one.cluster.prewarm.lists().map(\.id) == ["list1"])
    }

    @Test func aNodeThatLeavesIsNoConsumerUnlessItHasClaims() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        _ = try await one.cluster.prewarm.add("list1", [[1]])
        let ticket = try #require(try await one.cluster.prewarm.claim(1).first)
        #expect(try await two.cluster.prewarm.claim(1).isEmpty)
        await two.cluster.leave()
        await one.cluster.leave()
        let consumers = try server.run("XINFO", "CONSUMERS", "{test}:v1:prewarm", "nodes")
        #expect(consumers.contains("one-") && !consumers.contains("two-"))
        #expect(try server.run("XPENDING", "{test}:v1:prewarm", "nodes").contains(ticket.id))
    }

    @Test func aFailureSurvivesItsEncodingAndLongTextsAreCut() throws {
        #expect(SharedPrewarm.Failure(failure.bytes) == failure)
        let long = SharedPrewarm.Failure(
            url: String(repeating: "ä", count: 5000), code: "c", detail: String(repeating: "€", count: 5000))
        let cut = try #require(SharedPrewarm.Failure(long.bytes))
        #expect(cut.url == String(repeating: "ä", count: 4096) && cut.code == "c")
        #expect(cut.detail.hasPrefix(String(repeating: "€", count: 341)) && cut.detail.count == 342)
    }

    @Test func entriesOfADeadNodeAreClaimedByOthers() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        var timings = ClusterTimings.patient
        timings.claimTime = .seconds(2)
        let (one, two) = (
            try TestNode("one", server.unixAddress, timings: timings), try TestNode("two", server.unixAddress, timings: timings)
        )
        try await one.joined()
        try await two.joined()
        _ = try await one.cluster.prewarm.add("list1", [[1], [2]])
        let claimed = try await one.cluster.prewarm.claim(2)
        #expect(claimed.count == 2)
        var taken: [SharedPrewarm.Ticket] = []
        try await waitUntil("the other node takes the entry that is not renewed") {
            try await one.cluster.prewarm.renew([claimed[0]])
            taken += try await two.cluster.prewarm.claim(2)
            return !taken.isEmpty
        }
        #expect(taken == [claimed[1]])
        #expect(try await two.cluster.prewarm.finish(taken[0], made))
        #expect(try await !one.cluster.prewarm.finish(claimed[1], made))
        #expect(try await one.cluster.prewarm.progress(of: "list1")?.done == 1)
    }

    @Test func entriesOfAListThatWasNotAddedWholeAreDropped() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        _ = try await one.cluster.prewarm.add("list1", [[1], [2]])
        try server.run("DEL", "{test}:v1:prewarm:list1")
        #expect(try await one.cluster.prewarm.claim(10) == [])
        #expect(try server.run("XLEN", "{test}:v1:prewarm") == ":0\r\n")
    }
}
