import Fetch
import Foundation
import Sandbox
import Store
import SystemIO
import TestSupport
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

    @Test func aFetchWaitsForTheShareOfNoClientIfAnotherNeedsItsSource() async throws {
        var gates = PipelineFixture.Gates()
        gates.waits = true
        try await PipelineFixture.run(gates: gates) { fixture in
            fixture.answer("/a.gif", .content(Array("GIF89a".utf8)))
            let clients = try [1, 2].map { ClientNetwork(try #require(IPAddress("192.0.2.\($0)"))) }
            let admission = fixture.renditionState.admission
            let slow = try (0..<48).map {
                try admission.admit("\($0).test", bytes: 1, cost: 0, urgency: .visitor, client: clients[0])
            }
            #expect(slow.count(where: { $0.beginFetch() }) == 48)
            let requests = try zip([Rendition.Format.mp4, .jpg], clients).map { format, client in
                var request = try fixture.request("/a.gif", format)
                request.client = client
                return request
            }
            async let first = fixture.pipeline.find(requests[0])
            try await waitUntil("the first job") { admission.load.jobs > 0 }
            async let second = fixture.pipeline.find(requests[1])
            _ = try await (first, second)
            #expect(fixture.fetches.count == 1)
            withExtendedLifetime(slow) {}
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
