import Store
import SystemIO
import TestSupport
import Testing

@testable import Fetch
@testable import Renditions

@Suite("What a purge overtakes is for the callers who waited, and for no other cache", .timeLimit(.minutes(10)))
struct OvertakenByPurgeTests {
    private let gif: [UInt8] = Array("GIF89a before the purge".utf8)

    private func purge(_ world: PipelineFixture) async throws {
        _ = try await world.purger.purge(.url(try world.url("/a.gif").canonical))
    }

    @Test func aConversionIsNeitherStoredNorStorableForAnyOfItsCallers() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            async let first = world.find("/a.gif")
            async let second = world.find("/a.gif")
            try await waitUntil("a conversion for two callers") {
                world.renditionState.flights.waiterCount == 2 && gate.count == 1
            }
            try await purge(world)
            gate.open()
            let results = try await [first, second]
            #expect(results.contains { $0.provenance == .unstored(.purged) })
            #expect(results.contains { $0.provenance == .collapsed })
            #expect(results.allSatisfy { !$0.isStorable && !$0.isStored })
        }
    }

    @Test func withoutAPurgeACallerThatJoinsLearnsThatTheRenditionIsStored() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            async let first = world.find("/a.gif")
            async let second = world.find("/a.gif")
            try await waitUntil("a conversion for two callers") { world.renditionState.flights.waiterCount == 2 }
            gate.open()
            let results = try await [first, second, world.find("/a.gif")]
            #expect(results.allSatisfy { $0.isStorable && $0.isStored })
        }
    }

    @Test func whatItsOriginForbidsToStoreIsNotStoredForACallerThatJoins() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            world.answer("/a.gif", .content(gif, CacheDirectives("no-store")))
            async let first = world.find("/a.gif")
            async let second = world.find("/a.gif")
            try await waitUntil("a conversion for two callers") { world.renditionState.flights.waiterCount == 2 }
            gate.open()
            let results = try await [first, second]
            #expect(results.allSatisfy { !$0.isStorable && !$0.isStored })
        }
    }

    @Test func aRenewalIsNotStorable() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(fetch: gate)) { world async throws in
            world.answer("/a.gif", .content(gif, etag: "\"1\""))
            gate.open()
            _ = try await world.find("/a.gif")
            gate.close()
            world.advance(2000)
            async let expired = world.find("/a.gif")
            try await waitUntil("the conditional request") { gate.count == 2 }
            try await purge(world)
            gate.open()
            let result = try await expired
            #expect(result.provenance == .unstored(.purged) && !result.isStorable && !result.isStored)
            #expect(world.fetches.last == .init(path: "/a.gif", etag: "\"1\""))
        }
    }

    @Test func aSourceInMemoryFromBeforeThePurgeOfAnObjectIsFetchedAgain() async throws {
        let gate = AsyncGate()
        gate.open()
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            let old = try await world.find("/a.gif").rendition.objectID
            gate.close()
            // Another rendition keeps the source in memory.
            async let other = world.find("/a.gif", .mp4, ["quality": "30"])
            try await waitUntil("its conversion") { gate.count == 2 }
            world.answer("/a.gif", .content(Array("GIF89a after the purge".utf8)))
            _ = try await world.purger.purge(.object(old))
            async let again = world.find("/a.gif")
            try await waitUntil("the next conversion") { gate.count == 3 }
            gate.open()
            let result = try await again
            #expect(result.rendition.objectID != old && result.isStored)
            _ = try await other
        }
    }

    @Test func aRenditionFromTheSharedStoreIsNotStorable() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(tier: FullTier(gate: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            async let found = world.find("/a.gif")
            try await waitUntil("the store to be asked") { gate.count == 1 }
            try await purge(world)
            gate.open()
            let result = try await found
            #expect(result.provenance == .shared && !result.isStorable && !result.isStored)
        }
    }
}
