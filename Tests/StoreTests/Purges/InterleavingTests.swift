import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

/// Purges against work in flight, in many orders that seeds decide.
///
/// The tested rule: after a purge has returned, no lookup that begins then returns a version older than the purge.
@Suite("No lookup after a purge returns anything older, in any order of steps") struct InterleavingTests {
    /// The number of orders; `GIFREEL_INTERLEAVINGS=10000` sets another.
    private static let count = ProcessInfo.processInfo.environment["GIFREEL_INTERLEAVINGS"].flatMap { UInt64($0) } ?? 400

    @Test func nothingOlderThanAPurgeIsFoundAfterIt() throws {
        let turns = Turns()
        var stored = 0
        for first in stride(from: 0, to: Self.count, by: 100) {
            let directory = try TemporaryDirectory(inMemory: true)
            var configuration = CacheConfiguration.test(directory)
            configuration.housekeepingInterval = .seconds(3600)
            // Alternately too few entries, so that most lookups use the disk, and enough for all.
            configuration.hotEntries = first % 200 == 0 ? 2 : 200
            let cache = try Cache(configuration: configuration, clock: .system) { _ in turns.pause() }
            let worlds = (first..<min(first + 100, Self.count)).map { seed in
                let world = World(cache: cache, turns: turns, seed: seed)
                turns.run(world.work(), seed: seed)
                world.check()
                return world
            }
            stored += worlds.reduce(0) { $0 + $1.publishedCount }
            cache.close()
            // The same after a restart.
            let again = try Cache(configuration: configuration)
            for world in worlds { world.check(in: again) }
            again.close()
        }
        // Orders in which little is published would test little.
        #expect(stored > Int(Self.count) / 4)
    }
}

/// Two sources whose GIFs change, and the operations of several threads on them.
private final class World: Sendable {
    private struct State {
        /// The version that each origin serves now.
        var versions = [1, 1]
        /// The oldest version that may still be returned.
        var floors = [0, 0]
        var publishedCount = 0
    }

    private let cache: Cache
    private let turns: Turns
    private let seed: UInt64
    private let state = Mutex(State())

    init(cache: Cache, turns: Turns, seed: UInt64) {
        self.cache = cache
        self.turns = turns
        self.seed = seed
    }

    var publishedCount: Int { state.withLock(\.publishedCount) }

    private func url(_ source: Int) -> String { "https://\(seed).test/\(source)" }
    private func bytes(_ source: Int, _ version: Int) -> [UInt8] { [UInt8(source), UInt8(version)] + Array("\(seed)".utf8) }
    private func object(_ source: Int, _ version: Int) -> ObjectID { .test("\(seed)/\(source)/\(version)") }

    /// Operations that may run at the same time.
    func work() -> [@Sendable () -> Void] {
        var generator = SeededNumbers(seed: seed ^ 0xabcdef)
        let kinds: [@Sendable (Int) -> Void] = [
            job, job, look, look, purgeURL, purgePrefix, purgeAll, evict, renew, lookTwice, purgeObject,
        ]
        // At least one publish, one lookup and one purge.
        var chosen = [kinds[0], kinds[2], kinds[Int.random(in: 4...6, using: &generator)]]
        for _ in 0..<Int.random(in: 0...4, using: &generator) {
            chosen.append(kinds[Int.random(in: 0..<kinds.count, using: &generator)])
        }
        return chosen.map { kind in
            let source = Int.random(in: 0...99, using: &generator) < 80 ? 0 : 1
            return { kind(source) }
        }
    }

    /// Fetches, encodes, publishes.
    @Sendable private func job(_ source: Int) {
        let url = url(source)
        let epoch = cache.epoch
        turns.pause()
        let version = state.withLock { $0.versions[source] }
        turns.pause()
        let bytes = bytes(source, version)
        guard let staged = try? cache.staged(bytes) else {
            Issue.record("no staged file")
            return
        }
        let job = PublishJob(
            staged: staged, id: object(source, version), fileExtension: "mp4", facts: [], alias: .test(url), epoch: epoch)
        guard let outcome = try? cache.publisher.process(job), (try? outcome.rendition.descriptor.readAll()) == bytes
        else {
            Issue.record("\(seed): a publish gave other bytes")
            return
        }
        if outcome.isStored { state.withLock { $0.publishedCount += 1 } }
    }

    /// Looks up as a request does.
    @Sendable private func look(_ source: Int) {
        look(source, in: cache)
    }

    @Sendable private func lookTwice(_ source: Int) {
        look(source, in: cache)
        turns.pause()
        look(source, in: cache)
    }

    private func look(_ source: Int, in cache: Cache) {
        let floor = state.withLock { $0.floors[source] }
        let key = AliasKey.test(url(source))
        if let found = cache.hotAlias(key) ?? (try? cache.finder.rendition(under: key)) { expect(found, source, floor) }
        for version in 0..<floor {
            let id = object(source, version)
            if let found = cache.hotObject(id) ?? (try? cache.finder.rendition(with: id)) { expect(found, source, floor) }
        }
    }

    private func expect(_ found: CachedRendition, _ source: Int, _ floor: Int) {
        guard let bytes = try? found.descriptor.readAll(), bytes.count > 2, bytes[0] == UInt8(source) else {
            Issue.record("\(seed): unreadable or another source's bytes")
            return
        }
        if Int(bytes[1]) < floor { Issue.record("\(seed): version \(bytes[1]) after a purge of all before \(floor)") }
    }

    @Sendable private func purgeURL(_ source: Int) {
        purge([source], .url(url(source)))
    }

    @Sendable private func purgePrefix(_ source: Int) {
        purge([0, 1], .prefix("https://\(seed).test/"))
    }

    @Sendable private func purgeAll(_ source: Int) {
        purge([0, 1], .all)
    }

    /// Purges the current version's object, which may be stored again afterwards.
    @Sendable private func purgeObject(_ source: Int) {
        let id = object(source, state.withLock { $0.versions[source] })
        turns.pause()
        if case .failure(let error) = cache.apply([cache.newPurge(.object(id))]) { Issue.record(error) }
    }

    /// The origin gets a new version, and then the old one is purged.
    private func purge(_ sources: [Int], _ scope: PurgeScope) {
        let versions = state.withLock { state in
            for source in sources { state.versions[source] += 1 }
            return state.versions
        }
        turns.pause()
        if case .failure(let error) = cache.apply([cache.newPurge(scope)]) { Issue.record(error) }
        state.withLock { state in
            for source in sources { state.floors[source] = max(state.floors[source], versions[source]) }
        }
    }

    @Sendable private func evict(_ source: Int) {
        cache.evictor.evictBatch(atLeast: 1)
    }

    /// Revalidates the stored version with the origin.
    @Sendable private func renew(_ source: Int) {
        let key = AliasKey.test(url(source))
        let epoch = cache.epoch
        guard let found = try? cache.finder.rendition(under: key), let bytes = try? found.descriptor.readAll(), bytes.count > 2
        else { return }
        turns.pause()
        guard Int(bytes[1]) == state.withLock({ $0.versions[source] }) else { return }
        turns.pause()
        _ = cache.publisher.renewAlias(
            key, validators: Validators(), times: OriginTimes(fetchedAt: 1_700_000_100), epoch: epoch)
    }

    /// Looks up all versions after the operations have ended.
    func check(in other: Cache? = nil) {
        for source in 0...1 { look(source, in: other ?? cache) }
    }
}
