import Foundation
import Glibc
import SystemIO
import Testing

/// All tests of the target. They take turns, because a process has one simulated disk at a time.
@Suite(.serialized) enum OneAtATime {}

extension OneAtATime {
    /// The core and the cache under seeds: clients, purges, faults, crashes and power losses in orders that the seed decides.
    ///
    /// The suite runs fixed seeds, so that a failure is due to a change. `GIFREEL_SEED=N` repeats a seed, `GIFREEL_SEEDS=N` runs that
    /// many from a random one on, and `GIFREEL_STEPS=N` sets the steps per seed.
    @Suite("A simulated service keeps its promises", .timeLimit(.minutes(60))) struct SeedTests {
        private static let environment = ProcessInfo.processInfo.environment
        private static let steps = environment["GIFREEL_STEPS"].flatMap { Int($0) } ?? 10_000

        @Test func noRuleIsBroken() throws {
            let given = Self.environment["GIFREEL_SEED"].flatMap { UInt64($0) }
            let count = Self.environment["GIFREEL_SEEDS"].flatMap { UInt64($0) }
            let first = UInt64.random(in: 0..<1 << 32)
            let seeds: [UInt64] =
                if let given { [given] } else if let count { (0..<count).map { first + $0 } } else { [1, 2, 3, 4] }
            let start = ContinuousClock.now
            var totals = SimulationTotals()
            for seed in seeds {
                let report = try run(seed)
                totals.add(report)
                if !report.violations.isEmpty {
                    Issue.record("\(report.violations.joined(separator: "\n"))")
                    print((["The latest events of seed \(seed):"] + report.events.suffix(100)).joined(separator: "\n"))
                    break
                }
            }
            print(totals.summary(seeds: seeds, in: ContinuousClock.now - start))
        }

        @Test func aSeedGivesTheSameOrderAgain() throws {
            let first = try run(7)
            let second = try run(7)
            #expect(first.steps == second.steps)
            #expect(first.trace == second.trace)
        }

        private func run(_ seed: UInt64) throws -> SimulationReport {
            // Before the run, because a broken rule may end the process.
            StandardError.write("GIFREEL_SEED=\(seed) GIFREEL_STEPS=\(Self.steps)\n")
            let root = "/dev/shm/gifreel-simulation-\(UUID().uuidString)"
            try Files.createDirectory(root)
            defer { try? DirectoryEntries.removeTree(root) }
            let report = try Simulation(seed: seed, root: root).run(steps: Self.steps)
            #expect(openFiles(below: root).isEmpty, "GIFREEL_SEED=\(seed)")
            return report
        }

        /// The files below a directory, and those in memory, that are still open.
        private func openFiles(below root: String) -> [String] {
            let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
            return numbers.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)") }
                .filter { $0.hasPrefix(root) || $0.hasPrefix("/memfd:simulated") || $0.hasPrefix("/memfd:upload") }
        }
    }
}

/// What several seeds gave.
private struct SimulationTotals {
    private var steps = 0
    private var calls = 0
    private var crashes = 0
    private var counts = Ledger.Counts()

    mutating func add(_ report: SimulationReport) {
        steps += report.steps
        calls += report.calls
        crashes += report.crashes
        counts.add(report.counts)
    }

    func summary(seeds: [UInt64], in time: Duration) -> String {
        let perSecond = Int(Double(steps) / (time / .seconds(1)))
        return """
            \(seeds.count) seeds (last \(seeds.last ?? 0)), \(steps) steps, \(perSecond) per second, \(calls) calls of the disk, \
            \(crashes) crashes, \(counts.requests) requests, \(counts.answers) answers, \(counts.errors) errors, \
            \(counts.lost) lost in crashes, \(counts.purges) purges
            """
    }
}
