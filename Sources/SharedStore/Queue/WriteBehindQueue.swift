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
        /// Each takes about 300 bytes of memory, and a file.
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
        var found = QueueState()
        var superseded: [QueueEntry] = []
        for entry in try directory.load() {
            found.nextSequence = entry.sequence + 1
            // A crash may have come between the delete and the removal of what it withdraws.
            if entry.change == .delete {
                for index in found.items.indices.reversed() where found.items[index].entry.name == entry.name {
                    superseded.append(found.remove(at: index))
                }
            }
            found.add(entry, holdsPuts && entry.change != .delete ? .held : .ready)
        }
        for entry in superseded { directory.remove(entry) }
        state = Mutex(found)
    }

    var gauges: Gauges {
        state.withLock { Gauges(entries: $0.items.count, bytes: $0.bytes, dropped: $0.dropped) }
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
    /// - Returns: Whether it is. If not, it is sent all the same unless the process ends before, the queue is closed, or its deletes are
    ///   too many.
    func delete(_ name: RenditionName) async -> Bool {
        let added: (entry: QueueEntry?, removed: [QueueEntry], withdrawn: [QueueEntry])? = state.withLock { state in
            guard !state.isClosed else { return nil }
            var removed: [QueueEntry] = []
            var withdrawn: [QueueEntry] = []
            for index in state.items.indices.reversed() where state.items[index].entry.name == name {
                switch state.items[index].phase {
                case .recording, .running:
                    state.items[index].phase = .withdrawn
                    withdrawn.append(state.items[index].entry)
                case .ready, .paused, .held: removed.append(state.remove(at: index))
                case .withdrawn: break
                }
            }
            return (state.appendDelete(name, limits), removed, withdrawn)
        }
        guard let (entry, removed, withdrawn) = added else { return false }
        for old in removed { attemptEnded(old, isSent: false) }
        let isRecorded = await disk.run { [self] in
            // The delete first: after a crash in between it is found behind the puts.
            let isRecorded = entry.map { recordEntry($0, nil) } ?? false
            for old in removed { directory.remove(old) }
            // A restart must not send them where it does not find the delete.
            if !isRecorded { for old in withdrawn { directory.remove(old) } }
            return isRecorded
        }
        if isRecorded == nil, let entry { drop(entry) }
        return isRecorded == true
    }

    /// Whether a delete of this name waits or is being sent, so that the store may still have what was purged.
    func hasDelete(of name: RenditionName) -> Bool {
        state.withLock { state in
            state.items.contains { $0.entry.change == .delete && $0.entry.name == name }
        }
    }

    /// Writes an entry's files, on the thread of `disk`.
    @discardableResult
    private func recordEntry(_ entry: QueueEntry, _ file: SharedDescriptor?) -> Bool {
        do throws(StoreError) {
            try replaceLostDirectory()
            try directory.add(entry, file)
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
    private func replaceLostDirectory() throws(StoreError) {
        guard !directory.isAtItsPath else { return }
        let replacement = try QueueDirectory(path: directory.path)
        for found in try replacement.load() {
            // What it holds is older than what waits here: a put may have been purged meanwhile.
            replacement.remove(found)
        }
        let deletes = state.withLock { state in
            state.items.filter { $0.entry.change == .delete && $0.phase != .recording && $0.phase != .withdrawn }.map(\.entry)
        }
        for entry in deletes { try replacement.add(entry, nil) }
        directory = replacement
    }

    /// Lets an entry be sent, unless it was withdrawn.
    @discardableResult
    private func ready(_ entry: QueueEntry) -> Bool {
        let isReady = state.withLock { state in
            guard let index = state.index(of: entry) else { return false }
            if state.items[index].phase == .withdrawn {
                state.remove(at: index)
                return false
            }
            state.items[index].phase = .ready
            return true
        }
        if !isReady { attemptEnded(entry, isSent: false) }
        wake()
        return isReady
    }

    private func drop(_ entry: QueueEntry) {
        state.withLock { state in
            guard let index = state.index(of: entry) else { return }
            state.remove(at: index)
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
        let number = state.withLock { state in
            state.nextAttemptWaiter += 1
            return state.nextAttemptWaiter
        }
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
                guard let index = state.nextIndex else { return (nil, false) }
                state.items[index].phase = .running
                return (state.items[index].entry, false)
            }
            if isClosed { return nil }
            if let entry { return entry }
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    let hasReady = state.isClosed || state.nextIndex != nil
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
        state.withLock { state in
            if let index = state.index(of: entry) { state.remove(at: index) }
        }
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
    /// - Parameter backoff: The pauses of an entry before its next attempt; nil if no request was sent, which tells nothing about it.
    func putBack(_ entry: QueueEntry, after backoff: Backoff? = nil) {
        let isWithdrawn = state.withLock { state in
            guard let index = state.index(of: entry) else { return false }
            if state.items[index].phase == .withdrawn { return true }
            state.items[index].phase = .ready
            guard let backoff, !state.isDraining else { return false }
            state.items[index].failures += 1
            state.items[index].phase = .paused
            state.items[index].pause = Deadline(after: backoff.pause(after: state.items[index].failures)) { [weak self] in
                self?.endPause(of: entry)
            }
            return false
        }
        if isWithdrawn { remove(entry) } else { wake() }
        attemptEnded(entry, isSent: false)
    }

    private func endPause(of entry: QueueEntry) {
        state.withLock { state in
            if let index = state.index(of: entry) { state.endPause(at: index) }
        }
        wake()
    }

    /// Lets entries that failed be sent at once, such as after an outage.
    func endPauses() {
        state.withLock { state in
            for index in state.items.indices { state.endPause(at: index) }
        }
        wake()
    }

    /// Lets puts that are held be sent.
    func releasePuts() {
        state.withLock { state in
            for index in state.items.indices where state.items[index].phase == .held { state.items[index].phase = .ready }
        }
        wake()
    }

    /// Suspends until the queue is empty but for puts that are held, closed, or `limit` has passed. Entries that failed are tried again
    /// at once, from now on.
    ///
    /// - Returns: Whether it is empty.
    func drain(within limit: Duration) async -> Bool {
        state.withLock { $0.isDraining = true }
        endPauses()
        let deadline = Deadline(after: limit) { [self] in
            for continuation in state.withLock({ state in
                defer { state.drainWaiters.removeAll() }
                return state.drainWaiters
            }) { continuation.resume() }
        }
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                let mustWait = !state.isClosed && !state.isDrained
                if mustWait { state.drainWaiters.append(continuation) }
                return mustWait
            }
            if !mustWait { continuation.resume() }
        }
        return withExtendedLifetime(deadline) { state.withLock { $0.items.isEmpty } }
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
                all += state.drainWaiters
                state.drainWaiters.removeAll()
            }
            return all
        }
        for continuation in continuations { continuation.resume() }
    }
}
