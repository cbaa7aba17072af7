import SystemIO
import TestSupport
import Testing

@testable import Fleet

@Suite("All nodes work on prewarm lists", .enabled(if: RedisServer.isAvailable)) struct SharedPrewarmTests {
    private let made = PrewarmOutcome(kind: .new, bytes: 10, sourceBytes: 15)
    private let failed = PrewarmOutcome(code: "source_gone", detail: "It is gone.")
    private let failure = PrewarmReport.Failure(url: "https://origin.test/a.gif", code: "source_gone", detail: "It is gone.")

    @Test func everyEntryIsClaimedOnceAndCounted() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        _ = try await one.cluster.prewarm.add("list1", (0..<450).map { Array("entry \($0)".utf8) })
        for node in [one, two] { #expect(await node.cluster.prewarm.arrivals.wait(for: .seconds(30))) }
        var seen: Set<String> = []
        var turn = 0
        while true {
            let node = [one, two][turn % 2]
            turn += 1
            let tickets = try await node.cluster.prewarm.claim(20)
            if tickets.isEmpty { break }
            for ticket in tickets {
                #expect(seen.insert(String(decoding: ticket.payload, as: UTF8.self)).inserted)
                let outcome = seen.count % 2 == 1 ? failed : made
                #expect(try await node.cluster.prewarm.finish(ticket, outcome))
                #expect(try await !node.cluster.prewarm.finish(ticket, made))
            }
        }
        #expect(seen.count == 450)
        let report = try #require(try await two.cluster.prewarm.report("list1", from: nil))
        #expect(report.total == 450 && report.done == 450 && report.failed == 225 && report.state == "done")
        #expect(report.hits == 0 && report.new == 225 && report.bytes == 2250 && report.saved == 1125)
        #expect(report.errors == Array(repeating: failure, count: 100))
        #expect(try await two.cluster.prewarm.report("other", from: nil) == nil)
        #expect(try server.run("XLEN", "{test}:v1:prewarm") == ":0\r\n")
    }

    @Test func aNodeWhoseClockIsWeeksAheadRemovesNoList() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let ahead = try TestNode("ahead", server.unixAddress, time: .ahead(by: .seconds(30 * 86_400)))
        try await ahead.joined()
        _ = try await one.cluster.prewarm.add("list1", [[1], [2]])
        _ = try await ahead.cluster.prewarm.add("list2", [[3]])
        #expect(try await one.cluster.prewarm.report("list1", from: nil)?.total == 2)
        #expect(try await one.cluster.prewarm.lists().map(\.id) == ["list2", "list1"])
    }

    @Test func hitsAndSavedBytesAreCounted() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        _ = try await one.cluster.prewarm.add("list1", [[1], [2], [3]])
        let outcomes = [made, PrewarmOutcome(kind: .hit, bytes: 7, sourceBytes: 0), failed]
        for (ticket, outcome) in zip(try await one.cluster.prewarm.claim(3), outcomes) {
            try await one.cluster.prewarm.finish(ticket, outcome)
        }
        var expected = PrewarmReport(
            id: "list1", added: nil, state: "done", total: 3, done: 3, failed: 1, hits: 1, bytes: 17, saved: 5)
        expected.errors = [failure]
        #expect(try await one.cluster.prewarm.report("list1", from: nil) == expected)
        #expect(expected.new == 1)
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
            try await one.cluster.prewarm.finish(ticket, made, number)
            // The entry counts once.
            try await two.cluster.prewarm.finish(ticket, made, 9)
        }
        let lists = two.cluster.prewarm
        #expect(try await lists.report("list1", from: 0)?.results?.map(\.number) == [2, 1, 0])
        #expect(try await lists.report("list1", from: 1)?.results?.map(\.number) == [1, 0])
        #expect(try await lists.report("list1", from: .max)?.results?.isEmpty == true)
        try await lists.cancel("list1")
        #expect(try await one.cluster.prewarm.report("list1", from: 0) == nil)
        #expect(try server.run("EXISTS", "{test}:v1:prewarm:list1:results") == ":0\r\n")
    }

    @Test func theUnfinishedEntriesOfAllNodesAreBounded() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        #expect(try await one.cluster.prewarm.add("list1", [[1], [2], [3]], limit: 4) == nil)
        #expect(try await two.cluster.prewarm.add("list2", [[1], [2]], limit: 4) == .full(waiting: 3, limit: 4))
        #expect(try await two.cluster.prewarm.report("list2", from: nil) == nil)
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
        let times = lists.compactMap(\.added)
        #expect(lists.map(\.total) == [1, 1] && lists.allSatisfy { $0.errors == nil })
        #expect(times[0] >= times[1] && times[1] > 1_700_000_000)
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
        try await one.cluster.prewarm.finish(tickets[0], failed)
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
        for ticket in try await one.claim(3) { #expect(try await one.finish(ticket, made) && ticket.callback == nil) }
        let report = try #require(try await one.claim(3).first)
        #expect(report.callback == "https://a.test/hook" && report.list == "list1")
        // The first node is gone before it has sent the report.
        var taken: [PrewarmTicket] = []
        try await waitUntil("the other node takes the report") {
            taken += try await two.claim(3)
            return !taken.isEmpty
        }
        #expect(taken == [report])
        try await two.finish(report, nil, url: "")
        #expect(try server.run("XLEN", "{test}:v1:prewarm") == ":0\r\n")
        #expect(try await two.report("list1", from: nil)?.done == 2)
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
        #expect(PrewarmReport.Failure(encoded: failure.encoded) == failure)
        let long = PrewarmReport.Failure(
            url: String(repeating: "ä", count: 5000), code: "c", detail: String(repeating: "€", count: 5000))
        let cut = try #require(PrewarmReport.Failure(encoded: long.encoded))
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
        var taken: [PrewarmTicket] = []
        try await waitUntil("the other node takes the entry that is not renewed") {
            try await one.cluster.prewarm.renew([claimed[0]])
            taken += try await two.cluster.prewarm.claim(2)
            return !taken.isEmpty
        }
        #expect(taken == [claimed[1]])
        #expect(try await two.cluster.prewarm.finish(taken[0], made))
        #expect(try await !one.cluster.prewarm.finish(claimed[1], made))
        #expect(try await one.cluster.prewarm.report("list1", from: nil)?.done == 1)
    }

    @Test func aListOfWhichANodeCanTakeNoMoreDelaysNoOther() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let lists = one.cluster.prewarm
        _ = try await lists.add("list1", (0..<250).map { Array("entry \($0)".utf8) })
        _ = try await lists.add("list2", [[1], [2]], callback: "https://a.test/hook")
        var tickets = try await lists.claim(1)
        #expect(tickets.map(\.list) == ["list1"])
        // One call moves a part of a long list.
        #expect(try await lists.claim(3, except: ["list1"]).isEmpty)
        let others = try await lists.claim(3, except: ["list1"])
        #expect(others.map(\.list) == ["list2", "list2"] && others.map(\.payload) == [[1], [2]])
        #expect(try await lists.claim(3, except: ["list1", "list2"]).isEmpty)
        for ticket in others { #expect(try await lists.finish(ticket, made)) }
        var report: PrewarmTicket?
        try await waitUntil("the report, which follows the moved entries") {
            report = try await lists.claim(3, except: ["list1"]).first
            return report != nil
        }
        #expect(report?.callback == "https://a.test/hook")
        try await lists.finish(try #require(report), nil, url: "")
        // Another node gets what was moved.
        while case let more = try await two.cluster.prewarm.claim(100), !more.isEmpty { tickets += more }
        #expect(Set(tickets.map(\.payload)).count == 250 && tickets.count == 250)
        for ticket in tickets { #expect(try await lists.finish(ticket, made)) }
        #expect(try await lists.report("list1", from: nil)?.state == "done")
        #expect(try server.run("XLEN", "{test}:v1:prewarm") == ":0\r\n")
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

/// For tests.
extension SharedPrewarm {
    @discardableResult
    func add(
        _ id: String, _ payloads: [[UInt8]], limit: Int = .max, for request: PrewarmRequest? = nil, callback: String? = nil
    ) async throws -> PrewarmRefusal? {
        try await add(PrewarmOrder(id: id, payloads: payloads, callback: callback, request: request), limit: limit)
    }

    @discardableResult
    func finish(_ ticket: PrewarmTicket, _ outcome: PrewarmOutcome, _ number: Int = 0) async throws -> Bool {
        try await finish(ticket, PrewarmReport.Result(number: number, outcome: outcome), url: "https://origin.test/a.gif")
    }
}
