import Store
import TestSupport
import Testing

@testable import Fetch
@testable import Renditions

@Suite("An image that is no animation is stored and renewed like a source", .timeLimit(.minutes(10))) struct ImageTests {
    private let jpeg: [UInt8] = [0xff, 0xd8, 0xff, 0xe0, 1]
    private let newer: [UInt8] = [0xff, 0xd8, 0xff, 0xe0, 1, 2]

    /// The answer in place of a rendition.
    private func image(_ path: String, in world: PipelineFixture) async throws -> RenditionResult? {
        let error = try #require(try await world.error(of: path))
        return try await world.pipeline.original(insteadOf: error, for: try world.request(path))
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

    @Test func anImageThatCannotBeFetchedIsNotFetchedForEachRequest() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .failure(.notAnAnimation(looksLike: .jpeg)))
            #expect(try await world.error(of: "/a.gif") != nil)
            world.answer("/a.gif", .failure(.tooLarge(limit: 1000, declared: nil)))
            for _ in 0..<3 { #expect(try await image("/a.gif", in: world) == nil) }
            #expect(world.fetches.count == 2)
        }
    }
}
