import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Fleet
@testable import Store

@Suite("Purges reach every node", .enabled(if: RedisServer.isAvailable)) struct PurgeStreamTests {
    private let url = "https://origin.test/a.gif"

    /// Has a node `two` take part in the cluster and leave it.
    ///
    /// - Parameter body: Runs while the node takes part.
    /// - Returns: The directory of the node.
    private func folderOfAbsentNode(
        _ one: TestNode, _ server: RedisServer, while body: () async throws -> Void = {}
    ) async throws -> URL {
        let two = try TestNode("two", server.unixAddress, folder: one.folder.appendingPathComponent("two"))
        try await two.joined()
        try await body()
        await two.cluster.leave()
        return two.folder
    }

    @Test func aPurgeIsAcknowledgedByEveryLiveNode() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let nodes = try (1...3).map { try TestNode("n\($0)", server.unixAddress) }
        for node in nodes { try await node.joined() }
        let report = await nodes[0].cluster.purger.broadcast(.url(url))
        #expect(
            report == PurgeReport(counts: PurgeCounts(), nodes: 3, acknowledged: 3, id: report.id))
        for node in nodes { #expect(node.purges == [.url(url)]) }
    }

    @Test func aNodeWhoseClockIsHoursAheadTakesPartInPurges() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let ahead = try TestNode("ahead", server.unixAddress, time: .ahead(by: .seconds(7200)))
        try await ahead.joined()
        let report = await one.cluster.purger.broadcast(.url(url))
        #expect(report.nodes == 2 && report.acknowledged == 2)
        #expect(try await ahead.cluster.purger.progress(of: try #require(report.id)) == report)
    }

    @Test(arguments: [-7200, 7200])
    func purgesCompleteAlthoughTheClockOfTheServerIsHoursOff(_ seconds: Int) async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        // What nodes set when a server contradicts them.
        let keys = try ClusterConfiguration(address: server.unixAddress, name: "test", node: "one").keys
        _ = try server.run("SET", keys.clock, "\(seconds * 1000)")
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let report = await one.cluster.purger.broadcast(.url(url))
        #expect(report.nodes == 1 && report.acknowledged == 1)
        #expect(try await one.cluster.purger.progress(of: try #require(report.id)) == report)
    }

    @Test func howFarAPurgeIsIsKnownToEveryNode() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let nodes = try (1...3).map { try TestNode("n\($0)", server.unixAddress) }
        for node in nodes { try await node.joined() }
        let report = await nodes[0].cluster.purger.broadcast(.url(url))
        let token = try #require(report.id)
        for node in nodes { #expect(try await node.cluster.purger.progress(of: token) == report) }
        // Nodes of older versions report the entry.
        let entry = await nodes[0].cluster.liveNodes().latest.description
        #expect(try await nodes[1].cluster.purger.progress(of: entry)?.acknowledged == 3)
        for id in ["1-0", "x", entry + "1", token + "1", String(repeating: "0", count: 32)] {
            #expect(try await nodes[0].cluster.purger.progress(of: id) == nil)
        }
        // A node that comes later has applied it, and has not acknowledged it.
        let late = try TestNode("late", server.unixAddress)
        try await late.joined()
        let later = try #require(try await nodes[1].cluster.purger.progress(of: token))
        #expect(later.nodes == 4 && later.acknowledged == 4)
    }

    @Test func theProgressOfAPurgeIsKnownAfterTheServerHasLostItsEntry() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let token = try #require(await one.cluster.purger.broadcast(.url(url)).id)
        try server.kill()
        try await server.start()
        for node in [one, two] {
            try await waitUntil("both nodes have applied it again") {
                let progress = try? await node.cluster.purger.progress(of: token)
                return progress?.nodes == 2 && progress?.acknowledged == 2
            }
        }
    }

    @Test func aPurgeCountsANodeThatTheServerLosesBeforeTheNextLook() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let proxy = try FaultProxy(to: server.port)
        defer { proxy.stop() }
        var timings = ClusterTimings.patient
        timings.beatsPerLook = .max
        timings.nodeLifetime = .seconds(60)
        timings.purgeLimit = .milliseconds(100)
        let one = try TestNode("one", server.unixAddress, timings: timings)
        try await one.joined()
        let two = try TestNode("two", "redis://127.0.0.1:\(proxy.port)", timings: timings)
        try await two.joined()
        try await waitUntil("one knows both") { one.cluster.nodeCount == 2 }
        // The other node does not reach the server that has lost everything.
        proxy.faults = .refusing
        proxy.closeConnections()
        try server.kill()
        try await waitUntil("the loss is noticed") { !one.cluster.isSharing }
        try await server.start()
        try await waitUntil("the node takes part again") { one.cluster.isSharing }
        let report = await one.cluster.purger.broadcast(.url(url))
        #expect(report.nodes == 2 && report.acknowledged == 1)
    }

    @Test func aNodeThatStartsAgainCountsTheNodesThatTheServerHasLost() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        var timings = ClusterTimings.patient
        timings.nodeLifetime = .seconds(60)
        timings.purgeLimit = .milliseconds(100)
        let one = try TestNode("one", server.unixAddress, timings: timings)
        try await one.joined()
        let folder = try await folderOfAbsentNode(one, server)
        // The server loses everything, and the other node does not come back to it yet.
        one.cluster.close()
        try server.kill()
        try await server.start()
        let two = try TestNode("two", server.unixAddress, folder: folder, timings: timings)
        try await two.joined()
        let report = await two.cluster.purger.broadcast(.url(url))
        #expect(report.nodes == 2 && report.acknowledged == 1)
    }

    @Test func aNodeThatJoinsIsKnownToTheNextProcessBeforeAHeartbeat() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        var timings = ClusterTimings.patient
        (timings.beatInterval, timings.nodeLifetime) = (.seconds(3600), .seconds(10_000))
        let one = try TestNode("one", server.unixAddress, timings: timings)
        try await one.joined()
        let two = try TestNode("two", server.unixAddress, timings: timings)
        try await two.joined()
        try await waitUntil("both are saved") {
            try one.cache.ledger.read { try PurgeTables($0).nodes() } == [one.cluster.name, two.cluster.name]
        }
    }

    @Test func aNodeThatLeavesAfterALostConnectionIsNotWaitedFor() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        var timings = ClusterTimings.patient
        timings.nodeLifetime = .seconds(1000)
        let nodes = try ["one", "two"].map { try TestNode($0, server.unixAddress, timings: timings) }
        for node in nodes { try await node.joined() }
        let connections = nodes.map(\.cluster.metrics.connections)
        // Both count as live for as long as they may not have noticed.
        try server.run("CLIENT", "KILL", "TYPE", "normal")
        for (node, count) in zip(nodes, connections) {
            try await waitUntil("the node to be back") {
                node.cluster.metrics.connections >= count + 2 && node.cluster.isSharing
            }
        }
        await nodes[1].cluster.leave()
        try await waitUntil("a purge that counts one node") {
            await nodes[0].cluster.purger.broadcast(.url(url)).nodes == 1
        }
    }

    @Test func aNodeThatLeavesIsNotWaitedForByOneThatStartedAgain() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        var timings = ClusterTimings.patient
        timings.nodeLifetime = .seconds(60)
        let one = try TestNode("one", server.unixAddress, timings: timings)
        try await one.joined()
        let folder = try await folderOfAbsentNode(one, server)
        let two = try TestNode("two", server.unixAddress, folder: folder, timings: timings)
        try await two.joined()
        await one.cluster.leave()
        let report = await two.cluster.purger.broadcast(.url(url))
        #expect(report.nodes == 1 && report.acknowledged == 1)
    }

    @Test func aPurgeMadeAloneIsIncompleteUntilEveryNodeHasAppliedIt() async throws {
        let server = try await RedisServer(isDurable: true)
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        try await waitUntil("one knows both") { one.cluster.nodeCount == 2 }
        try server.kill()
        try await waitUntil("the loss is noticed") { !one.cluster.isSharing }
        let report = await one.cluster.purger.broadcast(.url(url))
        #expect(report.nodes == 2 && report.acknowledged == 0)
        let token = try #require(report.id)
        #expect(try await one.cluster.purger.progress(of: token)?.acknowledged == 0)
        await #expect(throws: RedisError.self) { try await two.cluster.purger.progress(of: token) }
        try await server.start()
        try await waitUntil("both nodes have applied it") {
            let progress = try? await two.cluster.purger.progress(of: token)
            return progress?.nodes == 2 && progress?.acknowledged == 2
        }
    }

    @Test func aNodeReportsThePurgesThatItAppliesLate() async throws {
        let server = try await RedisServer(isDurable: true)
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let before = PurgeScope.url("https://origin.test/before")
        let folder = try await folderOfAbsentNode(one, server) { _ = await one.cluster.purger.broadcast(before) }
        _ = await one.cluster.purger.broadcast(.url(url))
        let two = try TestNode("two", server.unixAddress, folder: folder)
        try await two.joined()
        #expect(two.latePurges == [.url(url)])
        // One in its turn is not late, and one that another node had made alone is.
        _ = await one.cluster.purger.broadcast(.prefix("https://origin.test/"))
        try server.kill()
        try await waitUntil("the loss is noticed") { !one.cluster.isSharing }
        _ = await one.cluster.purger.broadcast(.all)
        try await server.start()
        try await waitUntil("the other node applies it") { two.latePurges == [.url(url), .all] }
        #expect(one.latePurges.isEmpty)
    }

    @Test func liveNodesAreListedWithTheirPositions() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        var timings = ClusterTimings.patient
        timings.beatInterval = .milliseconds(50)
        let nodes = try (1...2).map { try TestNode("n\($0)", server.unixAddress, timings: timings) }
        for node in nodes { try await node.joined() }
        _ = await nodes[0].cluster.purger.broadcast(.url(url))
        let last = try server.run("XREVRANGE", "{test}:v1:purges", "+", "-", "COUNT", "1")
        try await waitUntil("both positions") {
            let (live, latest) = await nodes[1].cluster.liveNodes()
            return live.map(\.position) == [latest, latest] && last.contains(latest.description)
        }
    }

    @Test func aPurgeMadeAloneIsAppliedOnceAndLeavesWhatWasRequestedAfterIt() async throws {
        let server = try await RedisServer(isDurable: true)
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let (before, during, after) = ("https://origin.test/before", "https://origin.test/during", "https://origin.test/after")
        try await two.put(before)
        let epoch = two.cache.epoch
        try server.kill()
        try await waitUntil("the loss is noticed") { !one.cluster.isSharing }
        #expect(await one.cluster.purger.broadcast(.all).acknowledged == 0)
        // Beyond what the bounds of the clocks leave open.
        let moment = one.cache.sharedClock.latest
        try await waitUntil("a later moment") { two.cache.sharedClock.earliest > moment }
        try await one.put(after)
        try await two.put(during, epoch: epoch)
        try await two.put(after)
        try await server.start()
        try await waitUntil("the other node applies it") { two.purges == [.all] }
        try await waitUntil("both take part") { one.cluster.isSharing && two.cluster.isSharing }
        #expect(await !two.has(before))
        #expect(await !two.has(during))
        #expect(await two.has(after))
        #expect(await one.has(after))
        #expect(await two.cluster.purger.broadcast(.url(url)).acknowledged == 2)
        #expect(one.purges == [.all, .url(url)] && one.cluster.metrics.purgesPending == 0)
        // Delivered again by an empty server, it removes nothing.
        try server.kill()
        try await server.start()
        try await waitUntil("both follow the new stream") { one.gaps.last == .possible && two.gaps.last == .possible }
        try await waitUntil("both take part again") { one.cluster.isSharing && two.cluster.isSharing }
        #expect(await two.has(after))
        #expect(await one.has(after))
    }

    @Test func aPurgeMadeAloneByAFormerProcessIsNotAppliedAgain() async throws {
        let server = try await RedisServer(isDurable: true)
        defer { server.stop() }
        let two = try TestNode("two", server.unixAddress)
        try await two.joined()
        let folder = two.folder.appendingPathComponent("one")
        do {
            let one = try TestNode("one", "redis://127.0.0.1:1", folder: folder)
            #expect(await one.cluster.purger.broadcast(.object(.test("o"))).acknowledged == 0)
            await one.cluster.leave()
        }
        let back = try TestNode("one", server.unixAddress, folder: folder)
        try await back.joined()
        try await waitUntil("the other node applies it") { two.purges == [.object(.test("o"))] }
        #expect(await two.cluster.purger.broadcast(.url(url)).acknowledged == 2)
        #expect(back.purges == [.url(url)])
    }

    @Test func aPurgeMadeAloneReachesTheStreamOfAnEmptyServer() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        try server.kill()
        try await waitUntil("the loss is noticed") { !one.cluster.isSharing }
        _ = await one.cluster.purger.broadcast(.object(.test("o")))
        try await server.start()
        try await waitUntil("the other node applies it") { two.purges == [.object(.test("o"))] }
        // It may apply it before it takes part again.
        try await waitUntil("both take part") { one.cluster.isSharing && two.cluster.isSharing }
        // What was missed with the former stream is unknown.
        #expect(two.gaps.last == .possible)
        #expect(await two.cluster.purger.broadcast(.url(url)).acknowledged == 2)
        #expect(one.purges == [.object(.test("o")), .url(url)])
    }

    @Test func aRecordFromBeforeAPurgeIsNotFoundAfterIt() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let stored = try #require(await one.cluster.flights.findOrLead("a1", sourceURL: url).lease)
        _ = await stored.complete(.test("old"), lifetime: .seconds(60))
        let working = try #require(await one.cluster.flights.findOrLead("a2", sourceURL: url).lease)
        #expect(await two.cluster.purger.broadcast(.url(url)).acknowledged == 2)
        #expect(await two.cluster.flights.findOrLead("a1", sourceURL: url).lease != nil)
        // Work that began before the purge holds up no caller, and is not published.
        #expect(await two.cluster.flights.findOrLead("a2", sourceURL: url).lease != nil)
        #expect(await !working.complete(.test("old"), lifetime: .seconds(60)))
    }

    @Test func aPurgeOfAnObjectHidesItsRecords() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let node = try TestNode("one", server.unixAddress)
        try await node.joined()
        let lease = try #require(await node.cluster.flights.findOrLead("a1", sourceURL: url).lease)
        _ = await lease.complete(.test("o"), lifetime: .seconds(60))
        #expect(await node.cluster.flights.findOrLead("a1", sourceURL: url).record != nil)
        _ = await node.cluster.purger.broadcast(.object(.test("o")))
        #expect(await node.cluster.flights.findOrLead("a1", sourceURL: url).lease != nil)
    }

    @Test func aNodeThatWasAwayAppliesWhatItMissedBeforeItTakesPart() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let folder = try await folderOfAbsentNode(one, server) {
            _ = await one.cluster.purger.broadcast(.url("https://origin.test/first"))
        }
        let report = await one.cluster.purger.broadcast(.url(url))
        #expect(
            report == PurgeReport(counts: PurgeCounts(), nodes: 1, acknowledged: 1, id: report.id))
        let back = try TestNode("two", server.unixAddress, folder: folder)
        try await back.joined()
        #expect(back.purges == [.url(url)])
        #expect(back.revalidations == 0)
    }

    @Test func aNodeThatDiedAndIsBackIsNotWaitedForUnderItsFormerName() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let folder = one.folder.appendingPathComponent("two")
        do {
            let two = try TestNode("two", server.unixAddress, folder: folder)
            try await two.joined()
            try await waitUntil("both are known") { await one.cluster.liveNodes().nodes.count == 2 }
        }
        let back = try TestNode("two", server.unixAddress, folder: folder)
        try await back.joined()
        // The name of the dead process would count for seconds.
        try await waitUntil("the former name is off the list") { await one.cluster.liveNodes().nodes.count == 2 }
        let report = await one.cluster.purger.broadcast(.url(url))
        #expect(report.nodes == 2 && report.acknowledged == 2)
    }

    @Test func aPurgeThatIsNotDurableIsNotAcknowledgedAndIsRepeatedAfterARestart() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let folder = one.folder.appendingPathComponent("two")
        let object = PurgeScope.object(.test("o"))
        do {
            let two = try TestNode("two", server.unixAddress, folder: folder, volatile: object)
            try await two.joined()
            let report = await one.cluster.purger.broadcast(object)
            #expect(
                report
                    == PurgeReport(counts: PurgeCounts(), nodes: 2, acknowledged: 1, id: report.id))
            // The position is recorded after it, so that later ones are not durable either.
            #expect(await one.cluster.purger.broadcast(.url(url)).acknowledged == 1)
            await two.cluster.leave()
        }
        let back = try TestNode("two", server.unixAddress, folder: folder)
        try await back.joined()
        #expect(back.purges == [object, .url(url)])
        #expect(back.revalidations == 0)
    }

    @Test func aPurgeThatBecomesDurableIsNotRepeatedAfterARestart() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let folder = one.folder.appendingPathComponent("two")
        let object = PurgeScope.object(.test("o"))
        do {
            let two = try TestNode("two", server.unixAddress, folder: folder, volatile: object)
            try await two.joined()
            #expect(await one.cluster.purger.broadcast(object).nodes == 2)
            try two.mendDisk()
            #expect(await one.cluster.purger.broadcast(.url(url)).acknowledged == 2)
            await two.cluster.leave()
        }
        let back = try TestNode("two", server.unixAddress, folder: folder)
        try await back.joined()
        #expect(back.purges.isEmpty && back.revalidations == 0)
    }

    @Test func aPurgeThatBecomesDurableIsAcknowledged() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let object = PurgeScope.object(.test("o"))
        let one = try TestNode("one", server.unixAddress)
        let two = try TestNode("two", server.unixAddress, volatile: object)
        try await one.joined()
        try await two.joined()
        let purger = one.cluster.purger
        // A purge of another node, and one of its own.
        for node in [one, two] {
            let id = try #require(await node.cluster.purger.broadcast(object).id)
            #expect(try await purger.progress(of: id)?.acknowledged == 1)
            try two.mendDisk()
            try await waitUntil("the purge to be complete") { try await purger.progress(of: id)?.isComplete == true }
            try two.cache.ledger.refuse(object)
        }
    }

    @Test func aNodeThatCannotMakeItsOwnPurgeDurableDoesNotAcknowledgeIt() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let node = try TestNode("one", server.unixAddress, volatile: .object(.test("o")))
        try await node.joined()
        let report = await node.cluster.purger.broadcast(.object(.test("o")))
        #expect(
            report == PurgeReport(counts: PurgeCounts(), nodes: 1, acknowledged: 0, id: report.id))
    }

    @Test func aLiveNodeNoticesThatTheStreamWasTrimmedBeyondItsPosition() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        for number in 1...3 { _ = await one.cluster.purger.broadcast(.url("https://origin.test/\(number)")) }
        let gaps = two.revalidations
        let stream = try server.run("XRANGE", "{test}:v1:purges", "-", "+", "COUNT", "1")
        let identity = try #require(
            stream.split(whereSeparator: \.isNewline).map(String.init).drop { $0 != "s" }.dropFirst(2).first)
        // One transaction: the node sees the end only.
        let entries = (1...50).map {
            "redis.call('XADD', KEYS[1], '*', 'k', 'u', 'v', 'https://o.test/\($0)', 's', '\(identity)', 't', '1', 'i', 'x\($0)')"
        }
        try server.run(
            "EVAL", entries.joined(separator: " ") + " redis.call('XTRIM', KEYS[1], 'MAXLEN', '2') return 1", "1",
            "{test}:v1:purges")
        try await waitUntil("the gap is noticed") { two.revalidations > gaps && two.gaps.last == .certain }
        #expect(two.events.contains(.revalidating))
        #expect(await one.cluster.purger.broadcast(.url(url)).acknowledged == 2)
    }

    @Test func aNodeRevalidatesEverythingWhereTheStreamDoesNotReachBack() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let folder = try await folderOfAbsentNode(one, server) {
            _ = await one.cluster.purger.broadcast(.url("https://origin.test/first"))
        }
        let lease = try #require(await one.cluster.flights.findOrLead("a1", sourceURL: "https://origin.test/3").lease)
        _ = await lease.complete(.test("old"), lifetime: .seconds(60))
        for number in [3, 1, 2] { _ = await one.cluster.purger.broadcast(.url("https://origin.test/\(number)")) }
        try server.run("XTRIM", "{test}:v1:purges", "MAXLEN", "1")
        let back = try TestNode("two", server.unixAddress, folder: folder)
        try await back.joined()
        #expect(back.revalidations == 1 && back.events.contains(.revalidating))
        // The record was made before a purge that the node has missed.
        #expect(await back.cluster.flights.findOrLead("a1", sourceURL: "https://origin.test/3").lease != nil)
    }

    @Test(arguments: [["DEL", "{test}:v1:purges"], ["XTRIM", "{test}:v1:purges", "MAXLEN", "0"]])
    func aRecordFromBeforeAStreamThatWasRemovedIsNotUsed(_ removal: [String]) async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let folder = try await folderOfAbsentNode(one, server)
        let lease = try #require(await one.cluster.flights.findOrLead("a1", sourceURL: url).lease)
        #expect(await lease.complete(.test("old"), lifetime: .seconds(60)))
        _ = await one.cluster.purger.broadcast(.url(url))
        _ = try server.run(removal)
        let back = try TestNode("two", server.unixAddress, folder: folder)
        try await back.joined()
        #expect(await back.cluster.flights.findOrLead("a1", sourceURL: url).lease != nil)
        // What was made since is shared.
        let current = try #require(await back.cluster.flights.findOrLead("a2", sourceURL: url).lease)
        #expect(await current.complete(.test("new"), lifetime: .seconds(60)))
        let new = try TestNode("three", server.unixAddress)
        try await new.joined()
        guard case .found = await new.cluster.flights.findOrLead("a2", sourceURL: url) else {
            Issue.record("a record from after the stream began is not used")
            return
        }
    }

    @Test func aNodeHasCertainlyMissedPurgesWhereTheStreamIsAnotherAndWasTrimmed() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let folder = try await folderOfAbsentNode(one, server)
        try server.kill()
        try await server.start()
        try await waitUntil("the node to be back") { one.revalidations == 2 }
        try await one.joined()
        for number in 1...3 { _ = await one.cluster.purger.broadcast(.url("https://origin.test/\(number)")) }
        try server.run("XTRIM", "{test}:v1:purges", "MAXLEN", "1")
        let back = try TestNode("two", server.unixAddress, folder: folder)
        try await back.joined()
        #expect(back.gaps == [.certain])
    }

    @Test func aNodeThatComesBackAppliesWhatTheStreamStillHas() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let folder = try await folderOfAbsentNode(one, server)
        // Two hours ago.
        let id = StreamID(UInt64(TimeSource.system.unixMilliseconds) - 7_200_000, 0)
        try server.run("XADD", "{test}:v1:purges", id.description, "k", "o", "v", ObjectID.test("old").description, "n", "one")
        _ = await one.cluster.purger.broadcast(.url(url))
        try server.run("XTRIM", "{test}:v1:purges", "MAXLEN", "2")
        let back = try TestNode("two", server.unixAddress, folder: folder)
        try await back.joined()
        #expect(back.revalidations == 1 && back.purges == [.object(.test("old")), .url(url)])
    }

    @Test func aNodeRevalidatesEverythingWhereTheStreamIsAnother() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        _ = await one.cluster.purger.broadcast(.url(url))
        try server.kill()
        try await server.start()
        try await waitUntil("the node to be back") { one.revalidations == 2 }
        try await one.joined()
        // The purge is in the new stream too, for nodes that have missed it.
        #expect(try server.run("XRANGE", "{test}:v1:purges", "-", "+").contains(url))
    }

    @Test(arguments: [false, true])
    func aPurgeWithAnIdBeforeThePositionIsAppliedWhereTheServerHasLostEntries(isTrimmed: Bool) async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        let folder = try await folderOfAbsentNode(one, server)
        // The last entry that the node has applied was lost with a server whose clock was ahead.
        do {
            let cache = try Cache.ofNode(in: folder.path)
            defer { cache.close() }
            try cache.ledger.write(.full) { database in
                var saved = try PurgeTables(database).position()
                saved.id = StreamID(UInt64(TimeSource.system.unixMilliseconds) + 60_000, 0)
                try PurgeTables(database).setPosition(saved)
            }
        }
        _ = await one.cluster.purger.broadcast(.url("https://origin.test/first"))
        _ = await one.cluster.purger.broadcast(.url(url))
        if isTrimmed { try server.run("XTRIM", "{test}:v1:purges", "MAXLEN", "1") }
        let back = try TestNode("two", server.unixAddress, folder: folder)
        try await back.joined()
        #expect(back.purges.last == .url(url) && back.purges.count == (isTrimmed ? 1 : 2))
        // A purge that was trimmed is not known.
        #expect(back.gaps == (isTrimmed ? [.certain] : []))
    }

    @Test func aPurgeThatTheServerLostIsAddedAgainAlthoughOthersFollowed() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        _ = await one.cluster.purger.broadcast(.url(url))
        let last = try server.run("XREVRANGE", "{test}:v1:purges", "+", "-", "COUNT", "1")
        let id = try #require(last.split(whereSeparator: \.isNewline).first { StreamID(String($0)) != nil })
        try server.run("XDEL", "{test}:v1:purges", String(id))
        _ = await two.cluster.purger.broadcast(.url("https://origin.test/later"))
        #expect(try !server.run("XRANGE", "{test}:v1:purges", "-", "+").contains(url))
        try server.run("CLIENT", "KILL", "TYPE", "normal")
        try await waitUntil("the purge is in the stream") {
            try server.run("XRANGE", "{test}:v1:purges", "-", "+").contains(url)
        }
        // The other node knows it.
        #expect(two.purges == [.url(url), .url("https://origin.test/later")])
    }

    @Test func aPurgeThatWasTrimmedIsNotAddedAgain() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let node = try TestNode("one", server.unixAddress)
        try await node.joined()
        for name in ["first", "second", "third"] {
            _ = await node.cluster.purger.broadcast(.url("https://origin.test/\(name)"))
        }
        try server.run("XTRIM", "{test}:v1:purges", "MAXLEN", "2")
        let before = try server.commandCalls()["xrange", default: 0]
        try server.run("CLIENT", "KILL", "TYPE", "normal")
        try await waitUntil("the node to catch up") { try server.commandCalls()["xrange", default: 0] > before }
        // It does not take part before it has added what is missing.
        try await node.joined()
        let stream = try server.run("XRANGE", "{test}:v1:purges", "-", "+")
        #expect(!stream.contains("first") && stream.contains("second") && stream.contains("third"))
    }

    @Test func purgesMadeAloneReachTheOthersOnReturn() async throws {
        let server = try await RedisServer(isDurable: true)
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        _ = await one.cluster.purger.broadcast(.url("https://origin.test/first"))
        try server.kill()
        try await waitUntil("the loss is noticed") { !one.cluster.isSharing }
        let start = ContinuousClock.now
        let report = await one.cluster.purger.broadcast(.url(url), within: .seconds(60))
        #expect(report.acknowledged == 0 && report.nodes == 2)
        // It does not wait for acknowledgements.
        #expect(ContinuousClock.now - start < .seconds(30))
        #expect(one.cluster.metrics.purgesPending == 1)
        try await server.start()
        try await waitUntil("the other node has it") { two.purges.last == .url(url) }
        try await one.joined()
        #expect(one.cluster.metrics.purgesPending == 0)
    }

    @Test func pendingPurgesOutliveARestart() async throws {
        let server = try await RedisServer(isDurable: true)
        defer { server.stop() }
        let folder: URL
        let two = try TestNode("two", server.unixAddress)
        try await two.joined()
        do {
            let one = try TestNode("one", server.unixAddress, folder: two.folder.appendingPathComponent("one"))
            try await one.joined()
            folder = one.folder
            try server.kill()
            try await waitUntil("the loss is noticed") { !one.cluster.isSharing }
            _ = await one.cluster.purger.broadcast(.url(url))
        }
        try await server.start()
        let again = try TestNode("one", server.unixAddress, folder: folder)
        try await again.joined()
        try await waitUntil("the other node has it") { two.purges == [.url(url)] }
    }

    @Test func noPurgeCompletesWithoutANodeWhoseDiskStalls() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        var timings = ClusterTimings.patient
        (timings.beatInterval, timings.nodeLifetime) = (.milliseconds(100), .milliseconds(1500))
        let (one, two) = (
            try TestNode("one", server.unixAddress, timings: timings), try TestNode("two", server.unixAddress, timings: timings)
        )
        try await one.joined()
        try await two.joined()
        let stall = Stall()
        try await stall.begin { [ledger = two.cache.ledger] wait in _ = try? ledger.write(.normal) { _ in wait() } }
        defer { stall.end() }
        // Longer than a node without heartbeats is listed.
        let report = await one.cluster.purger.broadcast(.url(url), within: .seconds(4))
        #expect(report.nodes == 2 && report.acknowledged == 1)
    }

    @Test func aPurgeReachesTheOthersAlthoughTheDiskOfItsNodeStalls() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let stall = Stall()
        try await stall.begin { [ledger = one.cache.ledger] wait in _ = try? ledger.write(.normal) { _ in wait() } }
        defer { stall.end() }
        let report = await one.cluster.purger.broadcast(.url(url), within: .seconds(8))
        #expect(report.nodes == 2 && report.acknowledged == 1 && one.purges == [.url(url)] && two.purges == [.url(url)])
        stall.end()
        let id = try #require(report.id)
        try await waitUntil("the purge to be complete") { try await one.cluster.purger.progress(of: id)?.isComplete == true }
    }

    @Test func purgesOfOthersTakeEffectAsTheyArriveAlthoughTheDiskStalls() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let urls = (1...4).map { "https://origin.test/\($0)" }
        for url in urls { try await two.put(url) }
        let stall = Stall()
        try await stall.begin { [ledger = two.cache.ledger] wait in _ = try? ledger.write(.normal) { _ in wait() } }
        defer { stall.end() }
        var ids: [String] = []
        for (index, url) in urls.enumerated() {
            // The node follows the stream again on a new connection, too.
            if index == 2 { try server.run("CLIENT", "KILL", "TYPE", "normal") }
            #expect(await two.has(url))
            let report = await one.cluster.purger.broadcast(.url(url), within: .milliseconds(200))
            #expect(!report.isComplete)
            ids.append(try #require(report.id))
            try await waitUntil("the effect") { await !two.has(url) }
        }
        #expect(two.purges == urls.map { .url($0) })
        // Only the other node has them on its disk.
        for id in ids {
            try await waitUntil("the entry") { (try? await one.cluster.purger.progress(of: id))?.acknowledged == 1 }
        }
        stall.end()
        for id in ids {
            try await waitUntil("the purge to be complete") {
                (try? await one.cluster.purger.progress(of: id))?.isComplete == true
            }
            let row = try two.cache.ledger.read { try PurgeTable($0).purge(withToken: id) }
            #expect(row?.entry?.isEmpty == false)
        }
    }

    @Test func aStoppedNodeDelaysAPurgeByTwoSecondsAtMost() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let one = try TestNode("one", server.unixAddress)
        try await one.joined()
        // A node that is listed and does not follow.
        try server.run("SADD", "{test}:v1:nodes", "ghost")
        try server.run("SET", "{test}:v1:node:ghost", "ghost", "PX", "60000")
        let start = ContinuousClock.now
        let report = await one.cluster.purger.broadcast(.all)
        #expect(report.nodes == 2 && report.acknowledged == 1)
        #expect(ClusterTimings().purgeLimit == .seconds(2) && ContinuousClock.now - start < .seconds(20))
        try server.run("DEL", "{test}:v1:node:ghost")
        #expect(await one.cluster.purger.broadcast(.all).nodes == 1)
    }
}
