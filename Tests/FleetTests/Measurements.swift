import Foundation
import Store
import TestSupport
import Testing

@testable import Fleet

private let count = ProcessInfo.processInfo.environment["GIFREEL_MEASURE"].flatMap { Int($0) } ?? 0

/// Figures, not checks: `GIFREEL_MEASURE=1000 swift test --filter FleetTests.Measurements`, the number being that of flights.
@Suite(.serialized, .enabled(if: count > 0 && RedisServer.isAvailable)) struct Measurements {
    @Test(arguments: [0, 50]) func timesOfAFlight(_ delay: Int) async throws {
        let server = try await RedisServer()
        defer { server.stop() }
        let proxy = try FaultProxy(to: server.port, faults: delay == 0 ? .none : .delay(.milliseconds(delay)))
        defer { proxy.stop() }
        let address = delay == 0 ? server.address : "redis://127.0.0.1:\(proxy.port)"
        let (one, two) = (try TestNode("one", address), try TestNode("two", address))
        try await one.joined()
        try await two.joined()
        var (taken, completed, found, purged): ([Duration], [Duration], [Duration], [Duration]) = ([], [], [], [])
        let before = one.cluster.metrics
        let calls = try server.commandCalls().values.reduce(0, +)
        for number in 0..<(delay == 0 ? count : min(count, 100)) {
            let url = "https://origin.test/\(number)"
            var lease: Lease?
            taken.append(
                await ContinuousClock().measure {
                    lease = await one.cluster.flights.findOrLead("m\(number)", sourceURL: url).lease
                })
            completed.append(
                await ContinuousClock().measure { _ = await lease?.complete(.test("object"), lifetime: .seconds(600)) })
        }
        let own = one.cluster.metrics
        let all = try server.commandCalls().values.reduce(0, +) - calls
        for number in 0..<taken.count {
            found.append(
                await ContinuousClock().measure {
                    _ = await two.cluster.flights.findOrLead("m\(number)", sourceURL: "https://origin.test/\(number)")
                })
        }
        for _ in 0..<20 {
            purged.append(await ContinuousClock().measure { _ = await one.cluster.purger.broadcast(.url("https://other/")) })
        }
        func middle(_ times: [Duration]) -> Duration { times.sorted()[times.count / 2] }
        print(
            """
            \(delay) ms of delay, medians: lease \(middle(taken)), completion \(middle(completed)), record \(middle(found)), \
            purge of two nodes \(middle(purged)); \(own.roundTrips - before.roundTrips) round trips and \(all) commands of \
            the server for \(taken.count) flights
            """)
    }
}
