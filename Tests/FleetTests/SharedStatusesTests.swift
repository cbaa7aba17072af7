import TestSupport
import Testing

@testable import Fleet

@Suite("A status of one node is known to the others", .enabled(if: RedisServer.isAvailable)) struct SharedStatusesTests {
    @Test func aStatusIsReadByAnotherNodeUntilItExpires() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let (first, second) = (one.cluster.statuses, two.cluster.statuses)
        #expect(try await !first.write("a", [1, 2], for: .seconds(600)))
        #expect(try await second.read("a") == [1, 2])
        #expect(try await second.read("b") == nil)
        #expect(try await !first.write("a", [3], for: .milliseconds(50)))
        try await waitUntil("the expiry") { try await second.read("a") == nil }
    }

    @Test func aRequestIsLeftByWayOfAnotherNode() async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let (one, two) = (try TestNode("one", server.unixAddress), try TestNode("two", server.unixAddress))
        try await one.joined()
        try await two.joined()
        let (first, second) = (one.cluster.statuses, two.cluster.statuses)
        #expect(try await !first.write("a", [1], for: .seconds(600)))
        #expect(try await second.cancel("a"))
        #expect(try await second.read("a") == nil)
        #expect(try await !second.cancel("a"))
        // The node of the request learns of it with its next write, and removes what it wrote.
        #expect(try await first.write("a", [2], for: .seconds(600)))
        try await first.remove("a")
        #expect(try await second.read("a") == nil)
    }
}
