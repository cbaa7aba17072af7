import Fetch
import Store
import Synchronization
import TestSupport
import Testing

@testable import Renditions

@Suite("What a purge may have covered is used only if its origin confirms it or does not answer", .timeLimit(.minutes(10)))
struct UnconfirmedTests {
    private let gif: [UInt8] = Array("GIF89a".utf8)

    @Test(arguments: [
        FetchError.timeout(.connect, limit: .seconds(3)), .unreachable(cause: "a test"), .failed(.status(503, retryAfter: nil)),
    ])
    func anUnconfirmedRenditionIsTheAnswerIfTheOriginFails(_ failure: FetchError) async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif, etag: "\"1\""))
            let stored = try await world.find("/a.gif").rendition.objectID
            await world.purger.revalidateAll(.possible)
            world.answer("/a.gif", .failure(failure))
            // The second time, the failure is known.
            for _ in 0..<2 {
                let result = try await world.find("/a.gif")
                #expect(result.provenance == .stale(0) && result.rendition.objectID == stored)
            }
            #expect(world.fetches.count == 2)
            let followed = try await world.pipeline.findOrFollow(world.request("/a.gif"))
            guard case .rendition(let result) = followed else {
                Issue.record("the source is sent")
                return
            }
            #expect(result.provenance == .stale(0))
        }
    }

    @Test func anOriginThatAnswersDecides() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif, etag: "\"1\""))
            let old = try await world.find("/a.gif").rendition.objectID
            await world.purger.revalidateAll(.possible)
            #expect(try await world.find("/a.gif").provenance == .renewed)
            #expect(try await world.find("/a.gif").provenance == .hit)
            await world.purger.revalidateAll(.possible)
            world.answer("/a.gif", .content(Array("GIF89a, another".utf8), etag: "\"2\""))
            #expect(try await world.find("/a.gif").rendition.objectID != old)
            await world.purger.revalidateAll(.possible)
            world.answer("/a.gif", .failure(.gone))
            #expect(try await world.error(of: "/a.gif") == .fetchFailed(.gone))
        }
    }

    @Test func anOriginIsNotWaitedForLong() async throws {
        let gate = AsyncGate()
        gate.open()
        try await PipelineFixture.run(gates: .init(fetch: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            _ = try await world.find("/a.gif")
            await world.purger.revalidateAll(.possible)
            gate.close()
            #expect(try await world.find("/a.gif").provenance == .stale(0))
            // Nobody waits any more, and the origin is still asked.
            #expect(world.renditionState.missesInProgress == 1)
            gate.open()
            try await waitUntil("the confirmation") { try await world.find("/a.gif").provenance == .hit }
        }
    }

    /// Another node has accepted its purge before the request.
    @Test(arguments: [true, false]) func aPurgeThatComesMeanwhileLeavesNoAnswer(_ isOfOtherNode: Bool) async throws {
        let gate = AsyncGate()
        gate.open()
        try await PipelineFixture.run(gates: .init(fetch: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            _ = try await world.find("/a.gif")
            let scope = PurgeScope.url(try world.url("/a.gif").canonical)
            let other = Purge(scope, madeAt: world.cache.epoch.began, isLocal: false, token: "other", entry: "1-0")
            world.advance(1)
            await world.purger.revalidateAll(.possible)
            gate.close()
            let before = gate.count
            async let error = world.error(of: "/a.gif")
            try await waitUntil("the fetch") { gate.count > before }
            _ = try await isOfOtherNode ? world.cache.purge([other]) : world.purger.purge(scope).counts
            #expect(try await error != nil)
            gate.open()
        }
    }

    @Test func whatIsKnownToBeMissedIsNeverUsedWithoutTheOrigin() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            _ = try await world.find("/a.gif")
            await world.purger.revalidateAll(.certain)
            world.answer("/a.gif", .failure(.timeout(.connect, limit: .seconds(3))))
            #expect(try await world.error(of: "/a.gif") == .fetchFailed(.timeout(.connect, limit: .seconds(3))))
        }
    }

    @Test func requestsWaitForTheGateUntilItIsOpenOrItsTimeIsOver() async throws {
        let gate = CatchUpGate(isOpen: false)
        let isOver = Mutex(false)
        let waiting = Task {
            await gate.wait(until: .seconds(3600))
            return isOver.withLock { $0 }
        }
        await gate.wait(until: .milliseconds(1))
        #expect(!gate.isOpen)
        isOver.withLock { $0 = true }
        gate.open()
        #expect(await waiting.value)
        await gate.wait(until: .seconds(3600))
        #expect(gate.isOpen)
    }
}
