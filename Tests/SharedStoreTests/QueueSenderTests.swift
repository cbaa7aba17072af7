import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import SharedStore

@Suite("The sender holds up no entry for the failures of others", .timeLimit(.minutes(10))) struct QueueSenderTests {
    /// A queue with a sender whose requests a test answers.
    private final class Fixture: Sendable {
        let folder: URL
        let queue: WriteBehindQueue
        let events: Recorder<StoreEvent>
        let sent = Recorder<QueueEntry>()
        /// The number of attempts by the sequence of their entry.
        let attempts = Mutex<[UInt64: Int]>([:])
        private let sender = Mutex<QueueSender?>(nil)

        init() throws {
            folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-sender-\(UUID().uuidString)")
            let events = Recorder<StoreEvent>()
            self.events = events
            queue = try WriteBehindQueue(path: folder.path, limits: .init(puts: 100, bytes: 1 << 30)) { events.add($0) }
        }

        /// - Parameter answer: The error of the attempt to send an entry, by the number of attempts before it; nil for success.
        func start(
            backoff: Backoff = Backoff(first: .milliseconds(1), longest: .milliseconds(2)),
            _ answer: @escaping @Sendable (QueueEntry, Int) -> StoreError?
        ) {
            let started = QueueSender(queue, concurrency: 2, backoff: backoff) { [self] entry throws(StoreError) in
                let number = attempts.withLock { attempts in
                    defer { attempts[entry.sequence, default: 0] += 1 }
                    return attempts[entry.sequence, default: 0]
                }
                if let error = answer(entry, number) { throw error }
                sent.add(entry)
            }
            sender.withLock { $0 = started }
        }

        func stop() {
            sender.withLock { $0.take() }?.stop()
            queue.close()
            try? FileManager.default.removeItem(at: folder)
        }

        func put(_ rendition: TestRendition) throws {
            queue.put(rendition.name, try rendition.file(), rendition.record, mediaType: "video/mp4")
        }
    }

    /// The answer of a store that refuses deletions.
    private static let deletionsRefused: @Sendable (QueueEntry, Int) -> StoreError? = { entry, _ in
        entry.change == .delete ? .denied(code: "AccessDenied") : nil
    }

    @Test func noSenderPausesWhileAnEntryWaitsForItsFirstAttempt() async throws {
        let fixture = try Fixture()
        defer { fixture.stop() }
        // More than there are senders.
        for seed in 1...4 { #expect(await fixture.queue.delete(try TestRendition(UInt64(seed)).name)) }
        for seed in 11...20 { try fixture.put(try TestRendition(UInt64(seed))) }
        // The puts before it are on disk then, and ready.
        #expect(await fixture.queue.delete(try TestRendition(5).name))
        // Longer than the test: a pause of a sender would show.
        fixture.start(backoff: Backoff(first: .seconds(3600), longest: .seconds(3600)), Self.deletionsRefused)
        try await waitUntil("all puts to be sent") { fixture.sent.values.count == 10 }
        try await waitUntil("their end") { fixture.queue.gauges == .init(entries: 5, bytes: 0, dropped: 0) }
    }

    @Test func refusedDeletionsAreRepeatedAtThePaceOfTheSenders() async throws {
        let fixture = try Fixture()
        defer { fixture.stop() }
        for seed in 1...40 { #expect(await fixture.queue.delete(try TestRendition(UInt64(seed)).name)) }
        let start = ContinuousClock.now
        fixture.start(backoff: Backoff(first: .milliseconds(50), longest: .milliseconds(50)), Self.deletionsRefused)
        try await waitUntil("20 repetitions") { fixture.attempts.withLock { $0.values.reduce(0, +) } >= 60 }
        // Each of two senders pauses for 25 ms or more after each of its repetitions.
        #expect(ContinuousClock.now - start >= .milliseconds(200))
    }

    @Test func aDrainTriesRefusedDeletionsOnceAndSendsTheRest() async throws {
        let fixture = try Fixture()
        defer { fixture.stop() }
        for seed in 1...4 { #expect(await fixture.queue.delete(try TestRendition(UInt64(seed)).name)) }
        // The first waits for the deletion of its name.
        for seed in [1, 11, 12] { try fixture.put(try TestRendition(UInt64(seed))) }
        #expect(await fixture.queue.delete(try TestRendition(5).name))
        // The queue is drained from now on, so that no attempt precedes it.
        #expect(await !fixture.queue.drain(within: .milliseconds(1)))
        // Longer than the test: a pause of a sender would show.
        fixture.start(backoff: Backoff(first: .seconds(3600), longest: .seconds(3600)), Self.deletionsRefused)
        #expect(await !fixture.queue.drain(within: .seconds(3600)))
        #expect(Set(fixture.sent.values.map(\.name)) == [try TestRendition(11).name, try TestRendition(12).name])
        #expect(fixture.queue.gauges == .init(entries: 6, bytes: 5000, dropped: 0))
        // The next drain tries each of them once again, and not the put behind one of them.
        let before = fixture.attempts.withLock { $0 }
        #expect(await !fixture.queue.drain(within: .seconds(3600)))
        let after = fixture.attempts.withLock { $0 }
        let deletes = before.filter { number, _ in !fixture.sent.values.contains { $0.sequence == number } }
        #expect(deletes.count == 5 && deletes.allSatisfy { after[$0.key] == $0.value + 1 })
    }

    @Test func aDrainOutlastsAnOutage() async throws {
        let fixture = try Fixture()
        defer { fixture.stop() }
        for seed in 1...3 { try fixture.put(try TestRendition(UInt64(seed))) }
        fixture.start { _, number in number < 3 ? .unreachable(cause: "a test") : nil }
        #expect(await fixture.queue.drain(within: .seconds(3600)))
        #expect(fixture.sent.values.count == 3)
    }

    @Test func aDeleteIsNeverDiscarded() async throws {
        let fixture = try Fixture()
        defer { fixture.stop() }
        fixture.start { _, number in number < 3 ? .rejected(status: 405, code: "MethodNotAllowed") : nil }
        #expect(await fixture.queue.delete(try TestRendition(1).name))
        try await waitUntil("the delete to be sent") { fixture.sent.values.count == 1 }
        try await waitUntil("its end") { fixture.queue.gauges == .init(entries: 0, bytes: 0, dropped: 0) }
        #expect(fixture.events.values.isEmpty)
    }

    @Test func theFirstPutThatCanNeverBeSentIsReported() async throws {
        let error = StoreError.rejected(status: 400, code: "EntityTooLarge")
        let fixture = try Fixture()
        defer { fixture.stop() }
        fixture.start { _, _ in error }
        for seed in 1...3 { try fixture.put(try TestRendition(UInt64(seed))) }
        try await waitUntil("all to be discarded") { fixture.queue.gauges == .init(entries: 0, bytes: 0, dropped: 3) }
        #expect(fixture.events.values == [.discarded(error)])
    }
}
