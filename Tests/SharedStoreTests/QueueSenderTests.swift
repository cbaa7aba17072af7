import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import SharedStore

@Suite("The sender holds up no entry for the failures of others", .timeLimit(.minutes(1))) struct QueueSenderTests {
    /// A queue with a sender whose requests a test answers.
    private final class Fixture: Sendable {
        let folder: URL
        let queue: WriteBehindQueue
        let events: Recorder<StoreEvent>
        let sent = Recorder<QueueEntry>()
        private let sender = Mutex<QueueSender?>(nil)

        /// - Parameter answer: The error of the attempt to send an entry, by the number of attempts before it; nil for success.
        init(
            backoff: Backoff = Backoff(first: .milliseconds(1), longest: .milliseconds(2)),
            _ answer: @escaping @Sendable (QueueEntry, Int) -> StoreError?
        ) throws {
            folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-sender-\(UUID().uuidString)")
            let events = Recorder<StoreEvent>()
            self.events = events
            queue = try WriteBehindQueue(path: folder.path, limits: .init(puts: 100, bytes: 1 << 30)) { events.add($0) }
            let sent = sent
            let attempts = Mutex<[UInt64: Int]>([:])
            let started = QueueSender(queue, concurrency: 2, backoff: backoff) { entry throws(StoreError) in
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
            sender.withLock { $0 }?.stop()
            queue.close()
            try? FileManager.default.removeItem(at: folder)
        }

        func put(_ rendition: TestRendition) throws {
            queue.put(rendition.name, try rendition.file(), rendition.record, mediaType: "video/mp4")
        }
    }

    @Test func entriesThatKeepFailingDoNotStopOthers() async throws {
        // Longer than the test: a pause of a sender would show.
        let fixture = try Fixture(backoff: Backoff(first: .seconds(3600), longest: .seconds(3600))) { entry, _ in
            entry.change == .delete ? .denied(code: "AccessDenied") : nil
        }
        defer { fixture.stop() }
        // More than there are senders.
        for seed in 1...4 { #expect(await fixture.queue.delete(try TestRendition(UInt64(seed)).name)) }
        for seed in 11...20 { try fixture.put(try TestRendition(UInt64(seed))) }
        try await waitUntil("all puts to be sent") { fixture.sent.values.count == 10 }
        try await waitUntil("their end") { fixture.queue.gauges == .init(entries: 4, bytes: 0, dropped: 0) }
    }

    @Test func aDeleteIsNeverDiscarded() async throws {
        let fixture = try Fixture { _, number in number < 3 ? .rejected(status: 405, code: "MethodNotAllowed") : nil }
        defer { fixture.stop() }
        #expect(await fixture.queue.delete(try TestRendition(1).name))
        try await waitUntil("the delete to be sent") { fixture.sent.values.count == 1 }
        try await waitUntil("its end") { fixture.queue.gauges == .init(entries: 0, bytes: 0, dropped: 0) }
        #expect(fixture.events.values.isEmpty)
    }

    @Test func theFirstPutThatCanNeverBeSentIsReported() async throws {
        let error = StoreError.rejected(status: 400, code: "EntityTooLarge")
        let fixture = try Fixture { _, _ in error }
        defer { fixture.stop() }
        for seed in 1...3 { try fixture.put(try TestRendition(UInt64(seed))) }
        try await waitUntil("all to be discarded") { fixture.queue.gauges == .init(entries: 0, bytes: 0, dropped: 3) }
        #expect(fixture.events.values == [.discarded(error)])
    }
}
