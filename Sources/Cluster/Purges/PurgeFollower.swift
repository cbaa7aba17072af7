internal import Ledger
internal import Synchronization
internal import SystemIO

/// Follows the purge stream: applies every purge in order, acknowledges it, and remembers the position.
///
/// A node takes part in the cluster only after it was listed as live and then applied everything in the stream. In that order,
/// because a purge counts the nodes that are listed after its entry was added: a node that is listed later finds the entry.
///
/// The position is recorded in the transaction of the purge, and a later one only after all purges before it; see ``PurgeHandlers``.
final class PurgeFollower: Sendable {
    private struct State {
        /// What the ledger has, once it has recorded everything; nil before it was read.
        var saved: PurgePosition?
        /// The number of connections of the stream so far.
        var connections = 0
        /// The number of times that ``saved`` could not be read.
        var failedLoads = 0
        /// The stream in the history's memory; nil before the first catch-up.
        var followed: String?
        var isReady = false
        /// The latest purges that this node added, in case the server loses them.
        var own: [PurgeStream.Addition] = []
        /// The last pending purge that the stream has got. It may still be in the ledger.
        var sentThrough: Int64 = 0
        /// Pending purges that the ledger does not have yet.
        var unrecorded: [RecordedPurge] = []
        /// Entries that were applied before their turn, durably.
        var applied: Set<StreamID> = []
        var onLatePurge: @Sendable (ClusterPurge) -> Void = { _ in }
    }

    /// The number of pending purges that are added to the stream at once.
    private static let batchSize = 200
    private static let ownLimit = 256
    private static let unrecordedLimit = 1000
    /// The number of attempts to read the position, after which it counts as lost.
    private static let maxLoads = 10

    let history = PurgeHistory()
    private let state = Mutex(State())
    private let stream: PurgeStream
    private let registry: NodeRegistry
    private let ledger: Ledger
    private let disk: any BlockingWork
    private let handlers: PurgeHandlers
    private let time: TimeSource
    private let meter: ClusterMeter
    private let onGap: @Sendable () -> Void

    /// - Parameters:
    ///   - stream: By a connection of its own, because reads wait for entries.
    ///   - ledger: Opened with ``PurgeTables/owned``.
    ///   - disk: Runs what blocks.
    ///   - onGap: Called if the stream does not reach back to the purges that this node has applied.
    init(
        _ stream: PurgeStream, _ registry: NodeRegistry, _ ledger: Ledger, _ disk: any BlockingWork, _ handlers: PurgeHandlers,
        _ time: TimeSource, _ meter: ClusterMeter, onGap: @escaping @Sendable () -> Void
    ) {
        self.stream = stream
        self.registry = registry
        self.ledger = ledger
        self.disk = disk
        self.handlers = handlers
        self.time = time
        self.meter = meter
        self.onGap = onGap
    }

    /// Whether this node is listed as live and has applied all purges from before that.
    var isTakingPart: Bool { state.withLock { $0.isReady } && registry.isLive }

    /// The identity of the stream that is followed; nil before it is known.
    var streamIdentity: String? { state.withLock { $0.followed } }

    /// Makes the node catch up before it takes part again, because it was not listed as live for a while.
    func fallBehind() {
        state.withLock { $0.isReady = false }
    }

    /// Has the node catch up on a new connection of the stream: the server may be another one, or may have lost entries.
    func connected() {
        state.withLock { $0.connections += 1 }
    }

    /// Has a function called for each purge that this node applies later than the others: it was away, or another node had made the
    /// purge alone.
    func reportLatePurges(to onLatePurge: @escaping @Sendable (ClusterPurge) -> Void) {
        state.withLock { $0.onLatePurge = onLatePurge }
    }

    // MARK: Purges of this node

    /// Remembers a purge that this node added to the stream.
    func noteOwn(_ id: StreamID, _ purge: RecordedPurge) {
        state.withLock { state in
            state.own.append((id, purge))
            if state.own.count > Self.ownLimit { state.own.removeFirst(Self.ownLimit / 2) }
        }
        meter.update { $0.purgesAdded += 1 }
    }

    /// Applies a purge here without waiting for its turn in the stream.
    ///
    /// - Returns: Nil if the purge is not durable. It is then applied again from the stream.
    func applyNow(_ id: StreamID, _ scope: ClusterPurge) async -> PurgeCounts? {
        history.insert(id, scope)
        guard let counts = await handlers.purgeLocalCache(scope, nil, { _ in }) else { return nil }
        state.withLock { state in
            if state.applied.count >= Self.ownLimit { state.applied = [] }
            if history.position < id { state.applied.insert(id) }
        }
        return counts
    }

    /// Applies a purge here, and remembers it until the stream has it. It is not applied again when it arrives from the stream.
    ///
    /// - Returns: What was removed, and the token of the purge.
    func applyAlone(_ scope: ClusterPurge) async -> (counts: PurgeCounts, token: String) {
        let token = RandomText.make()
        let purge = RecordedPurge(scope, time: time.unixMilliseconds, token: token)
        let counts = await handlers.purgeLocalCache(scope, nil) { try PurgeTables($0).addPending(purge) }
        if counts == nil {
            state.withLock { state in
                if state.unrecorded.count >= Self.unrecordedLimit {
                    state.unrecorded = [RecordedPurge(.all, time: purge.time)]
                }
                state.unrecorded.append(purge)
            }
        }
        await countPending()
        return (counts ?? PurgeCounts(purged: 0, bytes: 0), token)
    }

    /// Whether this node has made the purge with a token alone, and has not found it in the stream yet.
    func isPending(_ token: String) async -> Bool {
        if state.withLock({ $0.unrecorded.contains { $0.token == token } }) { return true }
        return await disk.run { [ledger] in try? ledger.read { try PurgeTables($0).isApplied(token) } } == true
    }

    // MARK: Following

    /// Catches up, then follows the stream until an error or until the node falls behind.
    ///
    /// - Parameter onReady: Called when the node begins to take part in the cluster.
    func follow(_ onReady: @Sendable () -> Void = {}) async throws(RedisError) {
        let connection = state.withLock { state in
            state.isReady = false
            return state.connections
        }
        let saved = try await load()
        try await registry.register(stream.commands)
        try await catchUp(saved)
        try await addPending()
        guard try await registry.join(stream.commands, at: history.position) else { return }
        state.withLock { $0.isReady = true }
        onReady()
        defer { fallBehind() }
        while !Task.isCancelled, isTakingPart, state.withLock({ $0.connections == connection }) {
            try await applyEntries(try await stream.newEntries(after: history.position), areLate: false)
            try await addPending()
        }
    }

    /// Applies what is in the stream and was not applied here.
    private func catchUp(_ saved: PurgePosition) async throws(RedisError) {
        let first = try await stream.oldest()
        let identity = first.text("s") ?? ""
        let last = try await stream.latest() ?? first
        let (own, followed) = state.withLock { ($0.own, $0.followed) }
        let lost = saved.stream == identity ? try await stream.lost(among: own) : own
        let plan = CatchUp(
            of: CatchUp.Node(saved: saved, followed: followed, position: history.position, lost: lost.map(\.id)),
            to: CatchUp.Stream(identity: identity, first: first.id, last: last.id, isWhole: first.isGenesis))
        if let start = plan.start { history.reset(reach: start.reach, position: start.position) }
        state.withLock { $0.followed = identity }
        if plan.isReported {
            meter.update { $0.revalidations += 1 }
            onGap()
        }
        if let gap = plan.gap { await handlers.revalidateEverything(gap) }
        var position = plan.readAfter
        while true {
            let page = try await stream.page(after: position)
            // Until all purges of objects are applied, a restart must revalidate again.
            try await applyEntries(
                page, areLate: true, missedAfter: saved.stream.isEmpty ? nil : saved.id, objectsAfter: plan.objectsAfter,
                savingPosition: plan.gap == nil)
            guard page.count == PurgeStream.pageSize, let last = page.last else { break }
            position = last.id
        }
        let reached = PurgePosition(stream: identity, id: history.position)
        await handlers.record { [lost = lost.map(\.purge)] database in
            let tables = PurgeTables(database)
            try tables.setPosition(reached)
            // The stream has lost the entries that were not among those that it has.
            try tables.forgetEntries()
            for purge in lost {
                // One with a token is still pending, or its entry was passed: then its row is gone, and the entry was lost later.
                if let token = purge.token, try tables.isApplied(token) { continue }
                try tables.addPending(RecordedPurge(purge.scope, time: purge.time))
            }
        }
        state.withLock { state in
            state.saved = reached
            state.sentThrough = 0
            state.own.removeAll { purge in lost.contains { $0.id == purge.id } }
        }
    }

    /// Applies entries in order, each with its position, and acknowledges those that are durable.
    ///
    /// - Parameters:
    ///   - areLate: Whether the entries were added while this node did not follow the stream.
    ///   - missedAfter: The position after which this node has missed entries; nil if it has missed none.
    ///   - objectsAfter: Purges of objects after this one are applied although the position is later.
    ///   - savingPosition: Whether the position is recorded with each purge.
    private func applyEntries(
        _ entries: [StreamEntry], areLate: Bool, missedAfter: StreamID? = nil, objectsAfter: StreamID? = nil,
        savingPosition: Bool = true
    ) async throws(RedisError) {
        var durable: [(id: StreamID, counts: PurgeCounts)] = []
        let start = history.position
        let identity = streamIdentity ?? ""
        for entry in entries where !entry.isGenesis {
            let position = PurgePosition(stream: identity, id: entry.id)
            let place: Ledger.Change = { if savingPosition { try PurgeTables($0).setPosition(position) } }
            guard let purge = entry.purge else {
                // A purge that cannot be read may cover anything.
                history.insert(entry.id, .all)
                await handlers.revalidateEverything(.certain)
                history.advance(to: entry.id)
                await handlers.record(place)
                continue
            }
            history.insert(entry.id, purge.scope)
            if entry.id <= start {
                if case .object = purge.scope, let objectsAfter, entry.id > objectsAfter {
                    _ = await handlers.purgeLocalCache(purge.scope, purge.time) { _ in }
                }
                continue
            }
            let counts = await apply(
                purge, entry.id, isLate: areLate, isMissed: missedAfter.map { entry.id > $0 } ?? false, place)
            history.advance(to: entry.id)
            meter.update { metrics in
                metrics.purgesApplied += 1
                metrics.purgeLag = .milliseconds(max(0, time.unixMilliseconds - Int64(clamping: entry.id.milliseconds)))
            }
            if let counts { durable.append((entry.id, counts)) }
        }
        if let last = entries.last { history.advance(to: last.id) }
        let position = history.position
        if savingPosition { state.withLock { $0.saved?.id = position } }
        try await stream.acknowledge(durable)
    }

    /// Applies a purge from the stream, unless this node has applied it before.
    ///
    /// - Parameters:
    ///   - isLate: Whether the entry may be older than what this node has stored.
    ///   - isMissed: Whether the node was away when the entry was added.
    ///   - place: Recorded with the purge.
    /// - Returns: Nil if the purge is not durable.
    private func apply(
        _ purge: RecordedPurge, _ id: StreamID, isLate: Bool, isMissed: Bool, _ place: @escaping Ledger.Change
    ) async -> PurgeCounts? {
        if state.withLock({ $0.applied.remove(id) }) != nil {
            await handlers.record(place)
            return PurgeCounts(purged: 0, bytes: 0)
        }
        let onLatePurge = state.withLock(\.onLatePurge)
        guard let token = purge.token else {
            let counts = await handlers.purgeLocalCache(purge.scope, isLate ? purge.time : nil, place)
            if isMissed { onLatePurge(purge.scope) }
            return counts
        }
        let placeAndRow: Ledger.Change = { database in
            try place(database)
            try PurgeTables(database).removeApplied(token)
        }
        let isApplied = await disk.run { [ledger] in try? ledger.read { try PurgeTables($0).isApplied(token) } }
        guard isApplied == true else {
            let counts = await handlers.purgeLocalCache(purge.scope, purge.time, placeAndRow)
            onLatePurge(purge.scope)
            return counts
        }
        await handlers.record(placeAndRow)
        return PurgeCounts(purged: 0, bytes: 0)
    }

    /// Adds the purges that were made alone, so that the other nodes apply them.
    private func addPending() async throws(RedisError) {
        while true {
            let (sent, unrecorded) = state.withLock { ($0.sentThrough, $0.unrecorded) }
            let rows = await disk.run { [ledger] in
                try? ledger.read { try PurgeTables($0).pending(after: sent, limit: Self.batchSize) }
            }
            let batch = (rows ?? nil) ?? []
            let purges = batch.map(\.purge) + unrecorded
            if purges.isEmpty { return }
            let (ids, failure) = try await stream.add(purges, to: streamIdentity ?? "")
            for (id, purge) in zip(ids, purges) { noteOwn(id, purge) }
            let added = Array(zip(ids, batch))
            if let last = added.last {
                _ = await disk.run { [ledger] in
                    try? ledger.write(.normal) { database in
                        for (id, row) in added { try PurgeTables(database).setEntry(id, of: row.number) }
                    }
                }
                state.withLock { $0.sentThrough = last.1.number }
            }
            state.withLock { $0.unrecorded.removeFirst(min(max(0, ids.count - batch.count), $0.unrecorded.count)) }
            await countPending()
            if let failure { throw failure }
        }
    }

    // MARK: The ledger

    /// The position that was saved. One that cannot be read counts as lost after ``maxLoads`` attempts.
    private func load() async throws(RedisError) -> PurgePosition {
        await countPending()
        if let saved = state.withLock(\.saved) { return saved }
        let read = await disk.run { [ledger] in try? ledger.read { try PurgeTables($0).position() } } ?? nil
        return try state.withLock { state throws(RedisError) in
            if read == nil { state.failedLoads += 1 }
            guard let saved = read ?? (state.failedLoads >= Self.maxLoads ? PurgePosition() : nil) else {
                throw .unavailable("the position in the purge stream cannot be read")
            }
            state.saved = saved
            return saved
        }
    }

    private func countPending() async {
        let count = await disk.run { [ledger] in try? ledger.read { try PurgeTables($0).pendingCount() } } ?? nil
        let unrecorded = Int64(state.withLock { $0.unrecorded.count })
        if let count { meter.update { $0.purgesPending = count + unrecorded } }
    }
}
