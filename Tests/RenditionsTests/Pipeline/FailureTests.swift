import Fetch
import Fleet
import Glibc
import Media
import Sandbox
import Store
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Renditions

@Suite("Failures are remembered as long as their cause lasts", .timeLimit(.minutes(10))) struct FailureTests {
    private let gif: [UInt8] = Array("GIF89a".utf8)
    private static let allowance = WorkerAllowance()

    @Test func aFailureOfTheSourceConcernsAllItsRenditions() async throws {
        try await PipelineFixture.run { world async throws in
            #expect(try await world.error(of: "/a.gif") == .fetchFailed(.notFound))
            #expect(try await world.error(of: "/a.gif") == .remembered(.fetchFailed(.notFound), remaining: 60))
            world.advance(20)
            #expect(try await world.error(of: "/a.gif", .jpg) == .remembered(.fetchFailed(.notFound), remaining: 40))
            #expect(try await world.error(of: "/b.gif") == .fetchFailed(.notFound))
            #expect(world.fetches.map(\.path) == ["/a.gif", "/b.gif"])
            world.advance(41)
            world.answer("/a.gif", .content(gif))
            #expect(try await world.find("/a.gif").provenance == .stored)
        }
    }

    @Test func aRequestThatFailedReleasesItsWatch() async throws {
        try await PipelineFixture.run { world async throws in
            var watch: MissWatch? = MissWatch()
            weak let released = watch
            var request = try world.request("/a.gif")
            swap(&request.watch, &watch)
            _ = try? await world.pipeline.find(request)
            #expect(world.fetches.count == 1)
            request.watch = nil
            try await waitUntil("the release of the watch") { released == nil }
        }
    }

    /// Of two requests that are answered 404 at once, one may note the source after the other has read the clock.
    @Test func aSourceMayBecomeMissingAfterTheClockWasRead() throws {
        let times = Mutex<[UInt64]>([0, 8_000_000_000, 5_000_000_000, 17_000_000_000, 19_000_000_000])
        let clock = TimeSource(
            unixNanoseconds: { 0 }, monotonicNanoseconds: { times.withLock { $0.isEmpty ? .max : $0.removeFirst() } })
        let missing = MissingSources(clock: clock)
        let source = try SourceURL("http://a.test/a.gif")
        let answers = (0..<4).map { _ in missing.note(source, grace: .seconds(10)) }
        #expect(answers == [true, true, true, false])
    }

    @Test func aFailureOfAConversionConcernsItsRenditionOnly() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            let failure = RenditionError.conversionFailed(.cpuLimitExceeded, allowance: Self.allowance)
            world.failConversions(failure)
            #expect(try await world.error(of: "/a.gif") == failure)
            #expect(try await world.error(of: "/a.gif") == .remembered(failure, remaining: 600))
            world.failConversions(nil)
            #expect(try await world.find("/a.gif", .jpg).provenance == .stored)
            #expect(world.conversions == ["mp4", "jpg"])
            world.advance(601)
            #expect(try await world.find("/a.gif").provenance == .stored)
        }
    }

    @Test func whatTheServerCausedIsNotRemembered() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            for error in [SandboxError.zygoteUnresponsive, .queueFull, .rejected(.failed(.write, code: -EIO))] {
                let failure = RenditionError.conversionFailed(error, allowance: Self.allowance)
                world.failConversions(failure)
                #expect(try await world.error(of: "/a.gif") == failure)
            }
            world.failConversions(nil)
            #expect(try await world.find("/a.gif").provenance == .stored)
            #expect(world.renditionState.rememberedFailures == 0)
        }
    }

    @Test func aConversionThatTakesTooLongIsTriedAgainAsMuchLater() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif))
            let failure = RenditionError.conversionFailed(.wallClockTimeout, allowance: Self.allowance)
            world.failConversions(failure)
            #expect(try await world.error(of: "/a.gif") == failure)
            #expect(try await world.error(of: "/a.gif") == .remembered(failure, remaining: Int64(Self.allowance.wall)))
            world.failConversions(nil)
            world.advance(Int64(Self.allowance.wall) + 1)
            #expect(try await world.find("/a.gif").provenance == .stored)
        }
    }

    @Test func aPurgeForgetsFailuresAndThoseInProgress() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(conversion: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            #expect(try await world.error(of: "/b.gif") == .fetchFailed(.notFound))
            world.failConversions(.conversionFailed(.cpuLimitExceeded, allowance: Self.allowance))
            let failing = Task { try await world.error(of: "/a.gif") }
            try await waitUntil("the conversion") { gate.count == 1 }
            _ = try await world.purger.purge(.prefix("https://a.test/"))
            #expect(world.renditionState.rememberedFailures == 0)
            gate.open()
            #expect(try await failing.value != nil)
            // The failure belongs to the source before the purge.
            #expect(world.renditionState.rememberedFailures == 0)
        }
    }

    /// A third node has accepted the purge before this node learns of the failure.
    @Test func aFailureOfAnotherNodeIsNotRememberedIfItsPurgeArrivesMeanwhile() async throws {
        let failure = try #require(SharedFailure(.fetchFailed(.notFound), foundAt: 4_000_000_000))
        let record = SharedRecord(
            outcome: .failure(code: failure.code, details: failure.details(scope: "")),
            times: OriginTimes(fetchedAt: failure.foundAt, freshFor: failure.lifetime))
        try await PipelineFixture.run { world async throws in
            let (cache, url) = (world.cache, try world.url("/a.gif").canonical)
            let purge = Purge(.url(url), madeAt: cache.epoch.began, isLocal: false, token: "other", entry: "1-0")
            world.advance(1)
            world.renditionState.remember(record, ofSourceAt: url) { true }
            #expect(world.renditionState.rememberedFailures == 1)
            world.renditionState.remember(record, ofSourceAt: url) { cache.announce(purge) }
            #expect(world.renditionState.rememberedFailures == 0)
        }
    }

    @Test func theGraceOfASourceBeginsAnewOnceAnotherNodeHasFoundIt() async throws {
        let id = ObjectID(gif.withUnsafeBytes { SourceDigest(of: $0) }, .gif, Rendition(format: .mp4))
        let record = SharedRecord(
            outcome: .object(try #require(RenditionName(id: id, fileExtension: "mp4"))),
            times: OriginTimes(fetchedAt: 1_700_000_000, freshFor: 10_000))
        let gate = AsyncGate()
        gate.open()
        let nodes = OtherNodes(gate: gate, role: .found(record, isFollowed: false))
        try await PipelineFixture.run(tier: EmptyTier(), coordinator: nodes) { world async throws in
            world.answer("/b.gif", .content(gif))
            #expect(try await world.find("/b.gif").rendition.objectID == id)
            let source = try world.url("/a.gif")
            #expect(world.renditionState.missing.note(source, grace: .seconds(600)))
            world.advance(700)
            #expect(try await world.find("/a.gif").provenance == .shared)
            #expect(world.fetches.map(\.path) == ["/b.gif"])
            #expect(world.renditionState.missing.note(source, grace: .seconds(600)))
        }
    }

    @Test func aFetchThatHangsIsAbandonedWithItsFlight() async throws {
        let gate = AsyncGate()
        try await PipelineFixture.run(gates: .init(fetch: gate)) { world async throws in
            world.answer("/a.gif", .content(gif))
            let request = try world.request("/a.gif")
            let caller = Task { try await world.pipeline.find(request) }
            try await waitUntil("the fetch") { gate.count == 1 }
            caller.cancel()
            await #expect(throws: RenditionError.cancelled) { try await caller.value }
            try await waitUntil("no flight") { world.renditionState.missesInProgress == 0 }
            gate.open()
            try await waitUntil("no slot") { world.renditionState.admission.load == (0, 0) }
            #expect(world.conversions.isEmpty)
        }
    }
}

@Suite("Errors tell how long they last and whether to try again") struct RenditionErrorTests {
    private static let allowance = WorkerAllowance()
    private static func conversion(_ error: SandboxError) -> RenditionError { .conversionFailed(error, allowance: allowance) }

    @Test(
        arguments: [
            (.fetchFailed(.notFound), .missing), (.fetchFailed(.gone), .missing),
            (.fetchFailed(.notAnAnimation(looksLike: .html)), .transient),
            (.fetchFailed(.notAnAnimation(looksLike: .empty)), .transient),
            (.fetchFailed(.notAnAnimation(looksLike: .png)), .unusable),
            (.fetchFailed(.tooLarge(limit: 1, declared: nil)), .unusable),
            (.fetchFailed(.timeout(.total, limit: .seconds(3))), .transient),
            (.fetchFailed(.unreachable(cause: "")), .transient),
            (.fetchFailed(.failed(.status(503, retryAfter: .seconds(9)))), .retryAfter(seconds: 9)),
            (.fetchFailed(.failed(.status(500, retryAfter: nil))), .transient),
            (.fetchFailed(.tooManyRedirects(limit: 5)), .transient), (.fetchFailed(.busy), nil),
            (.fetchFailed(.notAllowed(.redirect(host: "b.test"))), .transient), (.fetchFailed(.notAllowed(.pattern)), nil),
            (.fetchFailed(.exhausted(cause: "")), nil), (.fetchFailed(.closed), nil), (.fetchFailed(.cancelled), nil),
            (conversion(.rejected(.corrupt(.gif, .noFrames))), .unusable),
            (conversion(.rejected(.startPastEnd(start: 2, duration: 1))), nil),
            (conversion(.cpuLimitExceeded), .unusable), (conversion(.misbehaved(.garbledMessage)), .transient),
            (conversion(.wallClockTimeout), .retryAfter(seconds: Int64(allowance.wall))), (conversion(.queueFull), nil),
            (conversion(.rejected(.failed(.write, code: -EDQUOT))), nil),
            (conversion(.rejected(.failed(.write, code: -EFBIG))), .unusable), (.waitTimedOut(limit: .seconds(1)), nil),
            (conversion(.zygoteUnresponsive), nil),
            (.overloaded(cause: nil), nil), (.storageFailed(cause: ""), nil), (.cancelled, nil),
            (.notStored, nil), (.rateLimited(retryAfter: 3), nil), (.invalidOption(name: "x", reason: "y"), nil),
            (.remembered(.fetchFailed(.gone), remaining: 4), nil),
        ] as [(RenditionError, NegativeLifetime?)])
    func onlyWhatTheNextAttemptWouldRepeatIsRemembered(_ error: RenditionError, _ lifetime: NegativeLifetime?) {
        #expect(error.lifetime == lifetime)
    }

    @Test(
        arguments: [
            (.fetchFailed(.notAllowed(.address(.itself))), true), (.fetchFailed(.notAllowed(.redirect(host: "b.test"))), true),
            (.fetchFailed(.tooLarge(limit: 1, declared: nil)), true), (.fetchFailed(.tooManyRedirects(limit: 0)), true),
            (.fetchFailed(.timeout(.total, limit: .seconds(3))), true), (conversion(.rejected(.refused(.gif))), true),
            (conversion(.rejected(.tooLarge(.frames, value: 3, maximum: 2))), true), (conversion(.cpuLimitExceeded), true),
            (conversion(.rejected(.outOfMemory)), true), (conversion(.wallClockTimeout), true),
            (.fetchFailed(.notFound), false), (.fetchFailed(.failed(.status(500, retryAfter: nil))), false),
            (conversion(.rejected(.corrupt(.gif, .noFrames))), false), (.fetchFailed(.unreachable(cause: "")), false),
        ] as [(RenditionError, Bool)])
    func aReloadForgetsWhatSettingsHaveCaused(_ error: RenditionError, _ isForgotten: Bool) {
        #expect(error.isOfSettings == isForgotten)
    }

    @Test(
        arguments: [
            (.fetchFailed(.notFound), .never), (.fetchFailed(.notAnAnimation(looksLike: .html)), .never),
            (.fetchFailed(.timeout(.stall, limit: .seconds(3))), .whenOriginRecovers(after: nil)),
            (.fetchFailed(.failed(.status(503, retryAfter: .seconds(7)))), .whenOriginRecovers(after: 7)),
            (.fetchFailed(.failed(.status(503, retryAfter: .seconds(9999)))), .whenOriginRecovers(after: 300)),
            (.fetchFailed(.busy), .whenServerHasCapacity(after: 1)), (conversion(.queueFull), .whenServerHasCapacity(after: 2)),
            (conversion(.wallClockTimeout), .whenServerHasCapacity(after: 5)),
            (conversion(.rejected(.failed(.write, code: -EROFS))), .whenServerHasCapacity(after: 5)),
            (.waitTimedOut(limit: .seconds(1)), .whenServerHasCapacity(after: 5)), (conversion(.cpuLimitExceeded), .never),
            (.rateLimited(retryAfter: 11), .whenServerHasCapacity(after: 11)), (.cancelled, .whenServerHasCapacity(after: 2)),
            (.invalidSourceURL(.malformed), .never), (.storageFailed(cause: ""), .whenServerHasCapacity(after: 2)),
            (.remembered(.fetchFailed(.notFound), remaining: 8), .never),
            (.remembered(.fetchFailed(.timeout(.total, limit: .seconds(3))), remaining: 8), .whenOriginRecovers(after: 8)),
            (.remembered(.overloaded(cause: nil), remaining: 8), .whenServerHasCapacity(after: 8)),
        ] as [(RenditionError, RenditionError.Retry)])
    func aCallerLearnsWhetherAndWhenToTryAgain(_ error: RenditionError, _ retry: RenditionError.Retry) {
        #expect(error.retry == retry)
    }
}
