import Fetch
import Foundation
import Store
import SystemIO
import Testing

@testable import Renditions

@Suite("Followers of a source find the fetch that brings it") struct SourceArrivalTests {
    private func withCache(_ body: (Cache, SharedSources) async throws -> Void) async throws {
        let folder = URL(fileURLWithPath: "/dev/shm").appendingPathComponent("gifreel-sources-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        var configuration = CacheConfiguration()
        configuration.directory = folder.path
        configuration.minFreeBytes = 0
        let cache = try Cache(configuration: configuration)
        defer { cache.close() }
        try await body(cache, SharedSources(cache))
    }

    private let url: SourceURL

    init() throws {
        url = try SourceURL("https://a.test/a.gif")
    }

    @Test func aFetchFillsWhatFollowersHaveReserved() async throws {
        try await withCache { cache, sources async throws in
            let early = sources.follow(url)
            #expect(sources.follow(url) === early)
            let opened = sources.open(url, epoch: cache.epoch)
            #expect(opened === early && sources.follow(url) === early)
            // Another fetch at the same time has another value, which later followers get.
            let second = sources.open(url, epoch: cache.epoch)
            #expect(second !== early && sources.follow(url) === second)
        }
    }

    @Test func aReleasedOrFailedSourceIsNotFollowed() async throws {
        try await withCache { cache, sources async throws in
            var held: ArrivingSource? = sources.open(url, epoch: cache.epoch)
            weak let first = held
            #expect(sources.follow(url) === held)
            held = nil
            #expect(first == nil)
            let next = sources.follow(url)
            #expect(next.claim())
            next.fail()
            #expect(sources.follow(url) !== next)
        }
    }

    @Test func aPurgeSeparatesFollowersFromEarlierFetches() async throws {
        try await withCache { cache, sources async throws in
            let before = sources.open(url, epoch: cache.epoch)
            let reserved = sources.follow(try SourceURL("https://b.test/b.gif"))
            _ = try await cache.purge(.all)
            let after = sources.follow(url)
            #expect(after !== before)
            let other = try SourceURL("https://b.test/b.gif")
            #expect(sources.open(other, epoch: cache.epoch) !== reserved)
            // A fetch that began before the purge opens a value of its own and leaves the new one to the next fetch.
            #expect(after.claim())
        }
    }

    @Test func manySourcesLeaveNoEntriesBehind() async throws {
        try await withCache { cache, sources async throws in
            for index in 0..<1000 {
                _ = sources.follow(try SourceURL("https://a.test/\(index).gif"))
            }
            #expect(sources.count <= 65)
        }
    }
}
