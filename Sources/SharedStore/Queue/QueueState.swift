internal import SystemIO

/// What a ``WriteBehindQueue`` keeps in memory. The cost of an operation on an entry is logarithmic in the number of entries.
struct QueueState {
    enum Phase {
        /// Its files are being written.
        case recording
        case ready
        case running
        /// It failed, and waits for its next attempt.
        case paused
        /// It is a put of a former process. A purge that this node has missed may still withdraw it.
        case held
        /// Its put was withdrawn, or dropped, while it was recorded or sent.
        case withdrawn
    }

    private struct Item {
        let entry: QueueEntry
        var phase: Phase
        /// Attempts that failed.
        var failures = 0
        /// Those among them whose reason may be the entry.
        var refusals = 0
        /// Ends ``Phase/paused``.
        var pause: Deadline?

        var isPut: Bool { entry.change != .delete }
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

    /// An entry that can be sent: it is ready, and the first of its name. Those that were not refused come first, then the oldest.
    private struct Candidate: Comparable {
        let isRefused: Bool
        let sequence: UInt64

        static func < (left: Candidate, right: Candidate) -> Bool {
            left.isRefused == right.isRefused ? left.sequence < right.sequence : right.isRefused
        }
    }

    /// By their sequences.
    private var items: [UInt64: Item] = [:]
    /// The sequences of the items of a name, ascending. Those before a withdrawn item are withdrawn as well.
    private var sequences: [RenditionName: [UInt64]] = [:]
    /// All that can be sent. Items that were removed stay until they are the first, which is never one of them.
    private var candidates = Heap<Candidate>()
    /// The puts that are idle. Others stay until they are the first and a put is to be evicted.
    private var evictable = Heap<UInt64>()
    private var nextSequence: UInt64 = 1
    private(set) var bytes = 0
    /// The entries among the items that delete a rendition.
    private var deletes = 0
    /// Items that are not idle, and the puts among them with their bytes.
    private var (busy, busyPuts, busyBytes) = (0, 0, 0)
    var dropped = 0
    /// Senders that wait for an entry.
    var idleSenders: [CheckedContinuation<Void, Never>] = []
    /// Callers that wait until the queue is empty, by numbers of their own.
    var drainWaiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
    /// Whether each entry is tried at once, and once if it is refused, because the queue is to be emptied.
    var isDraining = false
    /// By numbers of their own.
    var attemptWaiters: [UInt64: Waiter] = [:]
    private var lastWaiter: UInt64 = 0
    var isClosed = false
    var isDiskBroken = false
    var hasDiscarded = false

    // MARK: Looking up

    var count: Int { items.count }

    func phase(of entry: QueueEntry) -> Phase? { items[entry.sequence]?.phase }

    /// The last entry of this name that is to be sent.
    func lastEntry(of name: RenditionName) -> QueueEntry? {
        guard let item = sequences[name]?.last.flatMap({ items[$0] }), item.phase != .withdrawn else { return nil }
        return item.entry
    }

    func hasDelete(of name: RenditionName) -> Bool {
        sequences[name]?.contains { items[$0]?.isPut == false } ?? false
    }

    /// The deletes that are to be sent.
    var pendingDeletes: [QueueEntry] {
        items.values.filter { !$0.isPut && $0.phase != .withdrawn }.map(\.entry)
    }

    /// Whether an entry can be sent.
    var hasNext: Bool { candidates.first != nil }

    /// Whether an entry can be sent that was not refused.
    var hasFresh: Bool { candidates.first?.isRefused == false }

    /// Whether nothing is left but what is held or paused, and what waits for it.
    var isDrained: Bool { busy == 0 && !hasNext }

    // MARK: Adding

    /// Appends a put, and removes the oldest puts over the limits. Deletes stay: each is a purge that was confirmed.
    ///
    /// - Returns: Nil if the put is refused, because those that are recorded or sent at the moment fill the queue.
    mutating func appendPut(
        _ name: RenditionName, _ record: StoredRecord, mediaType: String, _ limits: WriteBehindQueue.Limits
    ) -> (entry: QueueEntry, evicted: [QueueEntry])? {
        let room = limits.bytes - record.length
        guard busyPuts < limits.puts, busyBytes <= room else {
            dropped += 1
            return nil
        }
        var evicted: [QueueEntry] = []
        while items.count - deletes >= limits.puts || bytes > room, let oldest = evictOldestPut() {
            evicted.append(oldest)
            dropped += 1
        }
        return (append(name, .put(record, mediaType: mediaType)), evicted)
    }

    private mutating func evictOldestPut() -> QueueEntry? {
        while let sequence = evictable.removeFirst() {
            guard let item = items[sequence], item.isIdle else { continue }
            remove(item.entry)
            return item.entry
        }
        return nil
    }

    /// Appends a delete.
    ///
    /// - Returns: Nil if the queue takes no more of them. One that withdraws another takes its place.
    mutating func appendDelete(_ name: RenditionName, _ limits: WriteBehindQueue.Limits) -> QueueEntry? {
        deletes < limits.deletes || hasDelete(of: name) ? append(name, .delete) : nil
    }

    /// Adds the entries of a former process, in their order.
    ///
    /// - Returns: Those that are not added, because a delete behind them withdraws them: the former process may have ended between
    ///   the record of the delete and their removal.
    mutating func restore(_ entries: [QueueEntry], holdsPuts: Bool) -> [QueueEntry] {
        var superseded: [QueueEntry] = []
        for entry in entries {
            nextSequence = entry.sequence + 1
            if entry.change == .delete { superseded += withdraw(entry.name).removed }
            add(entry, holdsPuts && entry.change != .delete ? .held : .ready)
        }
        return superseded
    }

    /// Appends the deletes among entries that were found in another directory, except those of a name that has one.
    ///
    /// - Parameter found: In the order of their sequences.
    /// - Returns: The deletes with their entries, whose sequences are behind all that were found.
    mutating func adoptDeletes(_ found: [QueueEntry]) -> [(found: QueueEntry, entry: QueueEntry)] {
        if let last = found.last { nextSequence = max(nextSequence, last.sequence + 1) }
        var adopted: [(found: QueueEntry, entry: QueueEntry)] = []
        for entry in found where entry.change == .delete && !hasPendingDelete(of: entry.name) {
            adopted.append((entry, append(entry.name, .delete)))
        }
        return adopted
    }

    private func hasPendingDelete(of name: RenditionName) -> Bool {
        sequences[name]?.contains { items[$0].map { !$0.isPut && $0.phase != .withdrawn } ?? false } ?? false
    }

    private mutating func append(_ name: RenditionName, _ change: QueueEntry.Change) -> QueueEntry {
        let entry = QueueEntry(sequence: nextSequence, name: name, change: change)
        nextSequence += 1
        add(entry, .recording)
        return entry
    }

    /// Adds an entry whose sequence is behind all others.
    private mutating func add(_ entry: QueueEntry, _ phase: Phase) {
        let item = Item(entry: entry, phase: phase)
        items[entry.sequence] = item
        sequences[entry.name, default: []].append(entry.sequence)
        bytes += entry.length
        if !item.isPut { deletes += 1 }
        if item.isIdle { becameIdle(item) } else { countBusy(item, 1) }
        offer(entry.sequence)
    }

    // MARK: Removing

    mutating func remove(_ entry: QueueEntry) {
        guard let item = items.removeValue(forKey: entry.sequence) else { return }
        bytes -= entry.length
        if !item.isPut { deletes -= 1 }
        if !item.isIdle { countBusy(item, -1) }
        var others = sequences[entry.name] ?? []
        let wasFirst = others.first == entry.sequence
        others.removeAll { $0 == entry.sequence }
        sequences[entry.name] = others.isEmpty ? nil : others
        if wasFirst, let next = others.first { offer(next) }
        removeStaleCandidates()
    }

    /// Withdraws the entries of a name, except deletes that are being recorded.
    ///
    /// - Returns: Those that were removed, and those that are to be removed when they have been recorded or sent.
    mutating func withdraw(_ name: RenditionName) -> (removed: [QueueEntry], withdrawn: [QueueEntry]) {
        var (removed, withdrawn): ([QueueEntry], [QueueEntry]) = ([], [])
        for sequence in (sequences[name] ?? []).reversed() {
            guard let item = items[sequence], item.phase != .withdrawn else { break }
            // The caller of a delete waits until it is durable.
            if item.phase == .recording, !item.isPut { continue }
            if item.isIdle {
                remove(item.entry)
                removed.append(item.entry)
            } else {
                setPhase(.withdrawn, of: item.entry)
                withdrawn.append(item.entry)
            }
        }
        return (removed, withdrawn)
    }

    /// Removes the puts that are held, and counts them as dropped.
    mutating func dropHeld() -> [QueueEntry] {
        let held = items.values.filter { $0.phase == .held }.map(\.entry)
        for entry in held { remove(entry) }
        dropped += held.count
        return held
    }

    // MARK: Waiting

    /// A number for a caller that waits.
    mutating func numberWaiter() -> UInt64 {
        lastWaiter += 1
        return lastWaiter
    }

    /// Removes the callers that wait for this entry.
    mutating func takeWaiters(for entry: QueueEntry) -> [Waiter] {
        let ended = attemptWaiters.filter { $0.value.sequence == entry.sequence }
        for number in ended.keys { attemptWaiters[number] = nil }
        return Array(ended.values)
    }

    // MARK: Changing the phase

    /// Takes the entry to send next, which is running then: of those that are ready the oldest that was not refused, or else the
    /// oldest. So entries that are refused each time delay no others. An entry holds up later ones of its name.
    mutating func takeNext() -> QueueEntry? {
        guard let candidate = candidates.removeFirst(), let entry = items[candidate.sequence]?.entry else { return nil }
        setPhase(.running, of: entry)
        removeStaleCandidates()
        return entry
    }

    mutating func makeReady(_ entry: QueueEntry) {
        setPhase(.ready, of: entry)
    }

    /// Makes all entries of a phase ready.
    mutating func makeReady(all phase: Phase) {
        for entry in items.values.filter({ $0.phase == phase }).map(\.entry) { makeReady(entry) }
    }

    /// Lets an entry that failed wait.
    ///
    /// - Parameters:
    ///   - isRefused: Whether the entry may be the reason.
    ///   - timer: Ends the pause, after this number of attempts that failed. Nil if it lasts until the pauses of all end.
    mutating func pause(_ entry: QueueEntry, isRefused: Bool, _ timer: (Int) -> Deadline?) {
        guard let failures = items[entry.sequence]?.failures else { return }
        setPhase(.paused, of: entry)
        items[entry.sequence]?.failures = failures + 1
        if isRefused { items[entry.sequence]?.refusals += 1 }
        items[entry.sequence]?.pause = timer(failures + 1)
    }

    private mutating func setPhase(_ phase: Phase, of entry: QueueEntry) {
        guard let old = items[entry.sequence], old.phase != phase else { return }
        var item = old
        item.phase = phase
        item.pause = nil
        items[entry.sequence] = item
        if old.isIdle != item.isIdle {
            countBusy(item, item.isIdle ? -1 : 1)
            if item.isIdle { becameIdle(item) }
        }
        offer(entry.sequence)
    }

    private mutating func countBusy(_ item: Item, _ change: Int) {
        busy += change
        guard item.isPut else { return }
        busyPuts += change
        busyBytes += change * item.entry.length
    }

    // MARK: Heaps

    /// Adds an item to the candidates if it can be sent. Called once per item that becomes ready, or the first of its name.
    private mutating func offer(_ sequence: UInt64) {
        guard let item = items[sequence], item.phase == .ready, sequences[item.entry.name]?.first == sequence else { return }
        candidates.insert(Candidate(isRefused: item.refusals > 0, sequence: sequence))
    }

    private mutating func removeStaleCandidates() {
        while let first = candidates.first, items[first.sequence]?.phase != .ready { candidates.removeFirst() }
        guard candidates.count > 2 * items.count + 64 else { return }
        candidates = Heap()
        for first in sequences.values.compactMap(\.first) { offer(first) }
    }

    private mutating func becameIdle(_ item: Item) {
        guard item.isPut else { return }
        evictable.insert(item.entry.sequence)
        guard evictable.count > 2 * (items.count - deletes) + 64 else { return }
        evictable = Heap(items.values.filter { $0.isPut && $0.isIdle }.map(\.entry.sequence))
    }
}
