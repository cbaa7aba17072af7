import Fleet
import Sandbox
import Store
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Fetch
@testable import Renditions

@Suite("A miss takes as few steps as it can", .timeLimit(.minutes(10))) struct MissTests {
    private let gif: [UInt8] = Array("GIF89a of a certain size".utf8)
    /// Of another node.
    private static let record: SharedRecord = {
        let id = ObjectID(hex: String(repeating: "0a", count: 32))
        guard let name = id.flatMap({ RenditionName(id: $0, fileExtension: "mp4") }) else { preconditionFailure() }
        return SharedRecord(outcome: .object(name), times: OriginTimes(fetchedAt: 1_700_000_000, freshFor: 100))
    }()

    @Test func aMissFetchesAndConvertsAndTheNextRequestIsAHit() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif, etag: "\"1\""))
            let first = try await world.find("/a.gif")
            #expect(first.provenance == .stored && first.times.fetch == .milliseconds(1) && first.isStorable)
            let second = try await world.find("/a.gif")
            #expect(second.provenance == .hit && second.times.fetch == .zero)
            #expect(try second.rendition.descriptor.readAll() == [UInt8](repeating: gif[0], count: 8))
            #expect(world.fetches == [.init(path: "/a.gif", etag: nil)] && world.conversions == ["mp4"])
        }
    }

    @Test func theSameBytesUnderAnotherURLAreNotConvertedAgain() async throws {
        try await PipelineFixture.run { world async throws in
            for path in ["/a.gif", "/b.gif"] {
                world.answer(path, .content(gif))
                #expect(try await world.find(path).provenance == .stored)
            }
            #expect(world.fetches.count == 2 && world.conversions.count == 1)
            #expect(try await world.find("/b.gif").provenance == .hit)
        }
    }

    @Test func theRenditionOfAnotherNodeIsUsedAlthoughTheDiskTakesNone() async throws {
        let gate = AsyncGate()
        gate.open()
        let nodes = OtherNodes(gate: gate, role: .found(Self.record, isFollowed: true))
        try await PipelineFixture.run(tier: FullTier(gate: gate), coordinator: nodes) { world async throws in
            world.cache.setLimits(maxBytes: 1 << 30, minFreeBytes: 1 << 60)
            let result = try await world.find("/a.gif")
            #expect(result.provenance == .followed && !result.isStored)
            #expect(world.fetches.isEmpty && world.conversions.isEmpty)
        }
    }

    @Test func aRenditionMadeInPlaceOfUselessRecordsIsStoredForTheOtherNodes() async throws {
        let (gate, saved) = (AsyncGate(), AsyncGate())
        gate.open()
        let nodes = OtherNodes(gate: gate, role: .found(Self.record, isFollowed: false))
        try await PipelineFixture.run(tier: EmptyTier(saved: saved), coordinator: nodes) { world async throws in
            world.answer("/a.gif", .content(gif))
            #expect(try await world.find("/a.gif").provenance == .stored)
            try await waitUntil("the upload") { saved.count == 1 }
            saved.open()
        }
    }

    @Test func anUploadIsAnsweredWhenTheOtherNodesCanReadIt() async throws {
        let saved = AsyncGate()
        try await PipelineFixture.run(jobs: 1, tier: EmptyTier(saved: saved)) { world async throws in
            var file = try MemoryFile(name: "upload")
            try gif.withUnsafeBytes { try file.append($0) }
            let source = SourceFile(
                bytes: try file.seal(), count: gif.count, digest: gif.withUnsafeBytes { SourceDigest(of: $0) })
            let isSaved = Mutex(false)
            let answer = Task {
                let result = try await world.pipeline.find(UploadRequest(Rendition(format: .mp4), of: source))
                return isSaved.withLock { $0 } && result.provenance == .stored
            }
            try await waitUntil("the store to be asked") { saved.count == 1 }
            // The wait refuses no other work.
            #expect(world.pipeline.hasCapacity)
            isSaved.withLock { $0 = true }
            saved.open()
            #expect(try await answer.value)
        }
    }

    @Test func aRecordWhoseTimeIsOutOfRangeByTheClockOfThisNodeIsNotStored() async throws {
        let gate = AsyncGate()
        gate.open()
        var record = Self.record
        record.times.fetchedAt = 1 << 53
        let nodes = OtherNodes(gate: gate, role: .found(record, isFollowed: false))
        try await PipelineFixture.run(tier: FullTier(gate: gate), coordinator: nodes) { world async throws in
            world.answer("/a.gif", .failure(.unreachable(cause: "refused")))
            world.setBack(5)
            #expect(try await world.error(of: "/a.gif") != nil)
            let isStored = try world.cache.ledger.read { try $0.first("SELECT 1 FROM aliases") { _ in true } }
            #expect(isStored == nil)
        }
    }

    @Test func renditionsThatAreRequestedTogetherShareAFetch() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(fetch: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            async let video = world.find("/a.gif")
            async let poster = world.find("/a.gif", .jpg)
            async let same = world.find("/a.gif")
            try await waitUntil("two flights") {
                world.renditionState.flights.waiterCount == 3 && world.renditionState.admission.load.jobs == 2
                    && gate.count == 1
            }
            gate.open()
            let provenances = try await [video.provenance, poster.provenance, same.provenance]
            #expect(provenances[1] == .stored && Set([provenances[0], provenances[2]].map { "\($0)" }).count == 2)
            #expect(world.fetches.count == 1 && world.conversions.sorted() == ["jpg", "mp4"])
        }
    }

    /// A conversion keeps its source in memory, where other renditions of it find it.
    @Test(arguments: [SourceEnd.none, .age, .purge, .revalidation])
    private func aSourceInMemoryIsSharedWhileItIsFresh(_ end: SourceEnd) async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            async let video = world.find("/a.gif")
            try await waitUntil("a conversion") { gate.count == 1 }
            switch end {
            case .none: break
            case .age: world.advance(100)
            case .purge: _ = try await world.purger.purge(.url("https://a.test/a.gif"))
            case .revalidation: await world.purger.revalidateAll()
            }
            async let poster = world.find("/a.gif", .jpg)
            try await waitUntil("another conversion") { gate.count == 2 }
            #expect(world.fetches.count == (end == .none ? 1 : 2))
            gate.open()
            _ = try await (video, poster)
        }
    }

    @Test func theGIFItselfIsStoredWithoutAConversion() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            let result = try await world.find("/a.gif", .original)
            #expect(try result.rendition.descriptor.readAll() == gif && result.provenance == .stored)
            #expect(world.conversions.isEmpty)
            #expect(try await world.find("/a.gif", .original).provenance == .hit)
        }
    }

    @Test func aFullQueueIsRefusedBeforeTheFetch() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(jobs: 1, gates: .init(fetch: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            async let first = world.find("/a.gif")
            try await waitUntil("the fetch") { gate.count == 1 }
            #expect(!world.pipeline.hasCapacity)
            #expect(try await world.error(of: "/b.gif") == .overloaded(cause: nil))
            gate.open()
            let provenance = try await first.provenance
            #expect(provenance == .stored)
            #expect(world.fetches.count == 1 && world.pipeline.hasCapacity)
            #expect(world.renditionState.admission.load == (0, 0))
        }
    }

    @Test func anAllowanceIsUsedByMissesOnly() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            let uses = Mutex(0)
            let allowance = MissAllowance { _ in
                uses.withLock { uses in
                    uses += 1
                    return uses > 1 ? 7 : nil
                }
            }
            for _ in 0..<3 { _ = try await world.pipeline.find(world.request("/a.gif", allowance: allowance)) }
            #expect(uses.withLock { $0 } == 1)
            let other = try world.request("/b.gif", allowance: allowance)
            await #expect(throws: RenditionError.rateLimited(retryAfter: 7)) { try await world.pipeline.find(other) }
            #expect(world.fetches.count == 1)
        }
    }

    @Test func postersPastTheEndShareTheLastFrame() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            let last = try await world.find("/a.gif", .png, ["frame": "4"])
            for frame in ["5", "80", "999999999"] {
                let past = try await world.find("/a.gif", .png, ["frame": frame])
                #expect(past.rendition.objectID == last.rendition.objectID, "\(frame)")
            }
            #expect(try await world.find("/a.gif", .png, ["frame": "1234"]).provenance == .hit)
            // The converter learns the number of frames by the first poster past the end.
            #expect(world.conversions == ["png,frame=4", "png,frame=5"])
        }
    }

    @Test func anUploadIsStoredUnderItsContent() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            let url = try await world.find("/a.gif")
            let loaded = try #require(try await world.cache.rendition(for: url.rendition.objectID, countsMiss: true))
            let found = try await world.pipeline.object(loaded.objectID, fileExtension: "mp4", allowance: .unlimited)
            #expect(found?.objectID == loaded.objectID)
            let unknown = try #require(ObjectID(hex: String(repeating: "0", count: 64)))
            #expect(try await world.pipeline.object(unknown, fileExtension: "mp4", allowance: .unlimited) == nil)
        }
    }
}

@Suite("Origins decide how long renditions are used", .timeLimit(.minutes(10))) struct RenewalTests {
    private let gif: [UInt8] = Array("GIF89a first".utf8)
    private let changed: [UInt8] = Array("gIF89a second".utf8)

    @Test func aStaleRenditionIsSentAndRenewedBehindTheResponse() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif, etag: "\"1\""))
            _ = try await world.find("/a.gif")
            world.advance(150)
            #expect(try await world.find("/a.gif").provenance == .stale(50))
            try await waitUntil("the renewal") { world.renditionState.flights.count == 0 && world.fetches.count == 2 }
            #expect(world.fetches.last == .init(path: "/a.gif", etag: "\"1\""))
            #expect(try await world.find("/a.gif").provenance == .hit)
            #expect(world.conversions.count == 1)
        }
    }

    @Test func anExpiredRenditionIsConfirmedByTheOriginOrReplaced() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif, etag: "\"1\""))
            _ = try await world.find("/a.gif")
            world.advance(2000)
            #expect(try await world.find("/a.gif").provenance == .renewed)
            #expect(world.conversions.count == 1)
            world.advance(2000)
            world.answer("/a.gif", .content(changed, etag: "\"2\""))
            let replaced = try await world.find("/a.gif")
            #expect(replaced.provenance == .stored && world.conversions.count == 2)
            #expect(try replaced.rendition.descriptor.read(1, at: 0) == [changed[0]])
            #expect(world.fetches.map(\.etag) == [nil, "\"1\"", "\"1\""])
        }
    }

    @Test func aSourceThatItsOriginRemovesIsForgotten() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            let first = try await world.find("/a.gif")
            world.advance(2000)
            world.answer("/a.gif", .failure(.gone))
            #expect(try await world.error(of: "/a.gif") == .fetchFailed(.gone))
            let key = try world.request("/a.gif").key
            #expect(try await world.cache.rendition(for: key, countsMiss: true) == nil)
            withExtendedLifetime(first) {}
        }
    }

    @Test func aFailingOriginLeavesTheStaleRendition() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            _ = try await world.find("/a.gif")
            world.advance(150)
            world.answer("/a.gif", .failure(.timeout(.total, limit: .seconds(3))))
            #expect(try await world.find("/a.gif").provenance == .stale(50))
            try await waitUntil("the failed renewal") { world.renditionState.rememberedFailures == 1 }
            // The origin is not asked again while its failure is remembered.
            #expect(try await world.find("/a.gif").provenance == .stale(50))
            try await waitUntil("no flight") { world.renditionState.flights.count == 0 }
            #expect(world.fetches.count == 2)
        }
    }

    @Test func whatMustNotBeStoredIsSentAndForgotten() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif, CacheDirectives("no-store")))
            for count in 1...2 {
                let result = try await world.find("/a.gif")
                #expect(result.provenance == .unstored(.unwanted) && !result.isStorable && world.fetches.count == count)
            }
            world.answer("/b.gif", .content(gif, etag: "\"1\""))
            _ = try await world.find("/b.gif")
            world.advance(2000)
            world.answer("/b.gif", .content(gif, etag: "\"1\"", CacheDirectives("private")))
            #expect(try await world.find("/b.gif").provenance == .unstored(.unwanted))
            let key = try world.request("/b.gif").key
            #expect(try await world.cache.rendition(for: key, countsMiss: true) == nil)
        }
    }

    @Test func theLifetimeOfTheOriginCounts() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif, CacheDirectives("max-age=500")))
            _ = try await world.find("/a.gif")
            world.advance(499)
            #expect(try await world.find("/a.gif").provenance == .hit)
            world.advance(2)
            #expect(try await world.find("/a.gif").provenance == .stale(1))
        }
    }

    @Test func aLifetimeThatAConfirmationDoesNotRepeatIsKept() async throws {
        try await PipelineFixture.run(rules: .lasting()) { world async throws in
            world.answer("/a.gif", .content(gif, etag: "\"1\"", CacheDirectives("max-age=500")))
            _ = try await world.find("/a.gif")
            world.answer("/a.gif", .content(gif, etag: "\"1\""))
            world.advance(600)
            #expect(try await world.find("/a.gif").provenance == .stale(100))
            try await waitUntil("the renewal") { world.renditionState.flights.count == 0 && world.fetches.count == 2 }
            world.advance(499)
            #expect(try await world.find("/a.gif").provenance == .hit)
            world.advance(2)
            #expect(try await world.find("/a.gif").provenance == .stale(1))
        }
    }

    /// The lifetime was stored under other settings.
    @Test func aStoredLifetimeIsIgnoredWhereTheOriginIsNotObeyed() async throws {
        try await PipelineFixture.run(rules: .lasting(isObeyed: false)) { world async throws in
            world.answer("/a.gif", .content(gif, etag: "\"1\""))
            let first = try await world.find("/a.gif")
            var alias = try #require(first.rendition.alias)
            alias.times.freshFor = 10
            let epoch = world.cache.epoch
            _ = try #require(await world.cache.link(alias, to: first.rendition.objectID, epoch: epoch))
            world.advance(20)
            #expect(try await world.find("/a.gif").provenance == .stale(10))
            try await waitUntil("the renewal") { world.renditionState.flights.count == 0 && world.fetches.count == 2 }
            world.advance(50)
            #expect(try await world.find("/a.gif").provenance == .hit)
        }
    }

    @Test func anObjectIsNotCalledAbsentWhileTheSharedStoreCannotTell() async throws {
        let unknown = try #require(ObjectID(hex: String(repeating: "0", count: 64)))
        try await PipelineFixture.run(tier: EmptyTier(answer: .unavailable)) { world async throws in
            await #expect(throws: RenditionError.storageFailed(cause: "The shared store does not answer.")) {
                try await world.pipeline.object(unknown, fileExtension: "mp4", allowance: .unlimited)
            }
            // A miss does without the store.
            world.answer("/a.gif", .content([1]))
            #expect(try await world.find("/a.gif").provenance == .stored)
        }
    }

    /// A deployment under way, say.
    @Test func aStaleRenditionOutlivesASourceThatIsMissingForAWhile() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content([1], etag: "\"1\""))
            _ = try await world.find("/a.gif")
            world.advance(150)
            world.answer("/a.gif", .failure(.notFound))
            for seconds in [0, 30, 40, 400] as [Int64] {
                world.advance(seconds)
                guard case .stale = try await world.find("/a.gif").provenance else {
                    Issue.record("not stale")
                    return
                }
                try await waitUntil("the end of a renewal") { try world.hasFailed("/a.gif") }
            }
            #expect(world.fetches.count == 4)
            world.answer("/a.gif", .content([1], etag: "\"1\""))
            world.advance(60)
            _ = try await world.find("/a.gif")
            try await waitUntil("the renewal") { try await world.find("/a.gif").provenance == .hit }
            #expect(world.conversions.count == 1)
            // The next 404 is a first one again.
            world.advance(150)
            world.answer("/a.gif", .failure(.notFound))
            guard case .stale = try await world.find("/a.gif").provenance else {
                Issue.record("not stale")
                return
            }
        }
    }

    @Test func aStaleRenditionEndsWithASourceThatStaysMissing() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content([1]))
            _ = try await world.find("/a.gif")
            world.advance(150)
            world.answer("/a.gif", .failure(.notFound))
            _ = try await world.find("/a.gif")
            try await waitUntil("the first 404") { try world.hasFailed("/a.gif") }
            world.advance(601)
            _ = try await world.find("/a.gif")
            try await waitUntil("the second 404") {
                guard case .remembered(.fetchFailed(.notFound), _) = try await world.error(of: "/a.gif") else { return false }
                return true
            }
            #expect(try await world.cache.rendition(for: try world.request("/a.gif").key, countsMiss: true) == nil)
        }
    }

    /// An error page with the status 200, and what an origin sends while a file is being replaced.
    @Test(arguments: [ContentKind.html, .empty])
    func aPageInPlaceOfThePictureDoesNotEndRenewals(_ kind: ContentKind) async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content([1], etag: "\"1\""))
            _ = try await world.find("/a.gif")
            world.advance(150)
            world.answer("/a.gif", .failure(.notAnAnimation(looksLike: kind)))
            _ = try await world.find("/a.gif")
            try await waitUntil("the failure") { try world.hasFailed("/a.gif") }
            world.answer("/a.gif", .content([1], etag: "\"1\""))
            world.advance(8)
            guard case .stale = try await world.find("/a.gif").provenance else {
                Issue.record("not stale")
                return
            }
            try await waitUntil("the renewal") { try await world.find("/a.gif").provenance == .hit }
        }
    }

    @Test func aRequestForStoredRenditionsFetchesNothing() async throws {
        try await PipelineFixture.run { world async throws in
            func request() throws -> RenditionRequest {
                RenditionRequest(Rendition(format: .mp4), of: try world.url("/a.gif"), isOnlyFromStore: true)
            }
            world.answer("/a.gif", .content([1]))
            await #expect(throws: RenditionError.notStored) { try await world.pipeline.find(request()) }
            await #expect(throws: RenditionError.notStored) { try await world.pipeline.findOrFollow(request()) }
            #expect(world.fetches.isEmpty)
            _ = try await world.find("/a.gif")
            #expect(try await world.pipeline.find(request()).provenance == .hit)
            // A stale one is not renewed by it.
            world.advance(150)
            #expect(try await world.pipeline.find(request()).provenance == .stale(50))
            world.advance(2000)
            await #expect(throws: RenditionError.notStored) { try await world.pipeline.find(request()) }
            #expect(world.renditionState.missesInProgress == 0 && world.fetches.count == 1)
        }
    }

    @Test func aRenditionThatMustBeRevalidatedIsNeverStale() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content([1], etag: "\"1\"", CacheDirectives("max-age=100, must-revalidate")))
            _ = try await world.find("/a.gif")
            world.advance(99)
            #expect(try await world.find("/a.gif").provenance == .hit)
            world.advance(1)
            #expect(try await world.find("/a.gif").provenance == .renewed)
            world.advance(100)
            world.answer("/a.gif", .failure(.failed(.status(500, retryAfter: nil))))
            #expect(try await world.error(of: "/a.gif") == .fetchFailed(.failed(.status(500, retryAfter: nil))))
        }
    }

    @Test func aStaleRenditionEndsWithTheSourceThatAnotherRequestFoundRemoved() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content([1]))
            _ = try await world.find("/a.gif")
            world.advance(150)
            world.answer("/a.gif", .failure(.gone))
            #expect(try await world.error(of: "/a.gif", .json) == .fetchFailed(.gone))
            let request = try world.request("/a.gif")
            let error = try await world.error(of: "/a.gif")
            guard case .remembered(.fetchFailed(.gone), _) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(try await world.cache.rendition(for: request.key, countsMiss: true) == nil)
        }
    }
}

/// What happens to a source in memory before it is asked for again.
private enum SourceEnd: Sendable {
    case none, age, purge, revalidation
}
