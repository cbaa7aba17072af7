import Sandbox
import Store
import Synchronization
import TestSupport
import Testing

@testable import Fetch
@testable import Renditions

@Suite("Whatever a client causes uses its allowance, once", .timeLimit(.minutes(10))) struct AllowanceTests {
    private let gif: [UInt8] = Array("GIF89a of a certain size".utf8)

    /// An allowance of a few misses.
    private final class Misses: Sendable {
        private let uses = Mutex(0)
        private let limit: Int

        init(limit: Int) { self.limit = limit }

        /// The number of uses, including those that were refused.
        var count: Int { uses.withLock { $0 } }

        var allowance: MissAllowance {
            MissAllowance { [self] _ in
                uses.withLock { uses in
                    uses += 1
                    return uses > limit ? 7 : nil
                }
            } giveBack: { [self] in
                uses.withLock { $0 -= 1 }
            }
        }
    }

    @Test func theSourceInsteadOfARememberedFailureIsAnotherMiss() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif, CacheDirectives("no-store")))
            let failure = RenditionError.conversionFailed(.cpuLimitExceeded, allowance: WorkerAllowance())
            world.failConversions(failure)
            let misses = Misses(limit: 2)
            let request = try world.request("/a.gif", allowance: misses.allowance)
            await #expect(throws: failure) { try await world.pipeline.find(request) }
            #expect(try await world.pipeline.original(insteadOf: failure, for: request) != nil)
            #expect(misses.count == 1 && world.fetches.count == 2)
            let remembered = RenditionError.remembered(failure, remaining: 600)
            await #expect(throws: remembered) { try await world.pipeline.find(request) }
            #expect(misses.count == 1)
            #expect(try await world.pipeline.original(insteadOf: remembered, for: request) != nil)
            #expect(misses.count == 2 && world.fetches.count == 3)
            await #expect(throws: RenditionError.rateLimited(retryAfter: 7)) {
                _ = try await world.pipeline.original(insteadOf: remembered, for: request)
            }
            #expect(misses.count == 3 && world.fetches.count == 3)
        }
    }

    @Test func whatTheServerRefusesUsesNoAllowance() async throws {
        try await PipelineFixture.run(jobs: 0) { world async throws in
            world.answer("/a.gif", .content(gif))
            let misses = Misses(limit: 1)
            let request = try world.request("/a.gif", allowance: misses.allowance.countedOnce)
            let refused = RenditionError.overloaded(cause: nil)
            for _ in 0..<3 {
                await #expect(throws: refused) { try await world.pipeline.find(request) }
                await #expect(throws: refused) { _ = try await world.pipeline.findOrFollow(request) }
                world.pipeline.produceBehindResponse(request)
                try await waitUntil("the refusal") { world.renditionState.flights.count == 0 && misses.count == 0 }
            }
            // The source itself needs no conversion.
            #expect(try await world.pipeline.original(insteadOf: refused, for: request) != nil)
            #expect(misses.count == 1 && world.fetches.count == 1)
            world.renditionState.admission.setLimits(jobs: 8, bytes: 1 << 20)
            _ = try await world.pipeline.find(request)
            #expect(misses.count == 1 && world.fetches.count == 2)
        }
    }

    @Test func aRenditionThatIsBeingProducedBehindAResponseIsOneMiss() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            let misses = Misses(limit: 9)
            let request = try world.request("/a.gif", allowance: misses.allowance)
            for _ in 0..<3 { world.pipeline.produceBehindResponse(request) }
            #expect(misses.count == 1)
            gate.open()
            try await waitUntil("the rendition") { world.renditionState.flights.count == 0 }
            #expect(misses.count == 1 && world.conversions == ["mp4"])
        }
    }

    @Test func aSourceThatFailsUsesTheAllowance() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .failure(.notFound))
            world.answer("/b.gif", .failure(.busy))
            let misses = Misses(limit: 9)
            for (path, count) in [("/b.gif", 0), ("/a.gif", 1)] {
                let request = try world.request(path, allowance: misses.allowance)
                await #expect(throws: RenditionError.self) { try await world.pipeline.find(request) }
                #expect(misses.count == count)
            }
        }
    }

    @Test func aRenewalIsAMissOfTheClientThatStartsIt() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(fetch: gate)) { world async throws in
            world.answer("/a.gif", .content(gif, etag: "\"1\""))
            gate.open()
            _ = try await world.find("/a.gif")
            gate.close()
            world.advance(150)
            let misses = Misses(limit: 9)
            let request = try world.request("/a.gif", allowance: misses.allowance)
            // A look at what is stored starts nothing.
            #expect(await world.pipeline.stored(request) != nil)
            #expect(misses.count == 0 && world.renditionState.flights.count == 0)
            for _ in 0..<3 { #expect(try await world.pipeline.find(request).provenance == .stale(50)) }
            #expect(misses.count == 1)
            try await waitUntil("the renewal") { gate.count == 2 }
            gate.open()
            try await waitUntil("the end of the renewal") { world.renditionState.flights.count == 0 }
            #expect(try await world.pipeline.find(request).provenance == .hit)
            #expect(misses.count == 1 && world.fetches.count == 2)
        }
    }

    @Test func theMissesOfOneRequestCountOnceAndOnlyWhatIsRequiredIsRefused() throws {
        let misses = Misses(limit: 1)
        let asked = Mutex<[Bool]>([])
        let allowance = MissAllowance { required in
            asked.withLock { $0.append(required) }
            return misses.allowance.take(required)
        }
        let first = allowance.countedOnce
        for _ in 0..<3 { try first.use() }
        #expect(misses.count == 1 && first.useIfAvailable())
        let second = allowance.countedOnce
        #expect(!second.useIfAvailable())
        #expect(throws: RenditionError.rateLimited(retryAfter: 7)) { try second.use() }
        #expect(asked.withLock { $0 } == [true, false, true])
    }

    @Test func theMissesOfOneRequestAreGivenBackOnceAndOnlyIfTheyWereCounted() throws {
        let misses = Misses(limit: 9)
        let allowance = misses.allowance.countedOnce
        allowance.giveBack()
        #expect(misses.count == 0)
        for _ in 0..<2 {
            for _ in 0..<2 { try allowance.use() }
            #expect(misses.count == 1)
            for _ in 0..<2 { allowance.giveBack() }
            #expect(misses.count == 0)
        }
    }

    @Test func withoutAnAllowanceAStaleRenditionIsSentAndNotRenewed() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            _ = try await world.find("/a.gif")
            world.advance(150)
            let request = try world.request("/a.gif", allowance: Misses(limit: 0).allowance)
            #expect(try await world.pipeline.find(request).provenance == .stale(50))
            #expect(world.renditionState.flights.count == 0 && world.fetches.count == 1)
            #expect(try await world.find("/a.gif").provenance == .stale(50))
            try await waitUntil("the renewal for another client") {
                world.renditionState.flights.count == 0 && world.fetches.count == 2
            }
        }
    }

    @Test func anObjectThatOnlyTheSharedStoreMayHaveIsAMiss() async throws {
        let unknown = try #require(ObjectID(hex: String(repeating: "0", count: 64)))
        try await PipelineFixture.run(tier: EmptyTier()) { world async throws in
            world.answer("/a.gif", .content(gif))
            let stored = try await world.find("/a.gif").rendition.objectID
            let misses = Misses(limit: 1)
            for _ in 0..<2 {
                let found = try await world.pipeline.object(stored, fileExtension: "mp4", allowance: misses.allowance)
                #expect(found?.objectID == stored)
            }
            #expect(misses.count == 0)
            #expect(try await world.pipeline.object(unknown, fileExtension: "mp4", allowance: misses.allowance) == nil)
            await #expect(throws: RenditionError.rateLimited(retryAfter: 7)) {
                try await world.pipeline.object(unknown, fileExtension: "mp4", allowance: misses.allowance)
            }
        }
        try await PipelineFixture.run { world async throws in
            let misses = Misses(limit: 0)
            #expect(try await world.pipeline.object(unknown, fileExtension: "mp4", allowance: misses.allowance) == nil)
            #expect(misses.count == 0)
        }
    }
}
