import Foundation
import SystemIO
import TestSupport
import Testing

@testable import SharedStore

@Suite("Attempts to send queued writes are spaced, and waits for them end", .timeLimit(.minutes(10))) struct QueueAttemptTests {
    /// Longer than any test.
    private static let long: Duration = .seconds(3600)
    private static let longPauses = Backoff(first: long, longest: long)

    /// A queue in a directory of its own.
    private func withQueue(
        puts: Int = 100, bytes: Int = 1 << 30, _ body: (WriteBehindQueue) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-attempt-\(UUID().uuidString)")
        let queue = try WriteBehindQueue(path: folder.path, limits: .init(puts: puts, bytes: bytes)) { _ in }
        defer {
            queue.close()
            try? FileManager.default.removeItem(at: folder)
        }
        try await body(queue)
    }

    private func put(_ rendition: TestRendition, _ queue: WriteBehindQueue) throws {
        queue.put(rendition.name, try rendition.file(), rendition.record, mediaType: "video/mp4")
    }

    private func putAndWait(
        _ rendition: TestRendition, _ queue: WriteBehindQueue, within limit: Duration = Self.long
    ) throws -> Task<Bool, Never> {
        let file = try rendition.file()
        return Task {
            await queue.put(rendition.name, file, rendition.record, mediaType: "video/mp4", within: limit)
        }
    }

    // MARK: Pauses

    @Test func anEntryThatFailedWaitsWhileOthersAreSent() async throws {
        try await withQueue { queue in
            let (a, b, c) = (try TestRendition(1), try TestRendition(2), try TestRendition(3))
            try put(a, queue)
            let failed = try #require(await queue.next())
            queue.putBack(failed, after: Self.longPauses)
            for rendition in [b, c] {
                try put(rendition, queue)
                let entry = try #require(await queue.next())
                #expect(entry.name == rendition.name)
                queue.finish(entry)
            }
            #expect(queue.gauges.entries == 1)
        }
    }

    @Test func anEntryThatFailedHoldsUpLaterOnesOfItsName() async throws {
        try await withQueue { queue in
            let (a, b) = (try TestRendition(1), try TestRendition(2))
            #expect(await queue.delete(a.name))
            queue.putBack(try #require(await queue.next()), after: Self.longPauses)
            try put(a, queue)
            try put(b, queue)
            let next = try #require(await queue.next())
            #expect(next.name == b.name)
            // A delete withdraws both, although one of them is paused.
            #expect(await queue.delete(a.name))
            let delete = try #require(await queue.next())
            #expect(delete == QueueEntry(sequence: 4, name: a.name, change: .delete))
        }
    }

    @Test func anEntryIsSentAgainAfterItsPause() async throws {
        try await withQueue { queue in
            try put(try TestRendition(1), queue)
            let failed = try #require(await queue.next())
            queue.putBack(failed, after: Backoff(first: .milliseconds(1), longest: .milliseconds(1)))
            #expect(await queue.next() == failed)
        }
    }

    @Test func theOldestEntryThatIsReadyIsNext() throws {
        var state = QueueState()
        let limits = WriteBehindQueue.Limits(puts: 100, bytes: 1 << 30)
        // Later ones of a name wait.
        var entries: [QueueEntry] = []
        for number: UInt64 in [0, 1, 2, 3, 0] {
            let entry = state.appendDelete(try TestRendition(number).name, limits)
            entries.append(try #require(entry))
        }
        for number in [3, 4, 1] { state.makeReady(entries[number]) }
        var order: [QueueEntry] = []
        while let entry = state.takeNext() { order.append(entry) }
        #expect(order == [entries[1], entries[3]])
        state.makeReady(entries[0])
        let first = state.takeNext()
        #expect(first == entries[0] && !state.hasNext)
        state.remove(entries[0])
        let last = state.takeNext()
        #expect(last == entries[4])
    }

    @Test func anEntryThatHasNotFailedComesBeforeOlderOnesThatHave() async throws {
        try await withQueue { queue in
            let names = try (1...2).map { try TestRendition($0).name }
            for name in names { #expect(await queue.delete(name)) }
            for _ in names { queue.putBack(try #require(await queue.next()), after: Self.longPauses) }
            queue.endPauses()
            #expect(queue.maySendersPause)
            let new = try TestRendition(3).name
            #expect(await queue.delete(new))
            #expect(!queue.maySendersPause)
            var order: [RenditionName] = []
            for _ in 0..<3 { order.append(try #require(await queue.next()).name) }
            #expect(order == [new] + names)
        }
    }

    @Test func drainingDoesNotWaitForPauses() async throws {
        try await withQueue { queue in
            try put(try TestRendition(1), queue)
            queue.putBack(try #require(await queue.next()), after: Self.longPauses)
            let draining = Task { await queue.drain(within: Self.long) }
            queue.finish(try #require(await queue.next()))
            #expect(await draining.value)
        }
    }

    // MARK: Waits

    @Test func aWaitEndsWithTheAttempt() async throws {
        try await withQueue { queue in
            let waiting = try putAndWait(try TestRendition(1), queue)
            queue.finish(try #require(await queue.next()))
            #expect(await waiting.value)
            let failing = try putAndWait(try TestRendition(2), queue)
            queue.putBack(try #require(await queue.next()), after: Self.longPauses)
            #expect(await !failing.value)
            #expect(queue.gauges.entries == 1)
        }
    }

    @Test func aWaitEndsWithItsLimit() async throws {
        try await withQueue { queue in
            let a = try TestRendition(1)
            let waiting = try putAndWait(a, queue, within: .milliseconds(1))
            #expect(await !waiting.value)
            #expect(await !queue.attempt(of: a.name, within: .milliseconds(1)))
            #expect(queue.gauges.entries == 1)
        }
    }

    @Test func aWaitForAPutIsNotEndedByTheDeleteBeforeIt() async throws {
        try await withQueue { queue in
            let a = try TestRendition(1)
            #expect(await queue.delete(a.name))
            let delete = try #require(await queue.next())
            let waiting = try putAndWait(a, queue)
            try await waitUntil("the put to be queued") { queue.gauges.entries == 2 }
            queue.finish(delete)
            queue.putBack(try #require(await queue.next()), after: Self.longPauses)
            #expect(await !waiting.value)
        }
    }

    @Test func aWaitForAPutThatIsEvictedOrWithdrawnEnds() async throws {
        try await withQueue(puts: 1) { queue in
            let (a, b, c) = (try TestRendition(1), try TestRendition(2), try TestRendition(3))
            let evicted = try putAndWait(a, queue)
            try await waitUntil("the put to be queued") { queue.gauges.entries == 1 }
            // The put before it is on disk now. Only such a put can be evicted.
            #expect(await queue.delete(b.name))
            let withdrawn = try putAndWait(c, queue)
            #expect(await !evicted.value)
            #expect(await queue.delete(c.name))
            #expect(await !withdrawn.value)
        }
    }

    @Test func aPutThatTheQueueRefusesIsNotWaitedFor() async throws {
        try await withQueue(bytes: 1000) { queue in
            let waiting = try putAndWait(try TestRendition(1), queue)
            #expect(await !waiting.value)
            #expect(queue.gauges == .init(entries: 0, bytes: 0, dropped: 1))
        }
    }

    @Test func closingEndsAllWaits() async throws {
        try await withQueue { queue in
            let waiting = try putAndWait(try TestRendition(1), queue)
            try await waitUntil("the put to be queued") { queue.gauges.entries == 1 }
            queue.close()
            #expect(await !waiting.value)
        }
    }
}
