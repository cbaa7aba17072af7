internal import Glibc
internal import Synchronization
internal import SystemIO

/// Puts and deletions that wait to be sent; ``OutboxSender`` sends them. The table in the ledger is the state; see
/// ``OutboxTables``.
///
/// Any thread. Blocking work runs on a thread of the outbox.
package final class Outbox: Sendable {
    /// Runs a change in a transaction; returns false if it was not committed.
    typealias Transaction = (@escaping Ledger.Change) async -> Bool
    /// Sends an entry, and the file of a put.
    typealias Send = @Sendable (OutboxEntry, SharedDescriptor?) async throws(StoreError) -> Void

    let ledger: Ledger
    private let files: OutboxFiles
    private let settings: OutboxConfiguration
    private let disk = WorkThreads(count: 1, limit: 1 << 16, name: "store-outbox")
    private let waits = OutboxWaits()
    private let meter: OutboxMeter
    private let sender: OutboxSender
    private let lastSequence: Atomic<Int64>
    /// The deletions that wait or are being sent, so that a look-up waits for no disk.
    private let deletions = OutboxDeletions()

    /// Opens the directory of files and takes over the entries. Blocks.
    ///
    /// - Parameters:
    ///   - ledger: That of a cache, or another one with ``OutboxTables/owned``.
    ///   - holdsPuts: Whether puts that are found are sent only after ``releasePuts()``.
    ///   - report: Called for the first put that cannot be written to disk after one that could, and for the first one that can
    ///     never be sent.
    init(
        _ ledger: Ledger, _ settings: OutboxConfiguration, holdsPuts: Bool,
        report: @escaping @Sendable (StoreEvent) -> Void
    ) throws(StoreError) {
        self.ledger = ledger
        self.settings = settings
        meter = OutboxMeter(report: report)
        files = try OutboxFiles(path: settings.directory)
        let backoff = Backoff(first: settings.pause, longest: settings.longestPause)
        sender = OutboxSender(ledger, files, disk, waits, deletions, meter, backoff)
        do {
            let (puts, latest, found) = try ledger.write(.normal) { database in
                let tables = OutboxTables(database)
                let (puts, latest) = try tables.begin(holdingPuts: holdsPuts)
                return (puts, latest, try tables.deletions())
            }
            lastSequence = Atomic(latest)
            deletions.load(found)
            try files.removeAll(except: puts)
        } catch {
            throw (error as? SystemError).map { .file($0) } ?? .exhausted(cause: "\(error)")
        }
        meter.countEntries(ledger)
    }

    /// Starts to send entries, some at once. The owner must call ``close()``.
    func startSending(concurrency: Int, _ send: @escaping Send) {
        sender.start(concurrency: concurrency, send)
    }

    /// Cancels the writes under way, which stay in the outbox. Returns at once.
    package func endSending() {
        sender.cancel()
    }

    /// Takes and sends no more entries, and waits for the disk. Blocks.
    func close() {
        endSending()
        waits.close()
        sender.wake()
        disk.close()
    }

    var gauges: OutboxMeter.Gauges { meter.gauges }

    // MARK: Adding

    /// Adds a put, unless one of the same name waits, and suspends until it has been sent, an attempt has failed, or `limit` has
    /// passed.
    ///
    /// - Parameters:
    ///   - file: The rendition, which must not change.
    ///   - transaction: Runs the change in a transaction of the ledger, or refuses to because the rendition was purged.
    /// - Returns: Whether it was sent.
    func put(
        _ name: RenditionName, _ file: SharedDescriptor, _ record: StoredRecord, mediaType: String, within limit: Duration,
        in transaction: Transaction
    ) async -> Bool {
        let sequence = lastSequence.add(1, ordering: .relaxed).newValue
        let prepared = await disk.run { [self] in
            Result { () throws(SystemError) in
                try makeRoom(for: record.length)
                try files.add(file, sequence)
            }
        }
        guard case .success = prepared else {
            if case .failure(let error) = prepared { meter.noteDrop(.file(error)) }
            return false
        }
        meter.noteWrite()
        let isRecorded = await transaction { database in
            try OutboxTables(database).add(name, record, mediaType: mediaType, sequence)
        }
        // One of the same name may wait already.
        _ = disk.submit { [self] in
            meter.countEntries(ledger)
            if (try? ledger.read { try OutboxTables($0).contains(sequence) }) == false { files.remove(sequence) }
        }
        guard isRecorded else { return false }
        return await waits.wait(for: .put(id: name.id, fileExtension: name.fileExtension), within: limit) { sender.wake() }
    }

    /// Drops the oldest puts beyond the limits. Deletions are never dropped: each is a purge that was confirmed.
    private func makeRoom(for length: Int) throws(SystemError) {
        while true {
            let totals = try? ledger.read { try OutboxTables($0).totals() }
            guard let totals, totals.puts >= settings.maxEntries || totals.bytes > settings.maxBytes - length else { return }
            let running = sender.running
            let oldest = try? ledger.write(.normal) { try OutboxTables($0).removeOldestPut(except: running) }
            guard let oldest else { throw SystemError("outbox", code: ENOBUFS) }
            files.remove(oldest.sequence)
            meter.countDropped(1)
            waits.end(oldest.attempt, isSent: false)
        }
    }

    /// Adds a deletion in a transaction of the caller, and withdraws the entries of the id that it covers. ``sendDeletion(of:)``
    /// must follow. After the transaction, look-ups do not find what it covers.
    ///
    /// - Parameter time: Only what began until then is deleted, in milliseconds of the cluster's clock.
    func addDeletion(of id: String, until time: Int64, in database: SQLiteConnection) throws {
        let withdrawn = try OutboxTables(database).addDeletion(
            of: id, until: time, lastSequence.add(1, ordering: .relaxed).newValue)
        // If the transaction fails, the deletion is known too early, which hides what is to go.
        deletions.add(id, until: time)
        // A put that stays because the transaction fails is dropped without its file. It is one that should go.
        removeFiles(withdrawn)
    }

    /// Sends a deletion whose transaction has ended, and ends the waits for puts that it has withdrawn.
    func sendDeletion(of id: String) {
        waits.endPuts(of: id)
        _ = disk.submit { [meter, ledger] in meter.countEntries(ledger) }
        sender.wake()
    }

    /// Adds a deletion in a transaction of its own.
    func delete(_ id: String, until time: Int64) async {
        _ = await disk.run { [self] in
            try? ledger.write(.normal) { try addDeletion(of: id, until: time, in: $0) }
        }
        sendDeletion(of: id)
    }

    /// The time of the deletion of an id that waits or is being sent, so that the store may still have what was purged. Never waits for
    /// a disk.
    func deletion(of id: String) -> Int64? {
        deletions[id]
    }

    // MARK: Waiting for an attempt

    /// Suspends until the deletion of this id has been sent, an attempt has failed, or `limit` has passed.
    ///
    /// - Returns: Whether it was sent; true even if there is none. If not, it stays queued.
    @discardableResult
    package func awaitDeletion(of id: String, within limit: Duration) async -> Bool {
        await waits.wait(for: .deletion(id: id), within: limit) {
            // After the registration of the waiter: an attempt that ends in between ends the wait.
            if deletion(of: id) == nil { waits.end(.deletion(id: id), isSent: true) }
        }
    }

    // MARK: Holding and draining

    /// Lets entries that failed be sent at once, such as after an outage.
    func endPauses() {
        change { try $0.endPauses() }
    }

    /// Lets puts that are held be sent.
    package func releasePuts() {
        change { try $0.releaseHeld() }
    }

    private func change(_ body: @escaping @Sendable (OutboxTables) throws -> Void) {
        _ = disk.submit { [self] in
            _ = try? ledger.write(.normal) { try body(OutboxTables($0)) }
            sender.wake()
        }
    }

    /// Removes puts that are held in a transaction of the caller: others may have removed these renditions.
    func dropHeldPuts(in database: SQLiteConnection) throws {
        let held = try OutboxTables(database).removeHeld()
        meter.countDropped(held.count)
        removeFiles(held)
    }

    private func removeFiles(_ sequences: [Int64]) {
        _ = disk.submit { [files] in
            for sequence in sequences { files.remove(sequence) }
        }
    }

    /// Suspends until the outbox is drained or closed, or `limit` has passed. A drained one contains only puts that are held,
    /// entries that were refused since the call, and entries that wait for these. Entries that failed before are tried again at
    /// once. From now on, so are entries that fail because of an outage.
    ///
    /// - Returns: Whether it is empty.
    package func drain(within limit: Duration) async -> Bool {
        sender.beginDraining()
        _ = await disk.run { [ledger] in try? ledger.write(.normal) { try OutboxTables($0).endPauses(includesRefused: true) } }
        _ = await waits.wait(for: .drained, within: limit) { sender.wake() }
        _ = await disk.run { [meter, ledger] in meter.countEntries(ledger) }
        return gauges.entries == 0
    }
}

/// The settings of the outbox.
package struct OutboxConfiguration: Sendable, Equatable {
    /// The directory of the renditions that wait, which belongs to one process. It should be on the file system of the cache, so that
    /// they are linked and not copied.
    package var directory: String
    /// The largest number of queued renditions. Deletions do not count.
    package var maxEntries = 10_000
    /// The largest total length of queued renditions in bytes.
    package var maxBytes: Int
    /// Writes that are sent at once.
    package var uploads = 2
    /// The pause of a sender after a failed write, and of the write before its next attempt. Both double with each further failure.
    package var pause: Duration = .milliseconds(250)
    /// The longest pause of a sender after a failed write; that of the write is 30 times as long.
    package var longestPause: Duration = .seconds(2)

    package init(directory: String, maxBytes: Int) {
        self.directory = directory
        self.maxBytes = maxBytes
    }
}
