internal import Synchronization
internal import SystemIO

/// Puts and deletes that wait to be sent, in memory and on disk. Any thread.
///
/// Files are written by one thread of the queue, in the order of the calls; no caller blocks. Writes of the same name are sent one
/// after another. A delete withdraws the puts of the same name before it, so that it wins over them also after a restart.
final class WriteBehindQueue: Sendable {
    /// The bounds of the queue. The oldest puts are dropped if a new one exceeds those of puts. A delete beyond its bound is refused.
    struct Limits: Sendable, Equatable {
        var puts: Int
        var bytes: Int
        /// Each takes about 500 bytes of memory, and a file.
        var deletes = 100_000
    }

    struct Gauges: Sendable, Equatable {
        var entries = 0
        var bytes = 0
        /// Entries dropped since the start because the queue was full, or because they could not be written to disk.
        var dropped = 0
    }

    private let limits: Limits
    private let state: Mutex<QueueState>
    private let disk = WorkThreads(count: 1, limit: 1 << 16, name: "store-queue")
    /// Used on the thread of `disk` only, after the initializer.
    private nonisolated(unsafe) var directory: QueueDirectory
    private let report: @Sendable (StoreEvent) -> Void

    /// Opens the directory and takes over the entries in it. Blocks.
    ///
    /// - Parameters:
    ///   - holdsPuts: Whether puts that are found are sent only after ``releasePuts()``.
    ///   - report: Called for the first entry that cannot be written to disk after one that could, and for the first one that
    ///   can never be sent.
    init(
        path: String, limits: Limits, holdsPuts: Bool = false, report: @escaping @Sendable (StoreEvent) -> Void
    ) throws(StoreError) {
        self.limits = limits
        self.report = report
        directory = try QueueDirectory(path: path)
        let entries: [QueueEntry]
        do throws(StoreError) {
            entries = try directory.load()
        } catch {
            // At once, even if a forked child still has the lock's file open.
            directory.unlock()
            throw error
        }
        var found = QueueState()
        let superseded = found.restore(entries, holdsPuts: holdsPuts)
        for entry in superseded { directory.remove(entry) }
        state = Mutex(found)
    }

    var gauges: Gauges {
        state.withLock { Gauges(entries: $0.count, bytes: $0.bytes, dropped: $0.dropped) }
    }

    // MARK: Adding

    /// Queues a put, unless one of the same name is the last entry of that name. Returns at once.
    ///
    /// - Parameter file: The rendition, which must not change.
    func put(_ name: RenditionName, _ file: SharedDescriptor, _ record: StoredRecord, mediaType: String) {
        enqueue(name, file, record, mediaType: mediaType, waiter: nil)
    }

    /// Queues a put as ``put(_:_:_:mediaType:)`` does, and suspends until it has been sent, an attempt has failed, or `limit` has
    /// passed.
    ///
    /// - Returns: Whether it was sent.
    func put(
        _ name: RenditionName, _ file: SharedDescriptor, _ record: StoredRecord, mediaType: String, within limit: Duration
    ) async -> Bool {
        await wait(within: limit) { number, continuation in
            enqueue(name, file, record, mediaType: mediaType, waiter: (number, continuation)) ? nil : false
        }
    }

    /// - Parameter waiter: Registered with the entry under this number.
    /// - Returns: False if the queue refuses the put; the waiter is not registered then.
    @discardableResult
    private func enqueue(
        _ name: RenditionName, _ file: SharedDescriptor, _ record: StoredRecord, mediaType: String,
        waiter: (number: UInt64, continuation: CheckedContinuation<Bool, Never>)?
    ) -> Bool {
        let (queued, added) = state.withLock { state -> (QueueEntry?, (entry: QueueEntry, evicted: [QueueEntry])?) in
            guard !state.isClosed else { return (nil, nil) }
            var queued = state.lastEntry(of: name).flatMap { $0.change == .delete ? nil : $0 }
            var added: (entry: QueueEntry, evicted: [QueueEntry])?
            if queued == nil {
                added = state.appendPut(name, record, mediaType: mediaType, limits)
                queued = added?.entry
            }
            if let waiter, let queued {
                state.attemptWaiters[waiter.number] = QueueState.Waiter(
                    sequence: queued.sequence, continuation: waiter.continuation)
            }
            return (queued, added)
        }
        if let (entry, evicted) = added {
            for old in evicted { attemptEnded(old, isSent: false) }
            let isSubmitted = disk.submit { [self] in
                for old in evicted { directory.remove(old) }
                recordEntry(entry, file)
            }
            if !isSubmitted { drop(entry) }
        }
        return queued != nil
    }

    /// Queues a delete, and withdraws what is queued of the same name. Suspends until the delete is durable.
    ///
    /// - Returns: Whether the delete is durable. If not, it is still sent, unless the process ends first, the queue is closed, or the
    ///   queue has too many deletes.
    func delete(_ name: RenditionName) async -> Bool {
        let added: (entry: QueueEntry?, removed: [QueueEntry], withdrawn: [QueueEntry])? = state.withLock { state in
            guard !state.isClosed else { return nil }
            let (removed, withdrawn) = state.withdraw(name)
            return (state.appendDelete(name, limits), removed, withdrawn)
        }
        guard let (entry, removed, withdrawn) = added else { return false }
        for old in removed { attemptEnded(old, isSent: false) }
        let isRecorded = await disk.run { [self] in
            // The delete first: after a crash in between it is found behind the puts.
            let former = (withdrawn + removed).filter { $0.change == .delete }
            let isRecorded = entry.map { recordEntry($0, nil, insteadOf: former) } ?? false
            // A restart must not send puts where it does not find the delete. Deletes were confirmed.
            for old in isRecorded ? removed : (removed + withdrawn).filter({ $0.change != .delete }) { directory.remove(old) }
            return isRecorded
        }
        if isRecorded == nil, let entry { drop(entry) }
        // What was withdrawn may have been the last that a drain waits for.
        if entry == nil { wake() }
        return isRecorded == true
    }

    /// Whether a delete of this name waits or is being sent, so that the store may still have what was purged.
    func hasDelete(of name: RenditionName) -> Bool {
        state.withLock { $0.hasDelete(of: name) }
    }

    /// Writes an entry's files, on the thread of `disk`.
    ///
    /// - Parameter former: Deletes of the same name. If the disk is full, the entry takes over the file of one of them.
    @discardableResult
    private func recordEntry(_ entry: QueueEntry, _ file: SharedDescriptor?, insteadOf former: [QueueEntry] = []) -> Bool {
        do throws(StoreError) {
            try replaceLostDirectory()
            do throws(StoreError) {
                try directory.add(entry, file)
            } catch {
                guard former.contains(where: { directory.takeOver($0, by: entry) }) else { throw error }
            }
        } catch {
            // A deletion that does not survive a crash is still sent, and refused to lookups until then.
            if entry.change == .delete { ready(entry) } else { drop(entry) }
            let isFirst = state.withLock { state in
                defer { state.isDiskBroken = true }
                return !state.isDiskBroken
            }
            if isFirst { report(.queueFailed(error)) }
            return false
        }
        state.withLock { $0.isDiskBroken = false }
        let isReady = ready(entry)
        if !isReady { directory.remove(entry) }
        return isReady
    }

    /// Opens the directory at the path if the one in use was removed or replaced, as with the cache around it, and records the deletes
    /// that wait in it. Puts are lost with the former one.
    ///
    /// Deletes that it holds were confirmed by a former process, or by this one before the directory was lost: they are sent. Puts that it
    /// holds are older than what waits here and may have been purged meanwhile: they are removed.
    private func replaceLostDirectory() throws(StoreError) {
        guard !directory.isAtItsPath else { return }
        let replacement = try QueueDirectory(path: directory.path)
        let found = try replacement.load()
        let (pending, adopted) = state.withLock { state in
            (state.pendingDeletes, state.adoptDeletes(found))
        }
        // A deletion that was not recorded anew is sent all the same.
        defer {
            for (_, entry) in adopted where !ready(entry) { replacement.remove(entry) }
        }
        try replacement.replaceEntries(found, keeping: adopted, adding: pending)
        directory = replacement
    }

    /// Lets an entry be sent, unless it was withdrawn.
    @discardableResult
    private func ready(_ entry: QueueEntry) -> Bool {
        let isReady = state.withLock { state in
            guard let phase = state.phase(of: entry) else { return false }
            guard phase != .withdrawn else {
                state.remove(entry)
                return false
            }
            state.makeReady(entry)
            return true
        }
        if !isReady { attemptEnded(entry, isSent: false) }
        wake()
        return isReady
    }

    private func drop(_ entry: QueueEntry) {
        state.withLock { state in
            guard state.phase(of: entry) != nil else { return }
            state.remove(entry)
            state.dropped += 1
        }
        attemptEnded(entry, isSent: false)
        wake()
    }

    // MARK: Waiting for an attempt

    /// Suspends until the last queued entry of this name has been sent, an attempt has failed, or `limit` has passed.
    ///
    /// - Returns: Whether it was sent; true also if none is queued.
    func attempt(of name: RenditionName, within limit: Duration) async -> Bool {
        await wait(within: limit) { number, continuation in
            state.withLock { state in
                if state.isClosed { return false }
                guard let entry = state.lastEntry(of: name) else { return true }
                state.attemptWaiters[number] = QueueState.Waiter(sequence: entry.sequence, continuation: continuation)
                return nil
            }
        }
    }

    /// Suspends until ``attemptEnded(_:isSent:)``, or until `limit` has passed.
    ///
    /// - Parameter register: Registers the continuation under the number, or returns the result.
    private func wait(
        within limit: Duration, _ register: (UInt64, CheckedContinuation<Bool, Never>) -> Bool?
    ) async -> Bool {
        let number = state.withLock { $0.numberWaiter() }
        return await withCheckedContinuation { continuation in
            if let known = register(number, continuation) { return continuation.resume(returning: known) }
            let deadline = Deadline(after: limit) { [weak self] in self?.waitEnded(number) }
            state.withLock { $0.attemptWaiters[number]?.deadline = deadline }
        }
    }

    private func waitEnded(_ number: UInt64) {
        let waiter = state.withLock { $0.attemptWaiters.removeValue(forKey: number) }
        waiter?.continuation.resume(returning: false)
    }

    private func attemptEnded(_ entry: QueueEntry, isSent: Bool) {
        for waiter in state.withLock({ $0.takeWaiters(for: entry) }) { waiter.continuation.resume(returning: isSent) }
    }

    // MARK: Sending

    /// The next entry to send; nil after ``close()``. Suspends while there is none. The caller reports the end by ``finish(_:)``,
    /// ``putBack(_:after:)`` or ``discard(_:_:)``.
    func next() async -> QueueEntry? {
        while true {
            let (entry, isClosed) = state.withLock { state -> (QueueEntry?, Bool) in
                if state.isClosed { return (nil, true) }
                return (state.takeNext(), false)
            }
            if isClosed { return nil }
            if let entry { return entry }
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    let hasReady = state.isClosed || state.hasNext
                    if !hasReady { state.idleSenders.append(continuation) }
                    return !hasReady
                }
                if !mustWait { continuation.resume() }
            }
        }
    }

    /// The rendition of a put. Suspends while it is opened.
    func data(of entry: QueueEntry) async throws(StoreError) -> SharedDescriptor {
        let result = await disk.run { [self] in
            Result { () throws(StoreError) in try directory.openData(of: entry) }
        }
        guard let result else { throw .closed }
        return try result.get()
    }

    /// Removes an entry that was sent.
    func finish(_ entry: QueueEntry) {
        remove(entry)
        attemptEnded(entry, isSent: true)
    }

    private func remove(_ entry: QueueEntry) {
        state.withLock { $0.remove(entry) }
        _ = disk.submit { [self] in directory.remove(entry) }
        wake()
    }

    /// Removes an entry that can never be sent, and counts it.
    func discard(_ entry: QueueEntry, _ error: StoreError) {
        let isFirst = state.withLock { state in
            state.dropped += 1
            defer { state.hasDiscarded = true }
            return !state.hasDiscarded
        }
        if isFirst { report(.discarded(error)) }
        remove(entry)
        attemptEnded(entry, isSent: false)
    }

    /// Lets an entry that was not sent wait again, unless it was withdrawn meanwhile.
    ///
    /// - Parameters:
    ///   - backoff: The pauses of an entry before its next attempt; nil if no request was sent, which tells nothing about it.
    ///   - isOutage: Whether other entries fail as well. If not, a drain that has begun does not try the entry again.
    func putBack(_ entry: QueueEntry, after backoff: Backoff? = nil, isOutage: Bool = false) {
        let isWithdrawn = state.withLock { state in
            if state.phase(of: entry) == .withdrawn { return true }
            guard let backoff, !(state.isDraining && isOutage) else {
                state.makeReady(entry)
                return false
            }
            let isDraining = state.isDraining
            state.pause(entry, isRefused: !isOutage) { failures in
                isDraining ? nil : Deadline(after: backoff.pause(after: failures)) { [weak self] in self?.endPause(of: entry) }
            }
            return false
        }
        if isWithdrawn { remove(entry) } else { wake() }
        attemptEnded(entry, isSent: false)
    }

    /// Whether a sender may pause after a failure that is no outage: no entry is ready that was not refused, and the queue is not
    /// being drained.
    var maySendersPause: Bool {
        state.withLock { !$0.hasFresh && !$0.isDraining }
    }

    private func endPause(of entry: QueueEntry) {
        state.withLock { state in
            if state.phase(of: entry) == .paused { state.makeReady(entry) }
        }
        wake()
    }

    /// Lets entries that failed be sent at once, such as after an outage.
    func endPauses() {
        state.withLock { $0.makeReady(all: .paused) }
        wake()
    }

    /// Lets puts that are held be sent.
    func releasePuts() {
        state.withLock { $0.makeReady(all: .held) }
        wake()
    }

    /// Removes puts that are held, and counts them as dropped. Suspends until their files are removed.
    func dropHeldPuts() async {
        let held = state.withLock { $0.dropHeld() }
        if held.isEmpty { return }
        for entry in held { attemptEnded(entry, isSent: false) }
        _ = await disk.run { [self] in
            for entry in held { directory.remove(entry) }
        }
        // They may have been the last that a drain waits for.
        wake()
    }

    /// Suspends until the queue is drained or closed, or `limit` has passed. A drained queue contains only puts that are held, entries
    /// that were refused since the call, and entries that wait for these. Entries that failed before are tried again at once. From now
    /// on, so are entries that fail because of an outage.
    ///
    /// - Returns: Whether it is empty.
    func drain(within limit: Duration) async -> Bool {
        let number = state.withLock { state in
            state.isDraining = true
            return state.numberWaiter()
        }
        endPauses()
        var deadline: Deadline?
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                let mustWait = !state.isClosed && !state.isDrained
                if mustWait { state.drainWaiters[number] = continuation }
                return mustWait
            }
            guard mustWait else { return continuation.resume() }
            // Not before the registration: a short limit could pass while there is no waiter to resume.
            deadline = Deadline(after: limit) { [weak self] in self?.drainEnded(number) }
        }
        return withExtendedLifetime(deadline) { state.withLock { $0.count == 0 } }
    }

    private func drainEnded(_ number: UInt64) {
        state.withLock { $0.drainWaiters.removeValue(forKey: number) }?.resume()
    }

    /// Takes and gives no more entries, waits for the disk, and releases the directory, in which the entries stay. Blocks.
    func close() {
        let abandoned = state.withLock { state in
            state.isClosed = true
            defer { state.attemptWaiters.removeAll() }
            return Array(state.attemptWaiters.values)
        }
        for waiter in abandoned { waiter.continuation.resume(returning: false) }
        wake()
        disk.close()
        directory.unlock()
    }

    private func wake() {
        let continuations = state.withLock { state in
            var all = state.idleSenders
            state.idleSenders.removeAll()
            if !state.drainWaiters.isEmpty, state.isDrained || state.isClosed {
                all += state.drainWaiters.values
                state.drainWaiters.removeAll()
            }
            return all
        }
        for continuation in continuations { continuation.resume() }
    }
}
