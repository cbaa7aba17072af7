internal import SystemIO

/// What a ``WriteBehindQueue`` keeps in memory.
struct QueueState {
    enum Phase {
        /// Its files are being written.
        case recording
        case ready
        case running
        /// It failed, and waits for its next attempt.
        case paused
        /// It is a put of a former process, which purges may withdraw that this node missed.
        case held
        /// Its put was withdrawn, or dropped, while it was recorded or sent.
        case withdrawn
    }

    struct Item {
        let entry: QueueEntry
        var phase: Phase
        /// Attempts that failed.
        var failures = 0
        /// Ends ``Phase/paused``.
        var pause: Deadline?

        /// Whether it is neither recorded nor sent at the moment.
        var isIdle: Bool { phase == .ready || phase == .paused || phase == .held }
    }

    /// A caller that waits for the end of the next attempt to send an entry.
    struct Waiter {
        /// The entry's.
        let sequence: UInt64
        let continuation: CheckedContinuation<Bool, Never>
        /// Ends the wait.
        var deadline: Deadline?
    }

    /// In the order of their sequences.
    var items: [Item] = []
    var nextSequence: UInt64 = 1
    var bytes = 0
    /// The entries among the items that delete a rendition.
    var deletes = 0
    var dropped = 0
    /// Senders that wait for an entry.
    var idleSenders: [CheckedContinuation<Void, Never>] = []
    /// Callers that wait until the queue is empty.
    var drainWaiters: [CheckedContinuation<Void, Never>] = []
    /// Whether entries are not paused, because the queue is to be emptied.
    var isDraining = false
    /// By numbers of their own.
    var attemptWaiters: [UInt64: Waiter] = [:]
    var nextAttemptWaiter: UInt64 = 0
    var isClosed = false
    var isDiskBroken = false
    var hasDiscarded = false

    func index(of entry: QueueEntry) -> Int? {
        // Sequences ascend.
        var (low, high) = (0, items.count)
        while low < high {
            let middle = (low + high) / 2
            if items[middle].entry.sequence < entry.sequence { low = middle + 1 } else { high = middle }
        }
        return low < items.count && items[low].entry.sequence == entry.sequence ? low : nil
    }

    /// The last entry of this name that is to be sent.
    func lastEntry(of name: RenditionName) -> QueueEntry? {
        items.last { $0.entry.name == name && $0.phase != .withdrawn }?.entry
    }

    /// The entry to send next: the oldest that is ready. Entries that failed are paused, and hold up only later ones of their name.
    var nextIndex: Int? {
        var held: Set<RenditionName> = []
        for (index, item) in items.enumerated() {
            if item.phase == .ready, !held.contains(item.entry.name) { return index }
            held.insert(item.entry.name)
        }
        return nil
    }

    /// Whether nothing is left but what is held.
    var isDrained: Bool { items.allSatisfy { $0.phase == .held } }

    mutating func endPause(at index: Int) {
        guard items[index].phase == .paused else { return }
        items[index].phase = .ready
        items[index].pause = nil
    }

    /// Appends a put, and removes the oldest puts over the limits. Deletes stay: each is a purge that was confirmed.
    ///
    /// - Returns: Nil if the put is refused, because those that are recorded or sent at the moment fill the queue.
    mutating func appendPut(
        _ name: RenditionName, _ record: StoredRecord, mediaType: String, _ limits: WriteBehindQueue.Limits
    ) -> (entry: QueueEntry, evicted: [QueueEntry])? {
        let room = limits.bytes - record.length
        let fixed = items.lazy.filter { !$0.isIdle && $0.entry.change != .delete }
        guard fixed.count < limits.puts, fixed.reduce(0, { $0 + $1.entry.length }) <= room else {
            dropped += 1
            return nil
        }
        var evicted: [QueueEntry] = []
        while items.count - deletes >= limits.puts || bytes > room,
            let index = items.firstIndex(where: { $0.isIdle && $0.entry.change != .delete })
        {
            evicted.append(remove(at: index))
            dropped += 1
        }
        return (append(name, .put(record, mediaType: mediaType)), evicted)
    }

    /// Appends a delete.
    ///
    /// - Returns: Nil if the queue takes no more of them.
    mutating func appendDelete(_ name: RenditionName, _ limits: WriteBehindQueue.Limits) -> QueueEntry? {
        deletes < limits.deletes ? append(name, .delete) : nil
    }

    private mutating func append(_ name: RenditionName, _ change: QueueEntry.Change) -> QueueEntry {
        let entry = QueueEntry(sequence: nextSequence, name: name, change: change)
        nextSequence += 1
        add(entry, .recording)
        return entry
    }

    /// Adds an entry whose sequence is behind all others.
    mutating func add(_ entry: QueueEntry, _ phase: Phase) {
        items.append(Item(entry: entry, phase: phase))
        bytes += entry.length
        if entry.change == .delete { deletes += 1 }
    }

    @discardableResult
    mutating func remove(at index: Int) -> QueueEntry {
        let entry = items.remove(at: index).entry
        bytes -= entry.length
        if entry.change == .delete { deletes -= 1 }
        return entry
    }

    /// Removes the callers that wait for this entry.
    mutating func takeWaiters(for entry: QueueEntry) -> [Waiter] {
        let ended = attemptWaiters.filter { $0.value.sequence == entry.sequence }
        for number in ended.keys { attemptWaiters[number] = nil }
        return Array(ended.values)
    }
}
