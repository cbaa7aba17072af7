import Foundation
import SystemIO
import Testing

@testable import Cluster

/// Two nodes and a server in many orders of events that a seed decides: commands, replies, messages, timers, lost connections,
/// stopped and killed nodes.
@Suite("Orders of events in a cluster") struct ClusterInterleavingTests {
    /// `GIFREEL_CLUSTER_ORDERS=20000` tries more of them.
    private static let count = ProcessInfo.processInfo.environment["GIFREEL_CLUSTER_ORDERS"].flatMap { UInt64($0) } ?? 2000

    /// Runs orders on a thread of their own, and returns the outcomes.
    private func outcomes(_ count: UInt64, _ sabotage: Sabotage? = nil) async throws -> [SimulatedWorld.Outcome] {
        let threads = WorkThreads(count: 1, limit: 1, name: "orders")
        let outcomes = await threads.run { (0..<count).map { SimulatedWorld(seed: $0, sabotage: sabotage).run() } }
        threads.close()
        return try #require(outcomes)
    }

    @Test func noOrderGivesOutOldBytesOrHasTwoWinnersOrAStuckCaller() async throws {
        let outcomes = try await outcomes(Self.count)
        let violations = outcomes.flatMap(\.violations)
        #expect(violations.isEmpty, "\(violations.count): \(violations.prefix(5))")
        // The orders are of any worth only if much happens in them.
        func sum(_ part: (SimulatedWorld.Outcome) -> Int) -> Int { outcomes.reduce(0) { $0 + part($1) } }
        let (purges, records, followed) = (sum(\.acknowledgedPurges), sum(\.records), sum(\.followed))
        let (led, alone) = (sum(\.led), sum(\.alone))
        print("\(Self.count) orders: \(purges) purges, \(led) led, \(records) found, \(followed) followed, \(alone) alone")
        let least = Int(Self.count) / 4
        #expect(purges > least && records > least && followed > least && led > least && alone > least)
    }

    /// The test above fails where a step is left out that the protocols rely on.
    @Test(arguments: Sabotage.allCases) func aMissingStepIsNoticed(_ sabotage: Sabotage) async throws {
        let outcomes = try await outcomes(1000, sabotage)
        let count = outcomes.count { !$0.violations.isEmpty }
        print("\(sabotage): \(count) of 1000 orders, such as \(outcomes.flatMap(\.violations).first ?? "none")")
        #expect(count > 0)
    }
}
