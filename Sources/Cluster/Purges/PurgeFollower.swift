internal import Synchronization

/// Follows the purge stream: applies every purge in order, acknowledges it, and remembers the position.
///
/// A node takes part in the cluster only after it was listed as live and then applied everything in the stream. In that order,
/// because a purge counts the nodes that are listed after its entry was added: a node that is listed later finds the entry.
final class PurgeFollower: Sendable {
    private struct State {
        var saved = SavedPurges()
        var isLoaded = false
        /// The number of connections of the stream so far.
        var connections = 0
        /// The number of times that ``saved`` could not be read.
        var failedLoads = 0
        /// Whether the memory has ``saved``, so that a purge can be appended to it.
        var isStored = false
        /// The number of the first pending purges that are on their way to the stream.
        var sending = 0
        /// The stream in the history's memory; nil before the first catch-up.
        var followed: String?
        var isReady = false
        /// The latest purges that this node added, in case the server loses them.
        var own: [PurgeStream.Addition] = []
        var volatile = VolatilePurges()
    }

    /// The number of pending purges that are added to the stream between two writes to disk.
    private static let batchSize = 200
    private static let ownLimit = 256
    /// The number of attempts to read the state, after which it counts as lost.
    private static let maxLoads = 10
    private static let recentMilliseconds: UInt64 = 60_000
    /// An hour. A node that has never followed a stream applies purges of objects that are younger, which revalidation does not replace.
    /// After a server has lost entries, a node applies those again that are younger than this before its position.
    private static let objectMilliseconds: UInt64 = 3_600_000

    let history = PurgeHistory()
    private let state = Mutex(State())
    private let saving = AsyncLock()
    private let stream: PurgeStream
    private let registry: NodeRegistry
    private let memory: any PurgeMemory
    private let handlers: PurgeHandlers
    private let time: any ClusterTime
    private let meter: ClusterMeter
    private let onGap: @Sendable () -> Void

    /// - Parameters:
    ///   - stream: By a connection of its own, because reads wait for entries.
    ///   - onGap: Called if the stream does not reach back to the purges that this node has applied.
    init(
        _ stream: PurgeStream, _ registry: NodeRegistry, _ memory: any PurgeMemory, _ handlers: PurgeHandlers,
        _ time: any ClusterTime, _ meter: ClusterMeter, onGap: @escaping @Sendable () -> Void
    ) {
        self.stream = stream
        self.registry = registry
        self.memory = memory
        self.handlers = handlers
        self.time = time
        self.meter = meter
        self.onGap = onGap
    }

    /// Whether this node is listed as live and has applied all purges from before that.
    var isTakingPart: Bool { state.withLock { $0.isReady } && registry.isLive }

    /// The identity of the stream that is followed; nil before it is known.
    var streamIdentity: String? { state.withLock { $0.followed } }

    /// Has the node catch up before it takes part again: it was not listed as live for a while.
    func fallBehind() {
        state.withLock { $0.isReady = false }
    }

    /// Has the node catch up on a new connection of the stream: the server may be another one, or may have lost entries.
    func connected() {
        state.withLock { $0.connections += 1 }
    }

    // MARK: Purges of this node

    /// Remembers a purge that this node added to the stream.
    func noteOwn(_ id: StreamID, _ scope: ClusterPurge) {
        state.withLock { state in
            state.own.append((id, scope))
            if state.own.count > Self.ownLimit { state.own.removeFirst(Self.ownLimit / 2) }
        }
        meter.update { $0.purgesAdded += 1 }
    }

    /// Applies a purge here without waiting for its turn in the stream, in which it is applied again.
    ///
    /// - Returns: Nil if the purge is not durable.
    func applyNow(_ id: StreamID, _ scope: ClusterPurge) async -> PurgeCounts? {
        history.insert(id, scope)
        return await handlers.purgeLocalCache(scope)
    }

    /// Applies a purge here, and remembers it until the stream has it.
    func applyAlone(_ scope: ClusterPurge) async -> PurgeCounts {
        _ = await load()
        // Saved first: a crash between the two leaves a purge that is applied on return, not one that is forgotten.
        await remember(scope)
        return await handlers.purgeLocalCache(scope) ?? PurgeCounts(purged: 0, bytes: 0)
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
        guard await loadOrGiveUp() else { throw .unavailable("the file of purges cannot be read") }
        try await registry.register(stream.commands)
        try await catchUp()
        try await addPending()
        state.withLock { $0.isReady = true }
        onReady()
        defer { fallBehind() }
        while !Task.isCancelled, isTakingPart, state.withLock({ $0.connections == connection }) {
            try await applyEntries(try await stream.newEntries(after: history.position))
            try await addPending()
        }
    }

    /// Applies what is in the stream and was not applied here.
    private func catchUp() async throws(RedisError) {
        let first = try await stream.oldest()
        let identity = first.text("s") ?? ""
        let last = try await stream.latest() ?? first
        let saved = state.withLock { $0.saved }
        // The first entry of a stream that was never trimmed is its own beginning.
        let isWhole = first.isGenesis
        let reaches = saved.stream == identity && (isWhole || first.id <= saved.position)
        let own = state.withLock { $0.own }
        let lost = saved.stream == identity ? try await stream.lost(among: own) : own
        // A server that restarts may lose the latest entries, and a replica that takes over may have others in their place.
        let hasChanged = saved.stream != identity || last.id < max(saved.position, history.position) || !lost.isEmpty
        let isKnown = reaches && !hasChanged && state.withLock { $0.followed } == identity
        if !isKnown {
            // Where everything is revalidated, only purges with callers that may still wait have to be applied.
            let recent = last.id.earlier(by: Self.recentMilliseconds)
            // Others may have been added since the first one that was lost. To apply a purge twice does no harm.
            let firstLost = lost.map(\.id).min().map { $0.earlier(by: Self.recentMilliseconds) }
            var known = min(saved.position, last.id, firstLost ?? last.id)
            // The clock of a server that has taken over may be behind: its entries in place of those that were lost may have ids
            // before the position.
            if hasChanged { known = known.earlier(by: Self.objectMilliseconds) }
            history.reset(reach: isWhole ? .zero : first.id, position: reaches ? known : recent)
        }
        state.withLock { $0.followed = identity }
        if !reaches {
            // A node that has never followed a stream has nothing to report, but may have a cache from before.
            if !saved.stream.isEmpty {
                meter.update { $0.revalidations += 1 }
                onGap()
            }
            await handlers.revalidateEverything()
        }
        // A node that has followed a stream may have missed any of them.
        let firstObject = saved.stream.isEmpty ? last.id.earlier(by: Self.objectMilliseconds) : .zero
        var position = isKnown ? history.position : nil
        while true {
            let page = try await stream.page(after: position)
            try await applyEntries(page, objectsAfter: reaches ? nil : firstObject)
            guard page.count == PurgeStream.pageSize, let last = page.last else { break }
            position = last.id
        }
        // A position in another stream says nothing about them.
        let volatile = state.withLock { state in
            guard saved.stream != identity else { return [ClusterPurge]() }
            defer { state.volatile = VolatilePurges() }
            return state.volatile.all.map(\.scope)
        }
        await save { saved in
            saved.stream = identity
            saved.position = history.position
            for scope in lost.map(\.scope) + volatile { saved.append(scope) }
        }
        state.withLock { state in
            state.own.removeAll { purge in lost.contains { $0.id == purge.id } }
        }
    }

    /// Applies entries in order, acknowledges those that are durable, and saves the position, also if the acknowledgement fails.
    ///
    /// - Parameter objectsAfter: Purges of objects after this one are applied although the position is later.
    private func applyEntries(_ entries: [StreamEntry], objectsAfter: StreamID? = nil) async throws(RedisError) {
        var durable: [(id: StreamID, counts: PurgeCounts)] = []
        let hasRecovered = await retryVolatile()
        let start = history.position
        for entry in entries where !entry.isGenesis {
            guard let scope = entry.scope else {
                // A purge that cannot be read may cover anything.
                history.insert(entry.id, .all)
                await handlers.revalidateEverything()
                history.advance(to: entry.id)
                continue
            }
            history.insert(entry.id, scope)
            if entry.id <= start {
                if case .object = scope, let objectsAfter, entry.id > objectsAfter { _ = await applyPurge(scope, entry.id) }
                continue
            }
            let counts = await applyPurge(scope, entry.id)
            history.advance(to: entry.id)
            meter.update { metrics in
                metrics.purgesApplied += 1
                metrics.purgeLag = .milliseconds(max(0, time.wallClock - Int64(clamping: entry.id.milliseconds)))
            }
            if let counts { durable.append((entry.id, counts)) }
        }
        if let last = entries.last { history.advance(to: last.id) }
        var failure: RedisError?
        do throws(RedisError) {
            // Before the write to disk, for which no caller has to wait. Only recent purges can have a caller.
            try await stream.acknowledge(durable.suffix(100))
        } catch {
            failure = error
        }
        if history.position != start || hasRecovered {
            let position = history.position
            await save { $0.position = position }
        }
        if let failure { throw failure }
    }

    /// Applies a purge of the stream. Returns nil if it is not durable.
    private func applyPurge(_ scope: ClusterPurge, _ id: StreamID) async -> PurgeCounts? {
        let counts = await handlers.purgeLocalCache(scope)
        if counts == nil { state.withLock { $0.volatile.append(id, scope) } }
        return counts
    }

    /// Applies purges again that are not durable yet, until one fails. To apply a purge twice does no harm.
    ///
    /// - Returns: Whether some are durable now.
    private func retryVolatile() async -> Bool {
        let volatile = state.withLock { $0.volatile.all }
        for (index, purge) in volatile.enumerated() {
            guard await handlers.purgeLocalCache(purge.scope) != nil else { return index > 0 }
            state.withLock { $0.volatile.remove(purge.id) }
        }
        return !volatile.isEmpty
    }

    /// Adds the purges that were made alone. They are then applied again with all others.
    private func addPending() async throws(RedisError) {
        while true {
            let batch = state.withLock { state in
                let batch = Array(state.saved.pending.prefix(Self.batchSize))
                state.sending = batch.count
                return batch
            }
            defer { state.withLock { $0.sending = 0 } }
            if batch.isEmpty { return }
            let (ids, failure) = try await stream.add(batch, to: streamIdentity ?? "")
            for (id, scope) in zip(ids, batch) { noteOwn(id, scope) }
            let count = ids.count
            if count > 0 { await save { $0.pending.removeFirst(count) } }
            if let failure { throw failure }
        }
    }

    // MARK: State on disk

    /// Loads the state. Returns false if it cannot be read at the moment.
    private func load() async -> Bool {
        await saving.run {
            guard !state.withLock({ $0.isLoaded }) else { return true }
            guard let loaded = await memory.load() else { return false }
            let saved = state.withLock { state in
                let madeMeanwhile = state.saved.pending
                state.saved = loaded
                for scope in madeMeanwhile { state.saved.append(scope) }
                state.isLoaded = true
                return state.saved
            }
            meter.update { $0.purgesPending = Int64(saved.pending.count) }
            return true
        }
    }

    /// Loads the state, or goes on without it after ``maxLoads`` attempts. Returns false if another attempt is due.
    private func loadOrGiveUp() async -> Bool {
        if await load() { return true }
        return state.withLock { state in
            state.failedLoads += 1
            if state.failedLoads >= Self.maxLoads { state.isLoaded = true }
            return state.isLoaded
        }
    }

    private func save(_ change: @Sendable (inout SavedPurges) -> Void) async {
        await saving.run {
            let saved = state.withLock { state in
                change(&state.saved)
                return state.saved
            }
            await store(saved)
        }
    }

    /// Remembers a purge until the stream has it. Writes only this purge where the others are on disk.
    private func remember(_ scope: ClusterPurge) async {
        await saving.run {
            let (change, saved, isLoaded, isStored) = state.withLock { state in
                let change = state.saved.append(scope, behind: state.sending)
                return (change, state.saved, state.isLoaded, state.isStored)
            }
            // The file may have others, which a write would replace.
            guard isLoaded else {
                meter.update { $0.purgesPending = Int64(saved.pending.count) }
                return
            }
            if isStored, change == .covered, await memory.isCurrent() { return }
            if isStored, change == .appended, await memory.append(scope) {
                meter.update { $0.purgesPending = Int64(saved.pending.count) }
                return
            }
            await store(saved)
        }
    }

    /// Writes the whole state. Only the holder of ``saving`` may call it.
    private func store(_ saved: SavedPurges) async {
        meter.update { $0.purgesPending = Int64(saved.pending.count) }
        var saved = saved
        if let first = state.withLock({ $0.volatile.first }) { saved.position = min(saved.position, first.previous) }
        let isStored = await memory.save(saved)
        state.withLock { $0.isStored = isStored }
    }
}
