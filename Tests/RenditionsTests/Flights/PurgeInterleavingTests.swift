import Foundation
import Logging
import Store
import Synchronization
import Testing

@testable import Fetch
@testable import Renditions

/// Purges against everything that may be in progress (fetches, followers, conversions, renewals, remembered failures), in
/// orders that a seed determines.
///
/// The rule that is tested: after a purge has answered, no later request gets a version or a failure from before the purge.
@Suite("Purges interleaved with all work in progress", .serialized, .timeLimit(.minutes(10))) struct PurgeInterleavingTests {
    /// The number of orders; `GIFREEL_INTERLEAVINGS=10000` tries more.
    private static let count = ProcessInfo.processInfo.environment["GIFREEL_INTERLEAVINGS"].flatMap { UInt64($0) } ?? 300

    @Test func nothingOlderThanAPurgeIsAnsweredAfterIt() async throws {
        var totals = InterleavedWorld.Counts()
        for first in stride(from: 0, to: Self.count, by: 100) {
            let folder = URL(fileURLWithPath: "/dev/shm").appendingPathComponent("gifreel-\(UUID().uuidString)")
            defer { try? FileManager.default.removeItem(at: folder) }
            var configuration = CacheConfiguration()
            configuration.directory = folder.path
            configuration.minFreeBytes = 0
            // In every other group all aliases expire at once, so that renewals occur.
            configuration.freshFor = first % 200 == 0 ? 0 : 86_400
            let cache = try Cache(configuration: configuration)
            defer { cache.close() }
            for seed in first..<min(first + 100, Self.count) {
                let world = InterleavedWorld(cache: cache, seed: seed)
                await world.run()
                totals.add(world.counts)
            }
        }
        // The orders prove something only if every kind of event occurs often.
        #expect(totals.found > Int(Self.count))
        #expect(totals.failed > Int(Self.count) / 20)
        #expect(totals.purges > Int(Self.count) / 2)
        #expect(totals.followed > Int(Self.count) / 2)
        #expect(totals.fetches < totals.asked)
    }
}
