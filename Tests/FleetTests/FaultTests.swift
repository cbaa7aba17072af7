import Store
import SystemIO
import TestSupport
import Testing

@testable import Fleet

/// A server that is gone, slow, refusing or speaking nonsense costs no caller more than 250 ms, and the node comes back by itself.
@Suite("Failures of the server are local", .enabled(if: RedisServer.isAvailable), .serialized) struct FaultTests {
    private let url = "https://origin.test/a.gif"
    /// The limit of a caller's wait, and what a busy machine adds.
    private let limit: Duration = .milliseconds(250 + 500)

    /// Joins flights until the breaker is open, and returns the longest wait, each less the time for which the machine stopped this process
    /// meanwhile: the sum of the times by which timers were late.
    private func longestWait(_ node: TestNode, _ count: Int = 12) async -> Duration {
        var longest: Duration = .zero
        for number in 0..<count {
            let lateness = Task {
                var sum: Duration = .zero
                while !Task.isCancelled {
                    let start = ContinuousClock.now
                    await Waiters().wait(within: .milliseconds(5)) { false }
                    sum += max(.zero, ContinuousClock.now - start - .milliseconds(5))
                }
                return sum
            }
            let start = ContinuousClock.now
            let flight = await node.cluster.flights.findOrLead("f\(number)", sourceURL: url)
            let wait = ContinuousClock.now - start
            lateness.cancel()
            longest = max(longest, wait - (await lateness.value))
            #expect(flight.error != nil)
        }
        return longest
    }

    @Test func withoutAServerCallersGoOnAtOnce() async throws {
        let node = try TestNode("one", "redis://127.0.0.1:1")
        #expect(await longestWait(node) < limit)
        try await waitUntil("the state") { node.events.count == 1 }
        #expect(!node.cluster.isSharing)
        #expect(node.events.first?.description.contains("redis://127.0.0.1:1") == true)
    }

    @Test func aServerThatStopsRepliesCostsCallers250MillisecondsAtMost() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let node = try TestNode("one", server.unixAddress, timings: ClusterTimings())
        try await node.joined()
        server.pause(true)
        #expect(await longestWait(node) < limit)
        #expect(node.cluster.links?.breaker.phase != .closed)
        // The error shows that no command was sent. At times the breaker lets one pass, to try the server.
        try await waitUntil("the breaker refuses commands") {
            await node.cluster.flights.findOrLead("g", sourceURL: url).error == .breakerOpen
        }
        server.pause(false)
        try await node.joined()
        try await waitUntil("flights are shared again") {
            await node.cluster.flights.findOrLead("h", sourceURL: url).lease != nil
        }
    }

    @Test func aSlowServerCostsCallers250MillisecondsAtMost() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let proxy = try FaultProxy(to: server.port)
        defer { proxy.stop() }
        let node = try TestNode("one", "redis://127.0.0.1:\(proxy.port)", timings: ClusterTimings())
        try await node.joined()
        proxy.faults = .delay(.milliseconds(400))
        #expect(await longestWait(node) < limit)
        proxy.faults = .none
        try await waitUntil("flights are shared again") {
            await node.cluster.flights.findOrLead("h", sourceURL: url).lease != nil
        }
    }

    @Test func fiftyMillisecondsOfDelayAreTolerated() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let proxy = try FaultProxy(to: server.port, faults: .delay(.milliseconds(50)))
        defer { proxy.stop() }
        let one = try TestNode("one", "redis://127.0.0.1:\(proxy.port)")
        let two = try TestNode("two", "redis://127.0.0.1:\(proxy.port)")
        try await one.joined()
        try await two.joined()
        for number in 0..<5 {
            let lease = try #require(await one.cluster.flights.findOrLead("f\(number)", sourceURL: url).lease)
            #expect(await lease.complete(.test("object"), lifetime: .seconds(60)))
            #expect(await two.cluster.flights.findOrLead("f\(number)", sourceURL: url).record != nil)
        }
        let report = await one.cluster.purger.broadcast(.all)
        #expect(report.nodes == 2 && report.acknowledged == 2)
    }

    @Test(arguments: [
        FaultProxy.Failure.garbage(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)),
        .garbage(Array(":1\r\n:2\r\n+OK\r\n$-1\r\n*0\r\n:3\r\n".utf8)), .garbage([0, 255, 42, 13, 10]), .reset, .close, .stall,
    ])
    func lostAndDamagedConnectionsAreReplaced(_ failure: FaultProxy.Failure) async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let proxy = try FaultProxy(to: server.port)
        defer { proxy.stop() }
        let node = try TestNode("one", "redis://127.0.0.1:\(proxy.port)", timings: ClusterTimings())
        try await node.joined()
        proxy.faults = FaultProxy.Faults(responses: FaultProxy.Stream(failure: failure, after: 1))
        // Bytes that the proxy has read before are not affected.
        try await waitUntil("the fault") { await node.cluster.flights.findOrLead("first", sourceURL: url).error != nil }
        #expect(await longestWait(node) < limit)
        proxy.faults = .none
        try await waitUntil("flights are shared again") {
            await node.cluster.flights.findOrLead("h", sourceURL: url).lease != nil
        }
        #expect(node.cluster.metrics.errors.values.reduce(0, +) > 0)
    }

    @Test func aServerThatComesBackIsUsedAfterSeconds() async throws {
        let server = try await RedisServer(isDurable: true)
        defer { server.stop() }
        let node = try TestNode("one", server.unixAddress)
        try await node.joined()
        let lease = try #require(await node.cluster.flights.findOrLead("a", sourceURL: url).lease)
        _ = await lease.complete(.test("object"), lifetime: .seconds(60))
        try server.kill()
        #expect(await longestWait(node) < limit)
        try await server.start()
        let start = ContinuousClock.now
        try await waitUntil("flights are shared again") {
            await node.cluster.flights.findOrLead("a", sourceURL: url).record != nil
        }
        #expect(ContinuousClock.now - start < .seconds(20))
        // One line per change.
        func kinds() -> [String] {
            node.events.map { event in
                switch event {
                case .shared: "shared"
                case .alone: "alone"
                case .deaf, .revalidating, .doubting: "other"
                }
            }
        }
        try await waitUntil("the line about the return") { kinds().count >= 3 }
        #expect(kinds() == ["shared", "alone", "shared"])
    }

    @Test func aNodeThatLeavesHandsOverThePurgesThatItHasMadeAlone() async throws {
        let server = try await RedisServer(isDurable: true)
        defer { server.stop() }
        var timings = ClusterTimings.patient
        timings.leaveLimit = .seconds(60)
        let one = try TestNode("one", server.unixAddress, timings: timings)
        let two = try TestNode("two", server.unixAddress)
        try await one.joined()
        try await two.joined()
        try server.kill()
        try await waitUntil("the loss to be noticed") { !one.cluster.isSharing }
        #expect(await one.cluster.purger.broadcast(.url(url)).acknowledged == 0)
        #expect(one.cluster.metrics.purgesPending == 1)
        try await server.start()
        await one.cluster.leave()
        #expect(one.cluster.metrics.purgesPending == 0)
        try await waitUntil("the purge on the other node") { two.purges.contains(.url(url)) }
        // Without the server, the node leaves after the time limit.
        timings.leaveLimit = .milliseconds(100)
        let three = try TestNode("three", server.unixAddress, timings: timings)
        try await three.joined()
        try server.kill()
        try await waitUntil("the loss to be noticed") { !three.cluster.isSharing }
        _ = await three.cluster.purger.broadcast(.all)
        await three.cluster.leave()
        #expect(three.cluster.metrics.purgesPending == 1)
    }

    @Test func aWaitingCallerGoesOnAloneWhenTheServerDies() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let lease = try #require(await one.cluster.flights.findOrLead("a", sourceURL: url).lease)
        async let follower = two.cluster.flights.findOrLead("a", sourceURL: url)
        try await waitUntil("the other node to wait") { try server.run("GET", "{test}:v1:flight:a:0").contains(":w") }
        try server.kill()
        let start = ContinuousClock.now
        #expect(await follower.error != nil)
        #expect(ContinuousClock.now - start < .seconds(20))
        let completion = await lease.complete(.test("object"), lifetime: .seconds(60))
        #expect(!completion)
    }

    @Test func aFullServerIsAStateAndPurgesGoOn() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let node = try TestNode("one", server.unixAddress)
        try await node.joined()
        try server.run("CONFIG", "SET", "maxmemory", "1")
        #expect(await longestWait(node, 3) < limit)
        // On a busy machine, the first calls may have ended by their time limit.
        try await waitUntil("the refusal is counted") {
            _ = await node.cluster.flights.findOrLead("g", sourceURL: url)
            return node.cluster.metrics.errors["oom", default: 0] > 0
        }
        try await waitUntil("the state") {
            _ = await node.cluster.flights.findOrLead("g", sourceURL: url)
            return node.cluster.links?.breaker.phase != .closed
        }
        try await node.put(url)
        let report = await node.cluster.purger.broadcast(.url(url))
        #expect(report.counts.purged == 1)
        #expect(node.purges.contains(.url(url)))
        try server.run("CONFIG", "SET", "maxmemory", "0")
        try await waitUntil("flights are shared again") {
            await node.cluster.flights.findOrLead("h", sourceURL: url).lease != nil
        }
        try await waitUntil("the purge is in the stream") {
            try server.run("XRANGE", "{test}:v1:purges", "-", "+").contains(url)
        }
    }

    @Test func aReplicaIsAState() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let node = try TestNode("one", server.unixAddress)
        try await node.joined()
        try server.run("REPLICAOF", "127.0.0.1", "1")
        #expect(await longestWait(node, 4) < limit)
        try await waitUntil("the error is counted") { node.cluster.metrics.errors["readonly", default: 0] > 0 }
        try server.run("REPLICAOF", "NO", "ONE")
        try await waitUntil("flights are shared again") {
            await node.cluster.flights.findOrLead("h", sourceURL: url).lease != nil
        }
    }

    /// Every refusal would open a connection otherwise, fifty per second.
    @Test(arguments: ["replica", "rights"]) func aServerThatRefusesEveryConnectionGetsFew(_ cause: String) async throws {
        let server = try await RedisServer(options: cause == "rights" ? ["--user", "me", "on", ">p", "~*", "&*", "+@all"] : [])
        defer { server.stop() }
        let node = try TestNode("one", server.unixAddress + (cause == "rights" ? "?user=me&password=p" : ""))
        try await node.joined()
        if cause == "rights" {
            try server.run("ACL", "SETUSER", "me", "-set")
        } else {
            try server.run("REPLICAOF", "127.0.0.1", "1")
        }
        let before = node.cluster.metrics.connections
        let end = ContinuousClock.now + .seconds(3)
        var number = 0
        while ContinuousClock.now < end {
            number += 1
            _ = await node.cluster.flights.findOrLead("f\(number)", sourceURL: url)
            await Task.yield()
        }
        #expect(number > 10 && node.cluster.metrics.connections - before <= 6)
    }

    @Test func theStreamMovesFromAPrimaryThatWasDemoted() async throws {
        let (old, new) = (try await RedisServer(), try await RedisServer())
        defer {
            old.stop()
            new.stop()
        }
        let proxy = try FaultProxy(to: old.port)
        defer { proxy.stop() }
        let node = try TestNode("one", "redis://127.0.0.1:\(proxy.port)")
        try await node.joined()
        // All connections of the node stay open, or are opened to the same server again.
        try old.run("REPLICAOF", "127.0.0.1", "1")
        try await waitUntil("the refusal") { node.cluster.metrics.errors["readonly", default: 0] > 0 }
        proxy.target = new.port
        try await waitUntil("flights are shared again") {
            await node.cluster.flights.findOrLead("h", sourceURL: url).lease != nil
        }
        // The connection of the stream may follow later.
        try await waitUntil("purges are shared again") { await node.cluster.purger.broadcast(.url(url)).acknowledged == 1 }
        #expect(try new.run("XRANGE", "{test}:v1:purges", "-", "+").contains(url))
    }

    @Test func aServerNeedsToRememberNoScripts() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let node = try TestNode("one", server.unixAddress)
        try await node.joined()
        for name in ["a", "b"] {
            try server.run("SCRIPT", "FLUSH")
            let lease = try #require(await node.cluster.flights.findOrLead(name, sourceURL: url).lease)
            #expect(await lease.complete(.test("object"), lifetime: .seconds(60)))
        }
        #expect(node.cluster.links?.breaker.phase == .closed)
    }

    @Test func foreignValuesUnderAKeyAreReplaced() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let node = try TestNode("one", server.unixAddress)
        try await node.joined()
        try server.run("SET", "{test}:v1:flight:a:0", "nonsense")
        #expect(await node.cluster.flights.findOrLead("a", sourceURL: url).lease != nil)
        try server.run("LPUSH", "{test}:v1:flight:b:0", "nonsense")
        #expect(await node.cluster.flights.findOrLead("b", sourceURL: url).error != nil)
    }

    @Test func nonsenseInTheStreamRevalidatesEverything() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let node = try TestNode("one", server.unixAddress)
        try await node.joined()
        let before = node.revalidations
        try server.run("XADD", "{test}:v1:purges", "*", "k", "x", "v", "y")
        try await waitUntil("everything is revalidated") { node.revalidations == before + 1 }
        try server.run("PUBLISH", "{test}:v1:events", "nonsense")
        #expect(await node.cluster.purger.broadcast(.all).acknowledged == 1)
    }
}
