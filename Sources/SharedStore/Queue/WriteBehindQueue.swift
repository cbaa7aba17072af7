internal import Synchronization
internal import SystemIO

/// Puts and deletes that wait to be sent, in memory and on disk. Any thread.
///
/// Files are written by one thread of the queue, in the order of the calls; no caller blocks. Writes of the same name are sent one
/// after another. A delete withdraws the puts of the same name before it, so that it wins over them also after a restart.
final class WriteBehindQueue: Sendable {
    /// The bounds of the queue. The oldest puts are dropped if a new entry exceeds one.
    struct Limits: Sendable, Equatable {
        var entries: Int
        var bytes: Int
    }

    struct Gauges: Sendable, Equatable {
        var entries = 0
        var bytes = 0
        /// Entries dropped since the start because the queue was full, or because they could not be written to disk.
        var dropped = 0
    }

    private enum Phase {
        /// Its files are being written.
        case recording
        case ready
        case running
        /// Its put was withdrawn, or dropped, while it was recorded or sent.
        case withdrawn
    }

    private struct Item {
        let entry: QueueEntry
        var phase: Phase
    }

    private struct State {
        var items: [Item] = []
        var nextSequence: UInt64 = 1
        var bytes = 0
        var dropped = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
        var waitingForEnd: [CheckedContinuation<Void, Never>] = []
        /// Callers that wait for the next attempt to send an entry, by its name.
        var waitingForAttempt: [RenditionName: [UInt64: CheckedContinuation<Bool, Never>]] = [:]
        var nextWaiter: UInt64 = 0
        var isClosed = false
        var isDiskBroken = false

        func index(of entry: QueueEntry) -> Int? {
            // Sequences ascend.
            var (low, high) = (0, items.count)
            while low < high {
                let middle = (low + high) / 2
                if items[middle].entry.sequence < entry.sequence { low = middle + 1 } else { high = middle }
            }
            return low < items.count && items[low].entry.sequence == entry.sequence ? low : nil
        }
    }

    private let limits: Limits
    private let state: Mutex<State>
    private let disk = WorkThreads(count: 1, limit: 1 << 16, name: "store-queue")
    /// Used on the thread of `disk` only, after the initializer.
    private nonisolated(unsafe) let directory: QueueDirectory
    private let report: @Sendable (StoreEvent) -> Void

    /// Opens the directory and takes over the entries in it. Blocks.
    ///
    /// - Parameter report: Called for the first entry that cannot be written after one that could.
    init(path: String, limits: Limits, report: @escaping @Sendable (StoreEvent) -> Void) throws(StoreError) {
        self.limits = limits
        self.report = report
        directory = try QueueDirectory(path: path)
        var found = State()
        var superseded: [QueueEntry] = []
        for entry in try directory.load() {
            found.nextSequence = entry.sequence + 1
            // A crash may have come between the delete and the removal of what it withdraws.
            if entry.change == .delete {
                superseded += found.items.filter { $0.entry.name == entry.name }.map(\.entry)
                found.items.removeAll { $0.entry.name == entry.name }
            }
            found.items.append(Item(entry: entry, phase: .ready))
        }
        for entry in superseded { directory.remove(entry) }
        found.bytes = found.items.reduce(0) { $0 + $1.entry.length }
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
        let added: (QueueEntry, [QueueEntry])? = state.withLock { state in
            let isQueued = state.items.last { $0.entry.name == name && $0.phase != .withdrawn }.map {
                $0.entry.change != .delete
            }
            guard !state.isClosed, isQueued != true else { return nil }
            guard record.length <= limits.bytes else {
                state.dropped += 1
                return nil
            }
            return append(name, .put(record, mediaType: mediaType), &state)
        }
        guard let (entry, evicted) = added else { return }
        let isSubmitted = disk.submit { [self] in
            for old in evicted { directory.remove(old) }
            recordEntry(entry, file)
        }
        if !isSubmitted { drop(entry) }
    }

    /// Queues a delete, and withdraws the puts of the same name. Suspends until the delete is durable.
    ///
    /// - Returns: Whether it is queued.
    func delete(_ name: RenditionName) async -> Bool {
        let added: (QueueEntry, [QueueEntry])? = state.withLock { state in
            guard !state.isClosed else { return nil }
            var withdrawn: [QueueEntry] = []
            for index in state.items.indices.reversed() where state.items[index].entry.name == name {
                switch state.items[index].phase {
                case .recording, .running: state.items[index].phase = .withdrawn
                case .ready: withdrawn.append(removeItem(at: index, &state))
                case .withdrawn: break
                }
            }
            let (entry, evicted) = append(name, .delete, &state)
            return (entry, evicted + withdrawn)
        }
        guard let (entry, obsolete) = added else { return false }
        let isRecorded = await disk.run { [self] in
            // The delete first: after a crash in between it is found behind the puts.
            let isRecorded = recordEntry(entry, nil)
            for old in obsolete { directory.remove(old) }
            return isRecorded
        }
        if isRecorded == nil { drop(entry) }
        return isRecorded == true
    }

    /// Whether a delete of this name waits or is being sent, so that the store may still have what was purged.
    func hasDelete(of name: RenditionName) -> Bool {
        state.withLock { state in
            state.items.contains { $0.entry.change == .delete && $0.entry.name == name }
        }
    }

    /// Appends an entry, and removes the oldest puts, or else the oldest entries, over the limits.
    private func append(
        _ name: RenditionName, _ change: QueueEntry.Change, _ state: inout State
    ) -> (entry: QueueEntry, evicted: [QueueEntry]) {
        let entry = QueueEntry(sequence: state.nextSequence, name: name, change: change)
        state.nextSequence += 1
        var evicted: [QueueEntry] = []
        while state.items.count + 1 > limits.entries || state.bytes + entry.length > limits.bytes {
            let isIdle = { (item: Item) in item.phase == .ready }
            guard
                let index = state.items.firstIndex(where: { isIdle($0) && $0.entry.change != .delete })
                    ?? state.items.firstIndex(where: isIdle)
            else { break }
            evicted.append(removeItem(at: index, &state))
            state.dropped += 1
        }
        state.items.append(Item(entry: entry, phase: .recording))
        state.bytes += entry.length
        return (entry, evicted)
    }

    /// Writes an entry's files, on the thread of `disk`.
    @discardableResult
    private func recordEntry(_ entry: QueueEntry, _ file: SharedDescriptor?) -> Bool {
        do throws(StoreError) {
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

    /// Lets an entry be sent, unless it was withdrawn.
    @discardableResult
    private func ready(_ entry: QueueEntry) -> Bool {
        let isReady = state.withLock { state in
            guard let index = state.index(of: entry) else { return false }
            if state.items[index].phase == .withdrawn {
                _ = removeItem(at: index, &state)
                return false
            }
            state.items[index].phase = .ready
            return true
        }
        wake()
        return isReady
    }

    /// Suspends until a queued entry of this name has been sent, an attempt has failed, or `limit` has passed.
    ///
    /// - Returns: Whether it was sent; true also if none is queued.
    func attempt(of name: RenditionName, within limit: Duration?) async -> Bool {
        let number = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        return await withCheckedContinuation { continuation in
            let known: Bool? = state.withLock { state in
                if state.isClosed { return false }
                guard state.items.contains(where: { $0.entry.name == name }) else { return true }
                state.waitingForAttempt[name, default: [:]][number] = continuation
                return nil
            }
            if let known { return continuation.resume(returning: known) }
            guard let limit else { return }
            Task {
                try? await Task.sleep(for: limit)
                state.withLock { $0.waitingForAttempt[name]?.removeValue(forKey: number) }?.resume(returning: false)
            }
        }
    }

    private func attemptEnded(_ entry: QueueEntry, isSent: Bool) {
        let continuations = state.withLock { $0.waitingForAttempt.removeValue(forKey: entry.name) } ?? [:]
        for continuation in continuations.values { continuation.resume(returning: isSent) }
    }

    private func drop(_ entry: QueueEntry) {
        state.withLock { state in
            guard let index = state.index(of: entry) else { return }
            _ = removeItem(at: index, &state)
            state.dropped += 1
        }
        attemptEnded(entry, isSent: false)
        wake()
    }

    private func removeItem(at index: Int, _ state: inout State) -> QueueEntry {
        let entry = state.items.remove(at: index).entry
        state.bytes -= entry.length
        return entry
    }

    // MARK: Sending

    /// The next entry to send; nil after ``close()``. Suspends while there is none. The caller reports the end by ``finish(_:)`` or
    /// ``putBack(_:)``.
    func next() async -> QueueEntry? {
        while true {
            let (entry, isClosed) = state.withLock { state -> (QueueEntry?, Bool) in
                if state.isClosed { return (nil, true) }
                var busy: Set<RenditionName> = []
                for index in state.items.indices {
                    let item = state.items[index]
                    if item.phase == .ready, !busy.contains(item.entry.name) {
                        state.items[index].phase = .running
                        return (item.entry, false)
                    }
                    // Later entries of this name wait for this one.
                    busy.insert(item.entry.name)
                }
                return (nil, false)
            }
            if isClosed { return nil }
            if let entry { return entry }
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    let hasReady = state.isClosed || Self.hasReadyItem(state)
                    if !hasReady { state.waiting.append(continuation) }
                    return !hasReady
                }
                if !mustWait { continuation.resume() }
            }
        }
    }

    private static func hasReadyItem(_ state: State) -> Bool {
        var busy: Set<RenditionName> = []
        for item in state.items {
            if item.phase == .ready, !busy.contains(item.entry.name) { return true }
            busy.insert(item.entry.name)
        }
        return false
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
            if let index = state.index(of: entry) { _ = removeItem(at: index, &state) }
        }
        _ = disk.submit { [self] in directory.remove(entry) }
        wake()
    }

    /// Removes an entry that can never be sent, and counts it.
    func discard(_ entry: QueueEntry) {
        state.withLock { $0.dropped += 1 }
        remove(entry)
        attemptEnded(entry, isSent: false)
    }

    /// Lets an entry that was not sent wait again, unless it was withdrawn meanwhile.
    func putBack(_ entry: QueueEntry) {
        let isWithdrawn = state.withLock { state in
            guard let index = state.index(of: entry) else { return false }
            if state.items[index].phase == .withdrawn { return true }
            state.items[index].phase = .ready
            return false
        }
        if isWithdrawn { remove(entry) } else { wake() }
        attemptEnded(entry, isSent: false)
    }

    /// Suspends until the queue is empty, closed, or `limit` has passed. Returns whether it is empty.
    func drain(within limit: Duration) async -> Bool {
        let deadline = Deadline(after: limit) { [self] in
            for continuation in state.withLock({ state in
                defer { state.waitingForEnd.removeAll() }
                return state.waitingForEnd
            }) { continuation.resume() }
        }
        await withCheckedContinuation { continuation in
            let mustWait = state.withLock { state in
                let mustWait = !state.isClosed && !state.items.isEmpty
                if mustWait { state.waitingForEnd.append(continuation) }
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
            defer { state.waitingForAttempt.removeAll() }
            return state.waitingForAttempt.values.flatMap(\.values)
        }
        for continuation in abandoned { continuation.resume(returning: false) }
        wake()
        disk.close()
        directory.unlock()
    }

    private func wake() {
        let continuations = state.withLock { state in
            var all = state.waiting
            state.waiting.removeAll()
            if state.items.isEmpty || state.isClosed {
                all += state.waitingForEnd
                state.waitingForEnd.removeAll()
            }
            return all
        }
        for continuation in continuations { continuation.resume() }
    }
}
