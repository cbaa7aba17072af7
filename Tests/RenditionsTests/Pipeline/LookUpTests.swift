import Media
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Fetch
@testable import Renditions
@testable import Store

@Suite("A miss looks up as little as it can, and never takes a full queue for a miss", .timeLimit(.minutes(10)))
struct LookUpTests {
    private let gif: [UInt8] = Array("GIF89a of a certain size".utf8)

    // MARK: Number

    @Test func aMissLooksUpItsAliasOnceAndItsObjectOnce() async throws {
        StatementTrace.install()
        let threads = CacheThreads(create: CacheThreads.system.create, includeHousekeeping: false)
        try await PipelineFixture.run(threads: threads) { world async throws in
            world.answer("/a.gif", .content(gif))
            let trace = StatementTrace(path: world.ledgerPath)
            #expect(try await world.find("/a.gif").provenance == .stored)
            let lookUps = trace.lookUps
            #expect(lookUps.count == 2, "\(lookUps)")
            #expect(lookUps.first?.contains("FROM aliases") == true && lookUps.last?.contains("FROM objects") == true)
        }
    }

    @Test func aFlightFindsWhatWasPublishedAfterTheLookUp() async throws {
        try await PipelineFixture.run { world async throws in
            for path in ["/a.gif", "/b.gif"] { world.answer(path, .content(gif)) }
            let other = try await world.find("/b.gif").rendition
            let request = try world.request(
                "/a.gif",
                allowance: MissAllowance { _ in
                    publishAlias("/a.gif", to: other, in: world)
                    return nil
                })
            #expect(try await world.pipeline.find(request).provenance == .hit)
            #expect(world.fetches.map(\.path) == ["/b.gif"])
        }
    }

    @Test func aFlightDoesNotUseTheValidatorsOfWhatWasPurgedAfterTheLookUp() async throws {
        try await PipelineFixture.run { world async throws in
            world.answer("/a.gif", .content(gif, etag: "\"1\""))
            _ = try await world.find("/a.gif")
            world.advance(2000)
            let request = try world.request(
                "/a.gif",
                allowance: MissAllowance { _ in
                    _ = world.cache.apply([world.cache.newPurge(.url("https://a.test/a.gif"))])
                    return nil
                })
            #expect(try await world.pipeline.find(request).provenance == .stored)
            #expect(world.fetches.map(\.etag) == [nil, nil])
        }
    }

    /// Publishes what another flight would.
    private func publishAlias(_ path: String, to other: CachedRendition, in world: PipelineFixture) {
        guard let request = try? world.request(path), let known = other.alias else { return }
        let alias = AliasRecord(
            key: request.key, sourceURL: request.source.canonical, rendition: known.rendition,
            times: OriginTimes(fetchedAt: known.times.fetchedAt))
        _ = world.cache.publisher.addAlias(alias, to: other.objectID, epoch: world.cache.version.epoch)
    }

    // MARK: A full queue

    @Test func aLookUpThatCannotWaitDoesNotAskTheOrigin() async throws {
        let queue = FullableQueue()
        try await PipelineFixture.run(threads: queue.threads) { world async throws in
            for path in ["/a.gif", "/b.gif"] { world.answer(path, .content(gif)) }
            let first = try await world.find("/a.gif")
            world.cache.forgetHot()
            queue.isFull.store(true, ordering: .relaxed)
            for path in ["/a.gif", "/b.gif"] {
                let error = try await world.error(of: path)
                guard case .overloaded? = error else {
                    Issue.record("\(path): \(String(describing: error))")
                    continue
                }
                let request = try world.request(path)
                await #expect(throws: RenditionError.self) { try await world.pipeline.findOrFollow(request) }
                // Without a lookup before the flight.
                world.pipeline.produceBehindResponse(request)
                try await waitUntil("the end of the flight") { world.renditionState.missesInProgress == 0 }
            }
            // Whether the object is stored is unknown.
            let id = first.rendition.objectID
            await #expect(throws: RenditionError.self) {
                try await world.pipeline.object(id, fileExtension: "mp4", allowance: .unlimited)
            }
            #expect(world.fetches.count == 1 && world.conversions.count == 1)
            queue.isFull.store(false, ordering: .relaxed)
            #expect(try await world.find("/a.gif").provenance == .hit)
            #expect(try await world.find("/b.gif").provenance == .stored)
        }
    }

    @Test func aFlightThatCannotLookUpAgainDoesNotAskTheOrigin() async throws {
        let queue = FullableQueue()
        try await PipelineFixture.run(threads: queue.threads) { world async throws in
            for path in ["/a.gif", "/b.gif"] { world.answer(path, .content(gif)) }
            let other = try await world.find("/b.gif").rendition
            let request = try world.request(
                "/a.gif",
                allowance: MissAllowance { _ in
                    publishAlias("/c.gif", to: other, in: world)
                    queue.isFull.store(true, ordering: .relaxed)
                    return nil
                })
            await #expect(throws: RenditionError.self) { try await world.pipeline.find(request) }
            #expect(world.fetches.map(\.path) == ["/b.gif"])
        }
    }
}

/// The threads of a cache whose queue of lookups can be full.
private final class FullableQueue: Sendable {
    let isFull = Atomic(false)

    var threads: CacheThreads {
        CacheThreads(
            create: { count, limit, name in
                let threads = WorkThreads(count: count, limit: limit, name: name)
                return name == "cache-lookup" ? Work(base: threads, queue: self) : threads
            }, includeHousekeeping: false)
    }

    private struct Work: BlockingWork {
        let base: WorkThreads
        let queue: FullableQueue

        func submit(_ work: @escaping BlockingWork.Work) -> Bool {
            !queue.isFull.load(ordering: .relaxed) && base.submit(work)
        }

        func close() { base.close() }
    }
}
