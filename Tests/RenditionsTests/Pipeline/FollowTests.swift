import Fetch
import Sandbox
import Store
import Synchronization
import TestSupport
import Testing

@testable import Renditions

@Suite("A request may follow the source instead of waiting for its rendition", .timeLimit(.minutes(10))) struct FollowTests {
    private let gif: [UInt8] = Array("GIF89a of a certain size".utf8)

    private struct Unexpected: Error {
        let result: FollowedResult
    }

    /// The followed source.
    ///
    /// - Throws: ``Unexpected`` if the result is a rendition.
    private func source(_ result: FollowedResult) throws -> FollowedSource {
        guard case .source(let source) = result else { throw Unexpected(result: result) }
        return source
    }

    private func rendition(_ result: FollowedResult) throws -> RenditionResult {
        guard case .rendition(let rendition) = result else { throw Unexpected(result: result) }
        return rendition
    }

    private func bytes(_ source: FollowedSource) async throws -> [UInt8] {
        let bytes = Mutex<[UInt8]>([])
        try await source.forEachPiece { piece in bytes.withLock { $0 += piece } }
        return bytes.withLock { $0 }
    }

    @Test func theSourceIsReadWhileItArrives() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(fetch: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            let followed = try source(await world.pipeline.findOrFollow(world.request("/a.gif")))
            #expect(followed.length == gif.count && followed.isStorable && gate.count == 1)
            let pieces = Mutex<[[UInt8]]>([])
            let reader = Task {
                try await followed.forEachPiece { piece in pieces.withLock { $0.append(piece) } }
            }
            try await waitUntil("the first half") { pieces.withLock { $0.flatMap { $0 } } == Array(gif[..<(gif.count / 2)]) }
            gate.open()
            try await reader.value
            #expect(pieces.withLock { $0.flatMap { $0 } } == gif)
            try await waitUntil("the rendition") { world.renditionState.flights.count == 0 }
            #expect(try rendition(await world.pipeline.findOrFollow(world.request("/a.gif"))).provenance == .hit)
            #expect(world.fetches.count == 1 && world.conversions == ["mp4"])
        }
    }

    @Test func followersOfDifferentRenditionsShareOneFetch() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(fetch: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            let answers = try await withThrowingTaskGroup(of: FollowedResult.self) { group in
                for index in 0..<50 {
                    let request = try world.request("/a.gif", index % 2 == 0 ? .mp4 : .gif)
                    group.addTask { try await world.pipeline.findOrFollow(request) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            gate.open()
            for answer in answers { #expect(try await bytes(try source(answer)) == gif) }
            #expect(world.fetches.count == 1)
        }
    }

    @Test func aFollowerReadsNoSourceInMemoryThatIsNotFresh() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            async let video = world.find("/a.gif")
            try await waitUntil("a conversion") { gate.count == 1 }
            let newer = gif + [1, 2, 3]
            world.answer("/a.gif", .content(newer))
            world.advance(100)
            let followed = try source(await world.pipeline.findOrFollow(world.request("/a.gif", .jpg)))
            #expect(try await bytes(followed) == newer)
            gate.open()
            _ = try await video
        }
    }

    @Test func aSlowReaderDoesNotKeepASourceForOthersThatIsNotFresh() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            let slow = try source(await world.pipeline.findOrFollow(world.request("/a.gif")))
            try await waitUntil("the rendition") { world.renditionState.flights.count == 0 }
            let newer = gif + [1, 2, 3]
            world.answer("/a.gif", .content(newer))
            world.advance(150)
            let late = try source(await world.pipeline.findOrFollow(world.request("/a.gif", .jpg)))
            #expect(try await bytes(late) == newer)
            withExtendedLifetime(slow) {}
        }
    }

    @Test func aSlowReaderDoesNotKeepASourceForOthersThatMustNotBeStored() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif, CacheDirectives("no-store")))
            let slow = try source(await world.pipeline.findOrFollow(world.request("/a.gif")))
            try await waitUntil("the end of the flight") { world.renditionState.flights.count == 0 }
            let newer = gif + [1, 2, 3]
            world.answer("/a.gif", .content(newer, CacheDirectives("no-store")))
            let late = try source(await world.pipeline.findOrFollow(world.request("/a.gif")))
            #expect(try await bytes(late) == newer)
            withExtendedLifetime(slow) {}
        }
    }

    @Test func aFollowerAfterTheFetchReadsTheSourceInMemory() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            _ = try source(await world.pipeline.findOrFollow(world.request("/a.gif")))
            try await waitUntil("the conversion") { gate.count == 1 }
            let late = try source(await world.pipeline.findOrFollow(world.request("/a.gif")))
            #expect(late.length == gif.count)
            #expect(try await bytes(late) == gif)
            gate.open()
            try await waitUntil("the rendition") { world.renditionState.flights.count == 0 }
            #expect(world.fetches.count == 1 && world.conversions.count == 1)
        }
    }

    @Test func theMemoryOfASourceIsAccountedForUntilItsLastReaderHasEnded() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            var followed: FollowedSource? = try source(await world.pipeline.findOrFollow(world.request("/a.gif")))
            try await waitUntil("the rendition") { world.renditionState.flights.count == 0 }
            try await waitUntil("the end of the job") {
                world.renditionState.admission.load == (0, gif.count + FollowedSource.pieceLimit)
            }
            withExtendedLifetime(followed) {}
            followed = nil
            try await waitUntil("no memory") { world.renditionState.admission.load == (0, 0) }
        }
    }

    @Test func aReaderWhoseSourceIsInTheWayOfOtherWorkIsCutOff() async throws {
        let long = gif + [UInt8](repeating: 0, count: 300 << 10)
        let gate = AsyncGate()
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(long))
            world.answer("/b.gif", .content(gif))
            let followed = try source(await world.pipeline.findOrFollow(world.request("/a.gif")))
            let received = Mutex(0)
            let reader = Task {
                try await followed.forEachPiece { piece in
                    received.withLock { $0 += piece.count }
                    await gate.pass()
                }
            }
            try await waitUntil("the first piece, and the end of the job") {
                gate.count == 1 && world.renditionState.admission.load == (0, long.count + FollowedSource.pieceLimit)
            }
            world.renditionState.admission.setLimits(jobs: 64, bytes: long.count + FollowedSource.pieceLimit)
            #expect(try await world.find("/b.gif").provenance == .stored)
            // The reader is slow and holds the piece that it sends.
            try await waitUntil("no source in memory") {
                world.renditionState.admission.load == (0, FollowedSource.pieceLimit)
            }
            gate.open()
            await #expect(throws: SourceCutShort.self) { try await reader.value }
            #expect(received.withLock { $0 } < long.count)
        }
    }

    @Test func aSourceThatFailsBeforeItsFirstByteIsAnError() async throws {
        try await PipelineFixture.run { world async throws in
            for (index, error) in [FetchError.notFound, .notAnAnimation(looksLike: .png), .timeout(.total, limit: .seconds(3))]
                .enumerated()
            {
                world.answer("/\(index).gif", .failure(error))
                let request = try world.request("/\(index).gif")
                await #expect(throws: RenditionError.fetchFailed(error)) { try await world.pipeline.findOrFollow(request) }
            }
        }
    }

    @Test func aFullQueueRefusesAFollower() async throws {
        try await PipelineFixture.run(jobs: 0) { world async throws in
            let request = try world.request("/a.gif")
            await #expect(throws: RenditionError.overloaded(cause: nil)) { try await world.pipeline.findOrFollow(request) }
            #expect(world.fetches.isEmpty)
            // The source itself needs no conversion.
            world.answer("/a.gif", .content(gif))
            let withAlternative = try world.request("/a.gif", alternative: Rendition(format: .original))
            switch try await world.pipeline.findOrFollow(withAlternative) {
            case .rendition(let result): #expect(result.rendition.length == UInt64(gif.count) && !result.isStorable)
            case .source(let source): #expect(source.length == gif.count)
            }
        }
    }

    @Test func theOriginMayConfirmAnExpiredRenditionInstead() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif, etag: "\"1\""))
            _ = try await world.find("/a.gif")
            world.advance(2000)
            #expect(try rendition(await world.pipeline.findOrFollow(world.request("/a.gif"))).provenance == .renewed)
        }
    }

    @Test func aRenditionLargerThanItsSourceStoresTheSourceToo() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            world.setConvertedCount(gif.count + 1)
            let original = Rendition(format: .original)
            _ = try source(await world.pipeline.findOrFollow(world.request("/a.gif", alternative: original)))
            try await waitUntil("the rendition") { world.renditionState.flights.count == 0 }
            #expect(try rendition(await world.pipeline.findOrFollow(world.request("/a.gif", .original))).provenance == .hit)
            #expect(world.fetches.count == 1)
        }
    }

    @Test func aRenditionThatSavesEnoughStoresTheFactsOnly() async throws {
        try await PipelineFixture.run { world async throws in
            let gif = gif + [UInt8](repeating: 0, count: 4000)
            world.answer("/a.gif", .content(gif))
            world.setConvertedCount(1000)
            _ = try await world.pipeline.find(world.request("/a.gif", alternative: Rendition(format: .original)))
            let original = try world.request("/a.gif", .original).key
            #expect(try await world.cache.rendition(for: original, countsMiss: true) == nil)
            let facts = try world.request("/a.gif", .json).key
            #expect(try await world.cache.rendition(for: facts, countsMiss: true) != nil && world.fetches.count == 1)
        }
    }

    @Test func aRequestForFactsWithAnAlternativeDoesNotWaitForItself() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            world.pipeline.produceBehindResponse(try world.request("/a.gif", .json, alternative: Rendition(format: .original)))
            try await waitUntil("the end of the flight") { world.fetches.count == 1 && world.renditionState.flights.count == 0 }
        }
    }

    @Test func theAlternativeAnswersIfTheRenditionIsKnownToFail() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            world.failConversions(.conversionFailed(.cpuLimitExceeded, allowance: WorkerAllowance()))
            let request = try world.request("/a.gif", alternative: Rendition(format: .original))
            #expect(try await bytes(try source(await world.pipeline.findOrFollow(request))) == gif)
            // The rendition, and the facts that are made beside it, from the same fetch.
            try await waitUntil("the failures") { world.renditionState.rememberedFailures == 2 }
            try await waitUntil("the end of their flights") { world.renditionState.flights.count == 0 }
            #expect(world.fetches.count == 1)
            #expect(try await bytes(try source(await world.pipeline.findOrFollow(request))) == gif)
            try await waitUntil("the end") { world.renditionState.flights.count == 0 }
            // It is stored here, and no other cache may store it, because the rendition may exist later.
            let stored = try rendition(await world.pipeline.findOrFollow(request))
            #expect(stored.provenance == .hit && !stored.isStorable)
            #expect(world.conversions.count { $0 != "json" } == 1 && world.fetches.count == 2)
            let without = try world.request("/a.gif")
            await #expect(throws: RenditionError.self) { try await world.pipeline.findOrFollow(without) }
        }
    }

    @Test func nothingIsConvertedForASourceThatMustNotBeStored() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(fetch: gate)) { world async throws in
            world.answer("/a.gif", .content(gif, CacheDirectives("no-store")))
            let followed = try source(await world.pipeline.findOrFollow(world.request("/a.gif")))
            #expect(!followed.isStorable)
            gate.open()
            #expect(try await bytes(followed) == gif)
            try await waitUntil("the end of the flight") { world.renditionState.flights.count == 0 }
            #expect(world.conversions.isEmpty)
        }
    }

    @Test func aPurgeSeparatesLaterFollowersFromAFetchInProgress() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(fetch: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            let early = try source(await world.pipeline.findOrFollow(world.request("/a.gif")))
            let changed = Array("GIF89a after the purge".utf8)
            world.answer("/a.gif", .content(changed))
            _ = try await world.purger.purge(.url(try world.url("/a.gif").canonical))
            let late = try source(await world.pipeline.findOrFollow(world.request("/a.gif")))
            gate.open()
            #expect(try await bytes(early) == gif)
            #expect(try await bytes(late) == changed)
            #expect(world.fetches.count == 2)
        }
    }

    @Test func aCancelledCallerLeavesTheFlightToGoOn() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            let request = try world.request("/a.gif")
            let task = Task { try await world.pipeline.findOrFollow(request) }
            task.cancel()
            _ = await task.result
            gate.open()
            try await waitUntil("the end of the flight") { world.renditionState.flights.count == 0 }
            let isStored = !world.conversions.isEmpty
            #expect(try await world.find("/a.gif").provenance == (isStored ? .hit : .stored))
        }
    }
}
