import Digests
import Fetch
import Media
import Store
import SystemIO
import TestSupport
import Testing

@testable import Renditions

@Suite("A source whose bytes are on the block list is not converted", .timeLimit(.minutes(10)))
struct BlockedFileTests {
    private let gif = Array("GIF89a of a certain size".utf8)
    private let blocked = RenditionError.blocked(label: "case 17")

    private func list(of bytes: [UInt8]) throws -> BlockList {
        let text = Array("sha256:\(Hex.encode(SHA256.hash(bytes))) case 17\n".utf8)
        return try text.withUnsafeBytes { try BlockList($0) }
    }

    @Test func nothingIsConvertedOrStored() async throws {
        try await PipelineFixture.run(blocks: list(of: gif)) { world async throws in
            world.answer("/a.gif", .content(gif))
            #expect(try await world.error(of: "/a.gif") == blocked)
            #expect(world.conversions.isEmpty && world.cache.statistics().objects == 0)
        }
    }

    @Test func theSourceIsRememberedForAllItsRenditions() async throws {
        try await PipelineFixture.run(blocks: list(of: gif)) { world async throws in
            world.answer("/a.gif", .content(gif))
            #expect(try await world.error(of: "/a.gif") == blocked)
            #expect(try await world.error(of: "/a.gif", .jpg) == .remembered(blocked, remaining: 600))
            #expect(try await world.error(of: "/a.gif", .original) == .remembered(blocked, remaining: 600))
            #expect(world.fetches.count == 1)
            // Another list is in force.
            world.renditionState.forgetRefusals()
            #expect(try await world.error(of: "/a.gif") == blocked)
            #expect(world.fetches.count == 2)
        }
    }

    @Test func theSourceItselfIsRefusedToo() async throws {
        try await PipelineFixture.run(blocks: list(of: gif)) { world async throws in
            world.answer("/a.gif", .content(gif))
            #expect(try await world.error(of: "/a.gif", .original) == blocked)
            let request = try world.request("/a.gif")
            let original = try await world.pipeline.original(insteadOf: blocked, for: request)
            #expect(original == nil && world.cache.statistics().objects == 0)
        }
    }

    @Test func otherSourcesAreConverted() async throws {
        try await PipelineFixture.run(blocks: list(of: gif)) { world async throws in
            world.answer("/a.gif", .content(gif + [0]))
            #expect(try await world.find("/a.gif").provenance == .stored)
            // A list without pictures needs no fingerprints.
            #expect(world.conversions == ["mp4"])
        }
    }

    @Test func whatIsStoredOfASourceThatChangesIntoABlockedOneIsForgotten() async throws {
        try await PipelineFixture.run(blocks: list(of: gif)) { world async throws in
            world.answer("/a.gif", .content([1, 2, 3]))
            #expect(try await world.find("/a.gif").provenance == .stored)
            world.advance(100_000)
            world.answer("/a.gif", .content(gif))
            #expect(try await world.error(of: "/a.gif") == blocked)
            #expect(try await world.error(of: "/a.gif") == .remembered(blocked, remaining: 600))
        }
    }

    @Test func noFollowerGetsAByteOfIt() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(fetch: gate), blocks: list(of: gif)) { world async throws in
            world.answer("/a.gif", .content(gif))
            let request = try world.request("/a.gif")
            let follower = Task { () -> RenditionError? in
                do throws(RenditionError) {
                    _ = try await world.pipeline.findOrFollow(request)
                    return nil
                } catch {
                    return error
                }
            }
            try await waitUntil("half of the source") { gate.count == 1 }
            gate.open()
            #expect(await follower.value == blocked)
        }
    }

    @Test func followersOfAnotherGetItWhole() async throws {
        try await PipelineFixture.run(blocks: list(of: [1])) { world async throws in
            world.answer("/a.gif", .content(gif))
            switch try await world.pipeline.findOrFollow(world.request("/a.gif")) {
            case .rendition(let result): #expect(result.provenance == .stored)
            case .source(let source): #expect(source.length == gif.count)
            }
        }
    }

    @Test func aSourceThatIsStoredUnchangedIsComparedWithoutItsFacts() async throws {
        try await PipelineFixture.run(blocks: list(of: gif)) { world async throws in
            // It was stored before it was on the list.
            let source = try #require(SourceDigest(bytes: SHA256.hash(gif)))
            let original = Rendition(format: .original)
            let url = try world.url("/a.gif").canonical
            let alias = AliasRecord(
                key: AliasKey(sourceURL: url, rendition: original.canonicalText), sourceURL: url,
                rendition: original.canonicalText, times: OriginTimes(fetchedAt: 1_700_000_000))
            let file = try await world.cache.stage(expecting: Int64(gif.count))
            try DescriptorIO.write(gif, to: file.descriptor.number, at: 0)
            _ = try await world.cache.publish(
                file, as: ObjectID(source, .gif, original), fileExtension: "original", facts: [], alias: alias,
                epoch: world.cache.epoch, storing: true)
            let part = try await world.pipeline.blockedSources(after: "")
            #expect(part.blocked.map(\.url) == [url] && part.blocked.map(\.label) == ["case 17"])
        }
    }

    @Test func storedSourcesAreComparedInParts() async throws {
        try await PipelineFixture.run(blocks: list(of: gif)) { world async throws in
            for name in ["/b.gif", "/a.gif"] {
                world.answer(name, .content(gif + Array(name.utf8)))
                _ = try await world.find(name)
                _ = try await world.find(name, .jpg)
            }
            let urls = try ["/a.gif", "/b.gif"].map { try world.request($0).source.canonical }
            var (next, ends) = ("", [String?]())
            for _ in 0..<3 {
                let part = try await world.pipeline.blockedSources(after: next, within: .zero)
                #expect(part.blocked.isEmpty && part.withoutFingerprints == part.compared)
                ends.append(part.next)
                next = part.next ?? ""
            }
            #expect(ends == [urls[0], urls[1], nil])
            let all = try await world.pipeline.blockedSources(after: "")
            #expect(all.compared == 2 && all.next == nil)
        }
    }
}
