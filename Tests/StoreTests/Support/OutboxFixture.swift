import Foundation
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

/// An outbox in a directory of its own whose requests a test answers, and the events that it reports.
final class OutboxFixture: Sendable {
    let folder: URL
    let events = Recorder<StoreEvent>()
    /// The entries that were sent, in order.
    let sent = Recorder<OutboxEntry>()
    /// The entries whose sending has begun, in order.
    let begun = Recorder<OutboxEntry>()
    /// The number of attempts by the sequence of their entry.
    let attempts = Mutex<[Int64: Int]>([:])
    private let settings: OutboxConfiguration
    private let meter = Mutex(StoreMeter())
    private let opened: Mutex<(ledger: Ledger, outbox: Outbox)?>

    /// Longer than any test: a pause of a sender would show.
    static let longPauses = Backoff(first: .seconds(3600), longest: .seconds(3600))

    init(
        puts: Int = 100, bytes: Int = 1 << 30, backoff: Backoff = Backoff(first: .milliseconds(1), longest: .milliseconds(2))
    ) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-outbox-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var settings = OutboxConfiguration(directory: folder.appendingPathComponent("outbox").path, maxBytes: bytes)
        settings.maxEntries = puts
        (settings.pause, settings.longestPause) = (backoff.first, backoff.longest)
        self.settings = settings
        opened = Mutex(nil)
        try open()
    }

    /// Opens the outbox, as another process does after ``close()``.
    func open(holdsPuts: Bool = false) throws {
        let ledger = try Ledger(directory: folder.path, owners: [OutboxTables.owned])
        let meter = StoreMeter()
        self.meter.withLock { $0 = meter }
        let outbox = try Outbox(ledger, settings, meter, holdsPuts: holdsPuts, report: { [events] in events.add($0) })
        opened.withLock { $0 = (ledger, outbox) }
    }

    func close() {
        let former = opened.withLock { $0.take() }
        former?.outbox.close()
        former?.ledger.close()
    }

    func stop() {
        close()
        try? FileManager.default.removeItem(at: folder)
    }

    var path: String { settings.directory }
    var outbox: Outbox { opened.withLock { $0! }.outbox }
    var ledger: Ledger { opened.withLock { $0! }.ledger }
    var statistics: StoreStatistics { meter.withLock { $0.snapshot } }

    func files() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: path).count }

    /// - Parameter answer: The error of the attempt to send an entry, by the number of attempts before it; nil for success.
    func start(
        concurrency: Int = 2, _ answer: @escaping @Sendable (OutboxEntry, Int) async -> StoreError? = { _, _ in nil }
    ) {
        outbox.startSending(concurrency: concurrency) { [self] entry, file throws(StoreError) in
            begun.add(entry)
            let number = attempts.withLock { attempts in
                defer { attempts[entry.sequence, default: 0] += 1 }
                return attempts[entry.sequence, default: 0]
            }
            if let error = await answer(entry, number) { throw error }
            if case .put(_, let record, _) = entry.change { #expect((try? file?.size()) == record.length) }
            sent.add(entry)
        }
    }

    @discardableResult
    func put(_ rendition: TestRendition, within limit: Duration = .zero, isWanted: Bool = true) async throws -> Bool {
        let ledger = ledger
        return await outbox.put(
            rendition.name, try rendition.file(), rendition.record, mediaType: "video/mp4", within: limit
        ) { change in
            isWanted && (try? ledger.write(.normal, change)) != nil
        }
    }

    func delete(_ rendition: TestRendition) throws {
        try ledger.write(.full) { try outbox.addDeletion(of: rendition.name.id, until: rendition.record.began, in: $0) }
        outbox.sendDeletion(of: rendition.name.id)
    }

    /// Waits until the outbox has so many entries.
    func waitForEntries(_ count: Int, bytes: Int? = nil) async throws {
        try await waitUntil("\(count) entries") { () async throws in
            let totals = try self.ledger.read { try OutboxTables($0).totals() }
            return totals.puts + totals.deletions == count && (bytes ?? totals.bytes) == totals.bytes
        }
    }
}
