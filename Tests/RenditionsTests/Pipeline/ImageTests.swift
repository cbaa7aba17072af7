import Digests
import Media
import Sandbox
import Store
import SystemIO
import TestSupport
import Testing

@testable import Fetch
@testable import Renditions

@Suite("An image that is no animation is stored and renewed like a source", .timeLimit(.minutes(10))) struct ImageTests {
    private let jpeg: [UInt8] = [0xff, 0xd8, 0xff, 0xe0, 1]
    private let newer: [UInt8] = [0xff, 0xd8, 0xff, 0xe0, 1, 2]
    private let png: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 1]
    /// A PNG whose header is followed by a text of 8 KiB.
    private let described: [UInt8] =
        [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]
        + [UInt8](repeating: 0, count: 17) + [0, 0, 0x20, 0, 0x74, 0x45, 0x58, 0x74]
    private let blocked: [UInt8] = [0xff, 0xd8, 0xff, 0xe0, 3]

    private func list(of file: [UInt8]) throws -> BlockList {
        try Array("sha256:\(Hex.encode(SHA256.hash(file))) case 17\n".utf8).withUnsafeBytes { try BlockList($0) }
    }

    /// The answer in place of a rendition.
    private func image(_ path: String, in world: PipelineFixture) async throws -> RenditionResult? {
        var request = try world.request(path)
        request.sendsStillImages = true
        do throws(RenditionError) {
            _ = try await world.pipeline.find(request)
        } catch {
            return try await world.pipeline.original(insteadOf: error, for: request)
        }
        Issue.record("\(path) has a rendition")
        return nil
    }

    @Test func aStaleImageIsRenewed() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(jpeg))
            #expect(try await image("/a.gif", in: world)?.provenance == .stored)
            #expect(try await image("/a.gif", in: world)?.provenance == .hit)
            world.answer("/a.gif", .content(newer))
            // The failure of its renditions is remembered for longer.
            world.advance(150)
            #expect(try await image("/a.gif", in: world)?.provenance == .stale(50))
            try await waitUntil("the renewal") { world.renditionState.missesInProgress == 0 }
            let renewed = try #require(try await image("/a.gif", in: world))
            #expect(renewed.provenance == .hit && renewed.rendition.length == Int64(newer.count))
            // A client that accepts no other format renews it as well.
            world.answer("/a.gif", .content(jpeg))
            world.advance(150)
            #expect(try await world.find("/a.gif", .original).provenance == .stale(50))
            try await waitUntil("the renewal") { world.renditionState.missesInProgress == 0 }
            #expect(try await world.find("/a.gif", .original).rendition.length == Int64(jpeg.count))
        }
    }

    @Test func anAnimationIsNotSentOnceItsOriginHasAnImageInItsPlace() async throws {
        let still = RenditionError.conversionFailed(.rejected(.still(.apng)), allowance: WorkerAllowance())
        for (bytes, failure) in [(jpeg, nil), (png, still)] as [([UInt8], RenditionError?)] {
            try await PipelineFixture.run { world async throws in
                world.answer("/a.gif", .content(Array("GIF89a".utf8)))
                #expect(try await world.find("/a.gif").provenance == .stored)
                world.answer("/a.gif", .content(bytes))
                world.failConversions(failure)
                world.advance(150)
                #expect(try await world.find("/a.gif").provenance == .stale(50))
                try await waitUntil("the renewal") { world.renditionState.missesInProgress == 0 }
                #expect(try await image("/a.gif", in: world)?.rendition.length == Int64(bytes.count))
                #expect(await world.pipeline.stored(try world.request("/a.gif")) == nil)
                // The image itself stays.
                #expect(try await image("/a.gif", in: world)?.provenance == .hit)
                world.advance(150)
                #expect(try await image("/a.gif", in: world)?.provenance == .stale(50))
                try await waitUntil("the renewal") { world.renditionState.missesInProgress == 0 }
            }
        }
    }

    @Test func anAnimationInPlaceOfAnImageIsConverted() async throws {
        let still = RenditionError.conversionFailed(.rejected(.still(.apng)), allowance: WorkerAllowance())
        for (bytes, failure) in [(jpeg, nil), (described, still)] as [([UInt8], RenditionError?)] {
            try await PipelineFixture.run { world async throws in
                world.answer("/a.gif", .content(bytes))
                world.failConversions(failure)
                #expect(try await image("/a.gif", in: world)?.provenance == .stored)
                world.answer("/a.gif", .content(Array("GIF89a".utf8)))
                world.failConversions(nil)
                world.advance(150)
                #expect(try await image("/a.gif", in: world)?.provenance == .stale(50))
                try await waitUntil("the renewal") { world.renditionState.missesInProgress == 0 }
                #expect(try await world.find("/a.gif").provenance == .stored)
            }
        }
    }

    /// The failure of its renditions is shared for longer than the image is fresh.
    @Test func anAnimationInPlaceOfAnImageThatAnotherNodeFoundIsConverted() async throws {
        let failure = try #require(SharedFailure(.fetchFailed(.notAnAnimation(looksLike: .jpeg)), foundAt: 1_700_000_000))
        let gate = AsyncGate()
        gate.open()
        let nodes = OtherNodes(gate: gate, role: .failed(failure))
        try await PipelineFixture.run(tier: EmptyTier(), coordinator: nodes) { world async throws in
            world.answer("/a.gif", .content(jpeg))
            #expect(try await image("/a.gif", in: world)?.provenance == .stored)
            world.answer("/a.gif", .content(Array("GIF89a".utf8)))
            world.advance(150)
            #expect(try await image("/a.gif", in: world)?.provenance == .stale(50))
            try await waitUntil("the renewal") { world.renditionState.missesInProgress == 0 }
            #expect(try await world.find("/a.gif").provenance == .stored)
            // Nothing has been seen of another source.
            #expect(try await world.error(of: "/b.gif") == .remembered(failure.error, remaining: 450))
        }
    }

    @Test func anImageThatOnlyTheDecoderKnowsIsDecodedOnceForAllRenditions() async throws {
        let still = RenditionError.conversionFailed(.rejected(.still(.apng)), allowance: WorkerAllowance())
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(described))
            world.failConversions(still)
            #expect(try await image("/a.gif", in: world)?.provenance == .stored)
            for format in [Rendition.Format.jpg, .json, .output(.webm)] {
                #expect(try await world.error(of: "/a.gif", format) == .remembered(still, remaining: 600))
            }
            // The same bytes are the same image.
            world.advance(150)
            #expect(try await image("/a.gif", in: world)?.provenance == .stale(50))
            try await waitUntil("the renewal") { world.renditionState.missesInProgress == 0 }
            #expect(try await image("/a.gif", in: world)?.provenance == .hit)
            #expect(world.conversions.count == 1 && world.fetches.count == 3)
        }
    }

    @Test func aFreshImageIsNoMissOnceTheFailureOfItsRenditionsIsForgotten() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(jpeg, CacheDirectives("max-age=5000")))
            #expect(try await image("/a.gif", in: world)?.provenance == .stored)
            world.advance(700)
            world.answer("/a.gif", .failure(.failed(.status(500, retryAfter: nil))))
            #expect(try !world.hasFailed("/a.gif"))
            var request = try world.request("/a.gif", alternative: Rendition(format: .original))
            request.sendsStillImages = true
            if case .rendition(let result) = try await world.pipeline.findOrFollow(request) {
                #expect(result.provenance == .hit && result.isStorable)
            }
            world.advance(700)
            #expect(try await image("/a.gif", in: world)?.provenance == .hit)
            #expect(world.fetches.count == 2)
            // Once it is stale, the origin is asked whether there is an animation now.
            world.answer("/a.gif", .content(Array("GIF89a".utf8)))
            world.advance(5000)
            #expect(try await world.find("/a.gif").provenance == .stored)
        }
    }

    @Test func anUnchangedImageIsConfirmed() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(jpeg, etag: "\"1\""))
            _ = try await image("/a.gif", in: world)
            world.advance(150)
            #expect(try await image("/a.gif", in: world)?.provenance == .stale(50))
            try await waitUntil("the renewal") { world.renditionState.missesInProgress == 0 }
            #expect(world.fetches.last == .init(path: "/a.gif", etag: "\"1\""))
            #expect(try await image("/a.gif", in: world)?.provenance == .hit)
        }
    }

    @Test func anImageThatMayNoLongerBeSentIsRemoved() async throws {
        let answers: [PipelineFixture.Answer] = [
            .failure(.gone), .content(blocked), .content(newer, CacheDirectives("no-store")),
        ]
        for answer in answers {
            try await PipelineFixture.run(blocks: list(of: blocked)) { world async throws in
                world.answer("/a.gif", .content(jpeg))
                #expect(try await image("/a.gif", in: world)?.provenance == .stored)
                world.answer("/a.gif", answer)
                world.advance(150)
                #expect(try await image("/a.gif", in: world)?.provenance == .stale(50))
                try await waitUntil("the renewal") { world.renditionState.missesInProgress == 0 }
                #expect(await world.pipeline.stored(try world.request("/a.gif", .original)) == nil, "\(answer)")
            }
        }
    }

    @Test func anImageFromBeforeThePurgeOfItsObjectIsFetchedAgain() async throws {
        let gate = AsyncGate()
        gate.open()
        try await PipelineFixture.run(gates: .init(fetch: gate)) { world async throws in
            world.answer("/a.gif", .content(jpeg))
            let old = try #require(try await image("/a.gif", in: world)).rendition.objectID
            _ = try await world.purger.purge(.url(try world.url("/a.gif").canonical))
            gate.close()
            async let overtaken = image("/a.gif", in: world)
            try await waitUntil("the fetch of the image") { gate.count == 2 }
            world.answer("/a.gif", .content(newer))
            _ = try await world.purger.purge(.object(old))
            gate.open()
            let result = try #require(try await overtaken)
            #expect(result.rendition.objectID != old && result.isStored)
        }
    }

    /// A purge of an object does not end the flight, because only its end shows which object it produces.
    @Test func aCallerThatJoinsAfterThePurgeOfAnImagesObjectGetsAnotherImage() async throws {
        var known: ObjectID?
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(jpeg))
            known = try await image("/a.gif", in: world)?.rendition.objectID
        }
        let old = try #require(known)
        let gate = AsyncGate()
        try await PipelineFixture.run(tier: EmptyTier(asked: gate)) { world async throws in
            world.answer("/a.gif", .content(jpeg))
            async let first = image("/a.gif", in: world)
            try await waitUntil("the lookup of the image") { gate.count == 1 }
            world.answer("/a.gif", .content(newer))
            _ = try await world.purger.purge(.object(old))
            async let second = image("/a.gif", in: world)
            try await waitUntil("a flight for two callers") { world.renditionState.flights.waiterCount == 2 }
            gate.open()
            let (waited, joined) = try await (first, second)
            #expect(waited?.rendition.objectID == old)
            #expect(joined?.rendition.objectID != old && joined?.isStored == true)
        }
    }

    @Test func aBlockedImageIsKnownToBeBlocked() async throws {
        try await PipelineFixture.run(blocks: list(of: blocked)) { world async throws in
            world.answer("/a.gif", .content(blocked))
            _ = try? await image("/a.gif", in: world)
            #expect(try await world.error(of: "/a.gif") == .remembered(.blocked(label: "case 17"), remaining: 600))
        }
    }

    @Test func anImageThatCannotBeFetchedIsNotFetchedForEachRequest() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .failure(.notAnAnimation(looksLike: .jpeg)))
            #expect(try await world.error(of: "/a.gif") != nil)
            let failure = RenditionError.fetchFailed(.tooLarge(limit: 1000, declared: nil))
            world.answer("/a.gif", .failure(.tooLarge(limit: 1000, declared: nil)))
            // The error names this failure, and not that the image is no animation.
            await #expect(throws: failure) { try await image("/a.gif", in: world) }
            let remembered = RenditionError.remembered(failure, remaining: 600)
            for _ in 0..<2 { await #expect(throws: remembered) { try await image("/a.gif", in: world) } }
            #expect(world.fetches.count == 2)
        }
    }
}
