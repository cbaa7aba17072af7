import Fetch
import TestSupport
import Testing

@testable import Renditions

@Suite("A client follows the source while other nodes decide who makes the rendition", .timeLimit(.minutes(10)))
struct CoordinatedFollowTests {
    private let gif: [UInt8] = Array("GIF89a of a certain size".utf8)

    @Test func theMemoryOfASourceIsThatOfItsSizeOnceItHasArrived() async throws {
        let gate = AsyncGate()
        let kept = gif.count + FollowedSource.pieceLimit
        let failure = try #require(SharedFailure(.fetchFailed(.gone), foundAt: 1_700_000_000))
        let nodes = OtherNodes(gate: gate, role: .failed(failure))
        try await PipelineFixture.run(tier: EmptyTier(), coordinator: nodes) { world async throws in
            world.answer("/a.gif", .content(gif))
            var followed: FollowedResult? = try await world.pipeline.findOrFollow(world.request("/a.gif"))
            try await waitUntil("the end of the fetch, and the other nodes' answer to be due") {
                world.renditionState.admission.load == (1, kept) && gate.count == 1
            }
            gate.open()
            try await waitUntil("the end of the miss") { world.renditionState.admission.load == (0, kept) }
            withExtendedLifetime(followed) {}
            followed = nil
            try await waitUntil("no memory") { world.renditionState.admission.load == (0, 0) }
        }
    }

    @Test func theMissConvertsTheSourceThatItsClientFollows() async throws {
        let gate = AsyncGate()
        let nodes = OtherNodes(gate: gate, role: .alone)
        try await PipelineFixture.run(tier: EmptyTier(), coordinator: nodes) { world async throws in
            world.answer("/a.gif", .content(gif))
            _ = try await world.pipeline.findOrFollow(world.request("/a.gif"))
            try await waitUntil("the end of the fetch, and the other nodes' answer to be due") {
                world.renditionState.admission.load == (1, gif.count) && gate.count == 1
            }
            gate.open()
            try await waitUntil("the rendition") { world.renditionState.flights.count == 0 }
            #expect(world.fetches.count == 1 && world.conversions == ["mp4"])
            try await waitUntil("no memory") { world.renditionState.admission.load == (0, 0) }
        }
    }
}
