import TestSupport
import Testing

@testable import Fleet
@testable import Store

@Suite("Flights are shared by the nodes of a cluster", .enabled(if: RedisServer.isAvailable)) struct FlightTests {
    private let url = "https://origin.test/a.gif"

    @Test func oneNodeLeadsAndTheOthersGetItsRecord() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let lease = try #require(await one.cluster.flights.findOrLead("a1", sourceURL: url).lease)
        #expect(lease.isHeld)
        async let follower = two.cluster.flights.findOrLead("a1", sourceURL: url)
        try await waitUntil("the other node to wait") { try server.run("GET", "{test}:v1:flight:a1:0").contains(":w") }
        #expect(await lease.complete(.test("object1"), lifetime: .seconds(60)))
        let followed = await follower
        #expect(followed.record?.objectID == .test("object1") && followed.isFollowed)
        let found = await two.cluster.flights.findOrLead("a1", sourceURL: url)
        #expect(found.record == followed.record && !found.isFollowed)
        #expect(two.cluster.metrics.recordsFound == 1 && two.cluster.metrics.flightsFollowed == 1)
        #expect(!lease.isHeld)
        #expect(await !lease.complete(.test("object2"), lifetime: .seconds(60)))
    }

    @Test func aDeadNodeLosesItsLeaseWithinThreeSeconds() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let lease = try #require(await one.cluster.flights.findOrLead("a1", sourceURL: url).lease)
        // Without threads and loops the node is as dead as after SIGKILL.
        one.cluster.close()
        let start = ContinuousClock.now
        let taken = try #require(await two.cluster.flights.findOrLead("a1", sourceURL: url).lease)
        // Far above the lifetime of a lease, for a busy machine.
        #expect(ClusterTimings().leaseTime == .seconds(2.5) && ContinuousClock.now - start < .seconds(20))
        #expect(await taken.complete(.test("object2"), lifetime: .seconds(60)))
        #expect(await !lease.complete(.test("object1"), lifetime: .seconds(60)))
    }

    @Test(arguments: ["", "w"]) func theLeaseOfADeadNodeEndsAlthoughTheServerHasLostItsLifetime(_ mark: String) async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        var timings = ClusterTimings.patient
        timings.pollInterval = .milliseconds(20)
        timings.commandLimit = .seconds(20)
        let node = try TestNode("one", server.unixAddress, timings: timings)
        try await node.joined()
        try server.run("SET", "{test}:v1:flight:a1:0", "L:dead-0/0:\(mark)")
        let taken = Task { await node.cluster.flights.findOrLead("a1", sourceURL: url).lease }
        defer { taken.cancel() }
        try await waitUntil("the lease to end") { try server.run("GET", "{test}:v1:flight:a1:0").contains("one") }
        #expect(await taken.value != nil)
    }

    @Test func aLeaseIsRenewedWhileItIsHeld() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        // With the usual limit, one slow command on a busy machine would make the follower continue alone.
        var timings = ClusterTimings.patient
        timings.leaseTime = .seconds(2)
        timings.renewInterval = .milliseconds(200)
        timings.pollInterval = .milliseconds(50)
        let (one, two) = (
            try TestNode("one", server.unixAddress, timings: timings), try TestNode("two", server.unixAddress, timings: timings)
        )
        try await one.joined()
        try await two.joined()
        let lease = try #require(await one.cluster.flights.findOrLead("a1", sourceURL: url).lease)
        let start = ContinuousClock.now
        async let follower = two.cluster.flights.findOrLead("a1", sourceURL: url)
        try await waitUntil("three lease times") { ContinuousClock.now - start > .seconds(6) }
        #expect(lease.isHeld)
        #expect(await lease.complete(.test("object1"), lifetime: .seconds(60)))
        #expect(await follower.isFollowed)
        #expect(one.cluster.metrics.leasesLost == 0)
    }

    @Test func aReleasedFlightIsTakenOverAtOnce() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        var lease = await one.cluster.flights.findOrLead("a1", sourceURL: url).lease
        #expect(lease != nil)
        async let follower = two.cluster.flights.findOrLead("a1", sourceURL: url)
        try await waitUntil("the other node to wait") { try server.run("GET", "{test}:v1:flight:a1:0").contains(":w") }
        // The last reference ends the lease.
        lease = nil
        #expect(await follower.lease != nil)
    }

    @Test func failuresAreSharedToo() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let lease = try #require(await one.cluster.flights.findOrLead("a1", sourceURL: url).lease)
        let failure = SharedRecord(
            outcome: .failure(code: "source_gone", details: [4, 1, 0]), times: OriginTimes(fetchedAt: 1))
        #expect(await lease.complete(failure, lifetime: .milliseconds(300)))
        #expect(await two.cluster.flights.findOrLead("a1", sourceURL: url).record?.outcome == failure.outcome)
        try await waitUntil("the failure to be forgotten") { try server.run("GET", "{test}:v1:flight:a1:0").hasPrefix("$-1") }
        #expect(await two.cluster.flights.findOrLead("a1", sourceURL: url).lease != nil)
    }

    @Test func aCallerReplacesARecordThatIsStaleForIt() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let lease = try #require(await one.cluster.flights.findOrLead("a1", sourceURL: url).lease)
        _ = await lease.complete(.test("object1"), lifetime: .seconds(60))
        let stale = try #require(await two.cluster.flights.findOrLead("a1", sourceURL: url).record)
        let renewal = try #require(await two.cluster.flights.findOrLead("a1", sourceURL: url, outdated: stale).lease)
        async let follower = one.cluster.flights.findOrLead("a1", sourceURL: url)
        try await waitUntil("the other node to wait") { try server.run("GET", "{test}:v1:flight:a1:0").contains(":w") }
        #expect(await renewal.complete(.test("object2"), lifetime: .seconds(60)))
        #expect(await follower.record?.objectID == .test("object2"))
    }

    @Test func aFailureIsForAllNodesAlthoughTheOneThatFoundItHasRemovedWhatItStored() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        try await one.put(url)
        let lease = try #require(await one.cluster.flights.findOrLead("a1", sourceURL: url).lease)
        try await one.cache.forget(url)
        let failure = SharedRecord.Outcome.failure(code: "gone", details: [])
        let isPublished = await lease.complete(
            SharedRecord(outcome: failure, times: OriginTimes(fetchedAt: 1_700_000_000, freshFor: 60)), lifetime: .seconds(60),
            isOfSource: true)
        #expect(isPublished)
        for node in [one, two] {
            #expect(await node.cluster.flights.findOrLead("a1", sourceURL: url).record?.outcome == failure)
        }
    }

    @Test func aCancelledCallerLeavesAtOnce() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let lease = await one.cluster.flights.findOrLead("a1", sourceURL: url).lease
        let waiting = Task { await two.cluster.flights.findOrLead("a1", sourceURL: url) }
        try await waitUntil("the other node to wait") { try server.run("GET", "{test}:v1:flight:a1:0").contains(":w") }
        waiting.cancel()
        #expect(await waiting.value.error == .cancelled)
        #expect(lease?.isHeld == true)
    }

    /// A flight that no other node waits for.
    @Test func aMissCostsTwoRoundTripsAndFiveCommands() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        // Heartbeats cost commands, too.
        var timings = ClusterTimings.patient
        (timings.beatInterval, timings.nodeLifetime) = (.seconds(3600), .seconds(10_000))
        let node = try TestNode("one", server.unixAddress, timings: timings)
        try await node.joined()
        let (before, trips) = (try server.commandCalls(), node.cluster.metrics.roundTrips)
        for number in 1...10 {
            let lease = try #require(await node.cluster.flights.findOrLead("b\(number)", sourceURL: url).lease)
            _ = await lease.complete(.test("object"), lifetime: .seconds(60))
        }
        let after = try server.commandCalls()
        let own = ["set", "get", "publish", "eval", "del"]
        let cost = own.reduce(0) { $0 + (after[$1] ?? 0) - (before[$1] ?? 0) }
        #expect(cost == 40, "\(before) \(after)")
        #expect(node.cluster.metrics.roundTrips - trips == 20)
    }
}
