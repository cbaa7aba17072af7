import Foundation
import SystemIO
import Testing

@testable import Fleet

/// Two nodes and a server in many orders of events that a seed decides: commands, replies, messages, timers, lost connections,
/// stopped and killed nodes.
@Suite("Orders of events in a cluster") struct ClusterInterleavingTests {
    /// `GIFREEL_CLUSTER_ORDERS=20000` tries more of them, and counts those in which a missing step is noticed.
    private static let chosenCount = ProcessInfo.processInfo.environment["GIFREEL_CLUSTER_ORDERS"].flatMap { UInt64($0) }

    /// Runs work on a thread of its own, so that it holds up no other test.
    private func onThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        let threads = WorkThreads(count: 1, limit: 1, name: "orders")
        let value = await threads.run { Result { try work() } }
        threads.close()
        return try #require(value).get()
    }

    @Test func noOrderGivesOutOldBytesOrHasTwoWinnersOrAStuckCaller() async throws {
        let count = Self.chosenCount ?? 500
        let outcomes = try await onThread { try (0..<count).map { try SimulatedWorld(seed: $0).run() } }
        let violations = outcomes.flatMap(\.violations)
        #expect(violations.isEmpty, "\(violations.count): \(violations.prefix(5))")
        // The orders are of any worth only if much happens in them.
        func sum(_ part: (SimulatedWorld.Outcome) -> Int) -> Int { outcomes.reduce(0) { $0 + part($1) } }
        let (purges, records, followed) = (sum(\.acknowledgedPurges), sum(\.records), sum(\.followed))
        let (led, alone, failures) = (sum(\.led), sum(\.alone), sum(\.failures))
        print(
            "\(count) orders: \(purges) purges, \(led) led, \(records) found, \(followed) followed, \(alone) alone, \(failures) missing"
        )
        let least = Int(count) / 4
        #expect(purges > least && records > least && followed > least && led > least && alone > least && failures > least)
    }

    @Test func purgesTakeEffectInEveryOrderAlthoughDisksStall() async throws {
        let count = (Self.chosenCount ?? 500) / 2
        let outcomes = try await onThread { try (0..<count).map { try SimulatedWorld(seed: $0, disksStall: true).run() } }
        let violations = outcomes.flatMap(\.violations)
        #expect(violations.isEmpty, "\(violations.count): \(violations.prefix(5))")
        func sum(_ part: (SimulatedWorld.Outcome) -> Int) -> Int { outcomes.reduce(0) { $0 + part($1) } }
        let (purges, arrived) = (sum(\.acknowledgedPurges), sum(\.arrived))
        print("\(count) orders: \(purges) purges, \(arrived) arrived")
        #expect(purges > Int(count) / 4 && arrived > Int(count))
    }

    /// The first test fails where a step is left out that the protocols rely on.
    @Test(arguments: Break.allCases) func aMissingStepIsNoticed(_ missing: Break) async throws {
        let most = Self.chosenCount ?? 10_000
        let (tried, found, first) = try await onThread { () -> (UInt64, Int, String?) in
            var found = 0
            var first: String?
            for seed in (Self.chosenCount == nil ? missing.firstOrder : 0)..<most {
                let violations = try SimulatedWorld(seed: seed, missing: missing).run().violations
                // An order that fails without the change, too, shows nothing.
                guard !violations.isEmpty, try SimulatedWorld(seed: seed).run().violations.isEmpty else { continue }
                found += 1
                first = first ?? violations.first
                if Self.chosenCount == nil, found > 0 { return (seed + 1 - missing.firstOrder, found, first) }
            }
            return (most, found, first)
        }
        print("\(missing): noticed in \(found) of \(tried) orders, such as \(first ?? "none")")
        #expect(found > 0)
    }
}
