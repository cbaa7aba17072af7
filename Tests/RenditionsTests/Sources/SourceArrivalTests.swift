import Cache
import Fetch
import Foundation
import SystemIO
import Testing

@testable import Renditions

@Suite("Followers of a source find the fetch that brings it") struct SourceArrivalTests {
    private func withCache(_ body: (Cache, SourceArrivals) async throws -> Void) async throws {
        let folder = URL(fileURLWithPath: "/dev/shm").appendingPathComponent("gifreel-arrivals-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        var configuration = CacheConfiguration()
        configuration.directory = folder.path
        configuration.minFreeBytes = 0
        let cache = try Cache(configuration: configuration)
        defer { cache.close() }
        try await body(cache, SourceArrivals())
    }

    private let url: SourceURL

    init() throws {
        url = try SourceURL("https://a.test/a.gif")
    }

    @Test func aFetchFillsWhatFollowersHaveReserved() async throws {
        try await withCache { cache, arrivals async throws in
            let early = arrivals.follow(url, in: cache)
            #expect(arrivals.follow(url, in: cache) === early)
            let opened = arrivals.open(url, epoch: cache.epoch(for: url.canonical), in: cache)
            #expect(opened === early && arrivals.follow(url, in: cache) === early)
            // Another fetch at the same time has another value, which later followers get.
            let second = arrivals.open(url, epoch: cache.epoch(for: url.canonical), in: cache)
            #expect(second !== early && arrivals.follow(url, in: cache) === second)
        }
    }

    @Test func aReleasedOrFailedSourceIsNotFollowed() async throws {
        try await withCache { cache, arrivals async throws in
            var held: ArrivingSource? = arrivals.open(url, epoch: cache.epoch(for: url.canonical), in: cache)
            weak let first = held
            #expect(arrivals.follow(url, in: cache) === held)
            held = nil
            #expect(first == nil)
            let next = arrivals.follow(url, in: cache)
            #expect(next.claim())
            next.fail()
            #expect(arrivals.follow(url, in: cache) !== next)
        }
    }

    @Test func aPurgeSeparatesFollowersFromEarlierFetches() async throws {
        try await withCache { cache, arrivals async throws in
            let before = arrivals.open(url, epoch: cache.epoch(for: url.canonical), in: cache)
            let reserved = arrivals.follow(try SourceURL("https://b.test/b.gif"), in: cache)
            _ = try await cache.purge(.all)
            let after = arrivals.follow(url, in: cache)
            #expect(after !== before)
            let other = try SourceURL("https://b.test/b.gif")
            #expect(arrivals.open(other, epoch: cache.epoch(for: other.canonical), in: cache) !== reserved)
            // A fetch that began before the purge opens a value of its own and leaves the new one to the next fetch.
            #expect(after.claim())
        }
    }

    @Test func manySourcesLeaveNoEntriesBehind() async throws {
        try await withCache { cache, arrivals async throws in
            for index in 0..<1000 {
                _ = arrivals.follow(try SourceURL("https://a.test/\(index).gif"), in: cache)
            }
            #expect(arrivals.count <= 65)
        }
    }
}
