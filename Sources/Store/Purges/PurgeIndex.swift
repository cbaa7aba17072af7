internal import Synchronization

/// A moment in the order of purges, and in the cluster's time.
///
/// A publisher notes the epoch before it asks the origin; if a later purge covers the source, the result is not stored.
package struct Epoch: Sendable, Equatable {
    let number: Int64
    /// The earliest possible time of the moment, in milliseconds of the cluster's clock.
    package let began: Int64
    /// The number of purges that were announced until the moment.
    var announcements = 0

    /// Returns the same moment in the order of purges, for work that began at another time on another node.
    package func began(at time: Int64) -> Epoch {
        Epoch(number: number, began: min(began, time), announcements: announcements)
    }

    package static func == (left: Epoch, right: Epoch) -> Bool {
        left.number == right.number && left.announcements == right.announcements
    }
}

/// A version of the cache's contents. It changes with each stored rendition and each purge, but not with evictions. Valid
/// within one run of the server.
package struct CacheVersion: Sendable, Equatable {
    package let epoch: Epoch
    let commits: Int64
}

/// The in-memory mirror of the purge table, indexed by what purges cover. It decides whether a row is live and whether a purge
/// overtook a piece of work.
///
/// A purge covers rows with smaller sequences; a purge accepted by another node spares rows that began after it. Publishes
/// compare under the lock that puts purges and rows in one order, so a row is never older than a purge with a smaller sequence.
///
/// Bounded: the oldest purges without rows left are dropped, and work begun before them counts as overtaken whatever its
/// source. Its result is then used but not stored, which is always safe. Any thread; the lock is held for a few dictionary
/// accesses.
package final class PurgeIndex: Sendable {
    private struct Mark {
        let sequence: Int64
        let madeAt: Int64
        let isLocal: Bool
        /// The latest time of a purge of the key that all nodes apply; 0 if this node alone has removed what it covers.
        let shared: Int64

        func covers(_ sequence: Int64, _ began: Int64) -> Bool {
            self.sequence > sequence && (isLocal || began <= madeAt)
        }
    }

    private struct State {
        /// The latest sequence of a purge, or of another event that overtakes all work.
        var latest: Int64 = 0
        /// The latest event that overtook everything.
        var overtaken: Int64 = 0
        /// The latest purge that was dropped.
        var floor: Int64 = 0
        /// The latest time of a purge that was dropped.
        var floorTime: Int64 = 0
        /// The purges by what they cover; see ``PurgeIndex/key(_:_:)``.
        var marks: [[UInt8]: [Mark]] = [:]
        /// The number of prefixes in `marks`, by their length in bytes.
        var prefixes: [Int: Int] = [:]
        /// All purges, the oldest first.
        var entries: [(sequence: Int64, purge: Purge)] = []
        var tokens: [String: Int64] = [:]
        var unswept: Set<Int64> = []
        /// The purges that have no sequence yet, by token, and the number of all purges announced so far.
        var announced: [String: Purge] = [:]
        var announcements = 0
    }

    private let state = Mutex(State())
    private let unsweptCount = Atomic(0)
    private let limit: Int
    private let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - limit: The number of swept purges to keep.
    ///   - now: Returns the earliest possible current time by the cluster's clock.
    init(limit: Int = 20_000, now: @escaping @Sendable () -> Int64 = { 0 }) {
        self.limit = limit
        self.now = now
    }

    package var epoch: Epoch {
        let began = now()
        return state.withLock { Epoch(number: $0.latest, began: began, announcements: $0.announcements) }
    }

    // MARK: Changing

    func load(_ rows: [PurgeTable.Row], floor: (sequence: Int64, madeAt: Int64), latest: Int64) {
        for row in rows { insert(row.purge, row.sequence, isSwept: row.isSwept) }
        state.withLock { state in
            // Work of a former process is over, and rows are not compared with the floor.
            (state.latest, state.floorTime) = (max(state.latest, latest), max(state.floorTime, floor.madeAt))
        }
    }

    /// Lets a purge cover all rows and overtake all work until ``insert(_:_:isSwept:)`` gives it its place in the order. Its
    /// caller need not wait for the lock that decides on the order, which may be held while a disk syncs.
    ///
    /// - Returns: False if the purge is known.
    func announce(_ purge: Purge) -> Bool {
        state.withLock { state in
            guard state.tokens[purge.token] == nil, state.announced[purge.token] == nil else { return false }
            state.announced[purge.token] = purge
            state.announcements += 1
            Self.add(purge, .max, &state)
            countUnswept(state)
            return true
        }
    }

    /// Records a purge, which from now on covers rows and overtakes work.
    func insert(_ purge: Purge, _ sequence: Int64, isSwept: Bool = false) {
        state.withLock { state in
            state.latest = max(state.latest, sequence)
            state.entries.append((sequence, purge))
            state.tokens[purge.token] = sequence
            state.announced[purge.token] = nil
            if !isSwept { state.unswept.insert(sequence) }
            Self.add(purge, sequence, &state)
            if state.entries.count - state.unswept.count > limit { drop(limit / 2, &state) }
            countUnswept(state)
        }
    }

    private static func add(_ purge: Purge, _ sequence: Int64, _ state: inout State) {
        change(purge.scope, &state) { marks in
            let shared = marks.map(\.shared).max() ?? 0
            // A later purge that covers as much replaces earlier ones. It also replaces announced ones, whose work began before.
            marks.removeAll { purge.isLocal && $0.madeAt <= purge.madeAt || !$0.isLocal && $0.madeAt <= purge.madeAt }
            marks.append(
                Mark(
                    sequence: sequence, madeAt: purge.madeAt, isLocal: purge.isLocal,
                    shared: purge.entry == "" ? shared : max(shared, purge.madeAt)))
        }
    }

    private func countUnswept(_ state: borrowing State) {
        unsweptCount.store(state.unswept.count + state.announced.count, ordering: .releasing)
    }

    /// Notes that no row is left that a purge covers.
    func markSwept(_ sequence: Int64) {
        state.withLock { state in
            state.unswept.remove(sequence)
            countUnswept(state)
        }
    }

    /// Marks all work begun so far as overtaken.
    func overtakeAll(_ sequence: Int64) {
        state.withLock { state in
            state.latest = max(state.latest, sequence)
            state.overtaken = max(state.overtaken, sequence)
        }
    }

    /// Rejects all work that another node began until `time`, because purges of it may have been missed.
    package func distrust(until time: Int64) {
        state.withLock { $0.floorTime = max($0.floorTime, time) }
    }

    /// Notes that no purge has rows left, because the database is empty.
    func forgetRows() {
        state.withLock { state in
            state.unswept = []
            countUnswept(state)
        }
    }

    /// Drops the oldest purges without rows left. One that is delivered afterwards is applied again, to what is as old.
    private func drop(_ count: Int, _ state: inout State) {
        var left = count
        var kept: [(sequence: Int64, purge: Purge)] = []
        for entry in state.entries {
            guard left > 0, !state.unswept.contains(entry.sequence) else {
                kept.append(entry)
                continue
            }
            left -= 1
            state.tokens[entry.purge.token] = nil
            state.floor = max(state.floor, entry.sequence)
            state.floorTime = max(state.floorTime, entry.purge.madeAt)
            Self.change(entry.purge.scope, &state) { $0.removeAll { $0.sequence == entry.sequence } }
        }
        state.entries = kept
    }

    private static func change(_ scope: PurgeScope, _ state: inout State, _ body: (inout [Mark]) -> Void) {
        let key = key(scope.kind, scope.argument.utf8)
        let old = state.marks[key]
        var marks = old ?? []
        body(&marks)
        state.marks[key] = marks.isEmpty ? nil : marks
        guard case .prefix(let prefix) = scope, (old == nil) != marks.isEmpty else { return }
        let count = state.prefixes[prefix.utf8.count, default: 0] + (old == nil ? 1 : -1)
        state.prefixes[prefix.utf8.count] = count > 0 ? count : nil
    }

    /// Returns a scope as bytes. Strings that compare equal may name two sources.
    private static func key(_ kind: String, _ argument: some Collection<UInt8> = EmptyCollection()) -> [UInt8] {
        Array(kind.utf8) + argument
    }

    private static func marks(of object: ObjectID, _ state: State) -> [Mark] {
        state.marks[key("o", object.description.utf8)] ?? []
    }

    // MARK: Questions

    /// Whether any row of the current state of the database may be covered.
    var hasUnswept: Bool { unsweptCount.load(ordering: .acquiring) > 0 }

    func unsweptRows() -> [PurgeTable.Row] {
        state.withLock { state in
            state.entries.filter { state.unswept.contains($0.sequence) }.map {
                PurgeTable.Row(sequence: $0.sequence, purge: $0.purge, isSwept: false)
            }
        }
    }

    /// Whether a row is covered by a purge that came after it. Considers swept purges, too: a reader may have read the row from the
    /// state of the database before the sweep.
    ///
    /// - Parameters:
    ///   - sourceURL: Nil for an upload.
    ///   - sequence: The row's sequence.
    ///   - began: When its work began, in milliseconds of the cluster's clock.
    func covers(_ sourceURL: String?, _ object: ObjectID?, _ sequence: Int64, began: Int64) -> Bool {
        state.withLock { Self.contains($0, sourceURL, object) { $0.covers(sequence, began) } }
    }

    /// Whether a purge that covers the rendition came after `epoch`.
    package func overtook(_ epoch: Epoch, sourceURL: String?, object: ObjectID? = nil) -> Bool {
        state.withLock { state in
            guard state.latest > epoch.number || !state.announced.isEmpty else { return false }
            return epoch.number < max(state.floor, state.overtaken)
                || Self.contains(state, sourceURL, object) { $0.covers(epoch.number, epoch.began) }
        }
    }

    /// Whether the object itself was purged after `epoch`. Purges of URLs, prefixes and everything do not count.
    package func containsPurge(of object: ObjectID, since epoch: Epoch) -> Bool {
        state.withLock { state in
            guard state.latest > epoch.number || !state.announced.isEmpty else { return false }
            return epoch.number < state.floor
                || Self.marks(of: object, state).contains { $0.covers(epoch.number, epoch.began) }
        }
    }

    /// Whether work that another node began at `began` may be used: no known purge that covers it may have been accepted later.
    ///
    /// - Parameter object: Nil for a failure. What this node alone has removed since does not concern a failure, which may be
    ///   the cause.
    package func isCurrent(_ began: Int64, sourceURL: String, object: ObjectID?) -> Bool {
        state.withLock { state in
            began > state.floorTime
                && !Self.contains(state, sourceURL, object) { began <= (object == nil ? $0.shared : $0.madeAt) }
        }
    }

    /// Identifies the latest known purge of all nodes that covers all renditions of a source. Nodes with the same purges return
    /// the same value.
    package func cover(of sourceURL: String) -> Int64 {
        state.withLock { state in
            var latest: Int64 = 0
            _ = Self.contains(state, sourceURL, nil) { mark in
                latest = max(latest, mark.shared)
                return false
            }
            return latest
        }
    }

    /// The latest time of the known purges of an object itself; nil if there are none.
    func latestRemoval(of object: ObjectID) -> Int64? {
        state.withLock { Self.marks(of: object, $0).map(\.madeAt).max() }
    }

    package func isKnown(_ token: String) -> Bool {
        state.withLock { $0.tokens[token] != nil || $0.announced[token] != nil }
    }

    /// The purges that have no place in the order yet.
    var announced: [Purge] { state.withLock { Array($0.announced.values) } }

    /// Whether a purge with this token has its place in the order.
    func isInserted(_ token: String) -> Bool {
        state.withLock { $0.tokens[token] != nil }
    }

    private static func contains(
        _ state: State, _ sourceURL: String?, _ object: ObjectID?, _ matches: (Mark) -> Bool
    ) -> Bool {
        if state.marks.isEmpty { return false }
        func contains(_ kind: String, _ argument: some Collection<UInt8> = EmptyCollection()) -> Bool {
            state.marks[key(kind, argument)]?.contains(where: matches) ?? false
        }
        if contains("a") { return true }
        if let object, contains("o", object.description.utf8) { return true }
        guard let sourceURL else { return false }
        if contains("u", sourceURL.utf8) { return true }
        if let host = PurgeScope.host(of: sourceURL), contains("h", host.utf8) { return true }
        let bytes = Array(sourceURL.utf8)
        return state.prefixes.keys.contains { $0 <= bytes.count && contains("p", bytes.prefix($0)) }
    }
}

/// Points between the steps of an operation, outside any lock, at which another thread may purge. Tests switch threads at these
/// points to cover many interleavings.
enum Step: Sendable, CaseIterable {
    case lookupNotedEpoch, lookupReadIndex, lookupOpenedFile
    case publishMeasured, publishSynced, publishCommitted
    case purgeInForce, purgeCooled
    case evictedFromDisk
}
