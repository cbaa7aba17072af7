package import Store
internal import Synchronization
internal import SystemIO

/// Purges the whole cluster: adds an entry to the purge stream, and waits until every live node has acknowledged it. Follows the
/// stream: applies every purge, acknowledges it, and remembers the position.
///
/// Every entry, whether new, late or redelivered, is applied in the same way: by its token, and by the time at which its purge
/// was accepted. It removes only what may have been requested from an origin, or uploaded, up to that time.
///
/// A node takes part in the cluster only after it was listed as live and then applied everything in the stream. The order
/// matters: a purge counts the nodes that are listed after its entry was added, and a node that is listed later finds the
/// entry.
package final class ClusterPurger: Sendable {
    /// An entry of the stream.
    private struct ReadEntry {
        let id: StreamID
        /// Nil if the entry is no purge, or one that cannot be read.
        let purge: Purge?
        /// Whether this node learned of the purge from the entry.
        let isNew: Bool
    }

    private struct State {
        /// The position in the ledger once it has recorded everything; nil before it was read.
        var saved: PurgePosition?
        /// All purges up to here are in effect.
        var position = StreamID.zero
        /// What was read and waits for the disk, in order.
        var unwritten: [ReadEntry] = []
        /// The number of transactions with earlier entries that the disk has not answered yet.
        var writing = 0
        /// Entries on the disk whose acknowledgements were not sent yet, with what their purges removed.
        var unacknowledged: [(id: StreamID, counts: PurgeCounts)] = []
        /// The latest entries whose transaction has failed. The cache tries again to write their purges.
        var failed: [StreamID] = []
        /// The latest known correction of the server's clock, in milliseconds.
        var correction: Int64 = 0
        /// The number of connections of the stream so far.
        var connections = 0
        /// The number of times that ``saved`` could not be read.
        var failedLoads = 0
        /// The name of the process that used this disk before, which may still be listed as live.
        var formerName: String?
        var isReady = false
        /// Tokens of this node's purges that their callers are adding to the stream.
        var sending: Set<String> = []
        /// Tokens of purges that this process has added to the stream and that the ledger, or the cache, has as pending.
        var sentUnrecorded: Set<String> = []
        /// What this node's latest purges removed, by token, until their entries are passed; nil if the purge is not durable.
        var own: [String: PurgeCounts?] = [:]
        var onLatePurge: @Sendable (PurgeScope) -> Void = { _ in }

        var isWritten: Bool { unwritten.isEmpty && writing == 0 }
    }

    private static let lookInterval: Duration = .milliseconds(100)
    /// The number of pending purges that are added to the stream at once.
    private static let batchSize = 200
    private static let ownLimit = 4096
    private static let failedLimit = 4096
    /// How long entries wait for the disk before the next ones are read.
    private static let writeLimit: Duration = .seconds(1)
    /// How long they wait if too many do.
    private static let fullLimit: Duration = .seconds(5)
    /// The number of latest purges that are added again if the stream has lost them.
    private static let repeatedLimit = 256
    /// The number of attempts to read the position, after which it counts as lost.
    private static let maxLoads = 10

    private let state = Mutex(State())
    private let waiters = Mutex<[StreamID: AsyncSignal]>([:])
    private let writes = Waiters()
    private let isSaving = Atomic(false)
    private let context: ClusterContext
    /// The stream over the connection of commands.
    private let stream: PurgeStream
    /// The stream over its own connection, because reads wait for entries.
    private let followed: PurgeStream
    private let registry: NodeRegistry
    private let cache: Cache
    private let disk: any BlockingWork
    private let handlers: ClusterHandlers
    private let unwrittenLimit: Int
    private var meter: ClusterMeter { context.meter }
    private var time: TimeSource { context.time }

    /// - Parameters:
    ///   - commands: The connection for reads that wait for entries.
    ///   - unwrittenLimit: The number of new purges that wait for the disk, beyond which one of everything stands for more.
    init(
        _ context: ClusterContext, reading commands: any RedisCommands, _ registry: NodeRegistry, _ cache: Cache,
        _ disk: any BlockingWork, _ handlers: ClusterHandlers, unwrittenLimit: Int = 10_000
    ) {
        self.unwrittenLimit = unwrittenLimit
        self.context = context
        stream = PurgeStream(context: context)
        var context = context
        context.commands = commands
        followed = PurgeStream(context: context)
        self.registry = registry
        self.cache = cache
        self.disk = disk
        self.handlers = handlers
    }

    /// Restores what a former process has saved of the cluster: its clock and its live nodes. Blocks.
    func restore() {
        let former = try? cache.ledger.read { try (PurgeTables($0).nodes(), PurgeTables($0).clock(ofBoot: ClusterTime.boot)) }
        guard let (nodes, clock) = former else { return }
        registry.expect(nodes.dropFirst())
        guard let clock else { return }
        cache.sharedClock.restore(clock.sample)
        state.withLock { $0.formerName = nodes.first }
    }

    /// Queries the cluster's time.
    func askTime(_ context: ClusterContext) async throws(RedisError) {
        let correction = try await ClusterTime.ask(context, cache.sharedClock)
        state.withLock { $0.correction = correction }
    }

    /// The server's own clock in milliseconds, from which it makes the ids of entries. It may be hours off.
    private var serverClock: Int64 { cache.sharedClock.earliest - state.withLock(\.correction) }

    /// Whether this node is listed as live and has applied all purges from before that.
    var isTakingPart: Bool { state.withLock { $0.isReady } && registry.isLive }

    /// The identity of the stream that was followed last; empty before it is known.
    private var streamIdentity: String { state.withLock { $0.saved?.stream ?? "" } }

    /// All purges of the stream up to here are in effect. Those that are acknowledged are on the disk, too.
    var position: StreamID { state.withLock(\.position) }

    /// Makes the node catch up before it takes part again, because it was not listed as live for a while.
    func fallBehind() {
        state.withLock { $0.isReady = false }
    }

    /// Makes the node catch up on a new connection of the stream: the server may be another one, or may have lost entries.
    func connected() {
        state.withLock { $0.connections += 1 }
        registry.reconnected()
    }

    /// See ``Cluster/start(onLatePurge:)``.
    func reportLatePurges(to onLatePurge: @escaping @Sendable (PurgeScope) -> Void) {
        state.withLock { $0.onLatePurge = onLatePurge }
    }

    // MARK: Purges of this node

    /// Wakes the caller of a purge that a node has acknowledged.
    func received(_ id: StreamID) {
        waiters.withLock { $0[id] }?.signal()
    }

    /// Purges all nodes. Returns when every live node has applied the purge, or after a timeout. Without the server, returns
    /// once this node has applied it; the other nodes follow when the server is back.
    ///
    /// - Parameter limit: The longest wait; nil for ``ClusterTimings/purgeLimit``.
    package func broadcast(_ scope: PurgeScope, within limit: Duration? = nil) async -> PurgeReport {
        let end = time.now + (limit ?? context.timings.purgeLimit)
        let (purge, own, entry) = await make(scope)
        guard let id = entry else {
            // The entry does not exist yet, and nodes may have joined since the latest lookup.
            return PurgeReport(
                counts: own ?? PurgeCounts(), nodes: registry.knownNodes.count, acknowledged: 0, id: purge.token)
        }
        let wakeup = AsyncSignal()
        waiters.withLock { $0[id] = wakeup }
        defer { waiters.withLock { $0[id] = nil } }
        var nodes: Set<String>?
        var counts: [String: PurgeCounts] = [:]
        while true {
            do throws(RedisError) {
                // Only nodes that are listed after the entry was added may be left out: they find it when they catch up.
                nodes = Set(try await registry.liveNodes(context)).union([registry.name])
                counts = try await stream.acknowledgements(of: id)
            } catch {
                // The other nodes find the entry when the server is back.
                if error != .timedOut { break }
            }
            if nodes?.isSubset(of: counts.keys) == true || time.now >= end { break }
            await wakeup.wait(for: min(Self.lookInterval, end - time.now), time)
            // Cancellation of the caller does not end the purge, but must not make this loop spin.
            if Task.isCancelled { break }
        }
        if counts[registry.name] == nil { counts[registry.name] = own }
        // Without a lookup of the live nodes, this node may be the only one that has applied the purge.
        let isCertain = nodes != nil
        let live = nodes ?? Set(registry.knownNodes).union(counts.keys).union([registry.name])
        return PurgeReport(
            counts: counts.values.reduce(into: PurgeCounts()) { $0.add($1) }, nodes: live.count,
            acknowledged: isCertain ? live.intersection(counts.keys).count : 0,
            id: purge.token)
    }

    /// Returns the progress of a purge of any node; nil if the purge is unknown or more than an hour old.
    ///
    /// - Parameter name: ``PurgeReport/id``.
    package func progress(of name: String) async throws(RedisError) -> PurgeReport? {
        // A stream that was lost gets the purge again, as another entry.
        let known = await read { try PurgeTable($0).purge(withToken: name) } ?? nil
        let isPending = known.map { $0.entry == nil } ?? cache.purges.isKnown(name)
        var entry = known?.entry.flatMap { StreamID($0) }
        do throws(RedisError) {
            if entry == nil { entry = try await stream.entry(name) }
        } catch {
            guard isPending else { throw error }
        }
        guard let entry else {
            guard isPending else { return nil }
            return PurgeReport(counts: PurgeCounts(), nodes: registry.knownNodes.count, acknowledged: 0, id: name)
        }
        guard entry.milliseconds >= PurgeStream.oldestAcknowledged(at: serverClock) else { return nil }
        let live = try await registry.liveNodes(context)
        let nodes = registry.liveNodes
        let counts = try await stream.acknowledgements(of: entry)
        // A node that joined after the entry was added has not acknowledged it.
        let acknowledged = nodes.count { counts[$0.name] != nil || $0.joined >= entry }
        return PurgeReport(
            counts: counts.values.reduce(into: PurgeCounts()) { $0.add($1) }, nodes: live.count, acknowledged: acknowledged,
            id: name)
    }

    /// Applies a purge on this node, and adds it to the stream. If the server is unreachable or has lost the stream, the purge
    /// stays pending, and the loop adds it later.
    ///
    /// - Returns: The purge, what it removed here, or nil if that is not durable, and its entry.
    func make(_ scope: PurgeScope) async -> (purge: Purge, counts: PurgeCounts?, entry: StreamID?) {
        let purge = cache.newPurge(scope, isShared: true)
        // Inserted before the row exists, so that the loop does not add the purge as well.
        state.withLock { _ = $0.sending.insert(purge.token) }
        defer { state.withLock { _ = $0.sending.remove(purge.token) } }
        var counts: PurgeCounts?
        do throws(CacheError) {
            let token = Hex.encode(UInt128.random(in: .min ... .max))
            counts = try await cache.purge([purge]) { try PurgeTable($0).boundPending(token: token) }
        } catch {
            // The purge applies in memory only, and is not acknowledged.
        }
        state.withLock { state in
            if state.own.count >= Self.ownLimit { state.own = [:] }
            state.own[purge.token] = .some(counts)
        }
        var entry: StreamID?
        if isTakingPart { entry = try? await stream.add([purge], to: streamIdentity, isLate: false).ids.first }
        if entry != nil { state.withLock { _ = $0.sentUnrecorded.insert(purge.token) } }
        await noteEntries(entry.map { [($0, purge)] } ?? [])
        return (purge, counts, entry)
    }

    /// Records the entries of purges that this node has added to the stream. If the record is lost, the purges are added again,
    /// which does no harm.
    private func noteEntries(_ entries: [(StreamID, Purge)]) async {
        if !entries.isEmpty {
            meter.update { $0.purgesAdded += Int64(entries.count) }
            await cache.record { database in
                for (id, purge) in entries { try PurgeTable(database).setEntry(id.description, ofToken: purge.token) }
            }
        }
        await countPending()
    }

    // MARK: Following

    /// Catches up, then follows the stream until an error or until the node falls behind. Purges take effect as they arrive; the
    /// node acknowledges them, and begins to take part, when the disk has answered.
    ///
    /// - Parameter onReady: Called when the node begins to take part in the cluster.
    func follow(_ onReady: @Sendable () -> Void = {}) async throws(RedisError) {
        let connection = state.withLock { state in
            state.isReady = false
            return state.connections
        }
        let saved = try await load()
        // The time comes first: what is stored from now on is compared with purges by this time.
        try await askTime(followed.context)
        try await registry.register(followed.context)
        try await catchUp(saved)
        try await addPending()
        var hasJoined = false
        defer { fallBehind() }
        while true {
            if !hasJoined, state.withLock(\.isWritten) {
                guard try await registry.join(followed.context, at: position) else { return }
                hasJoined = true
                state.withLock { $0.isReady = true }
                // This node has applied the purges that the former process has not.
                if let name = state.withLock({ $0.formerName.take() }), name != registry.name {
                    await registry.remove(name, followed.context)
                }
                save {}
                onReady()
            }
            guard !Task.isCancelled, hasJoined ? isTakingPart : registry.isRegistered,
                state.withLock({ $0.connections == connection })
            else { return }
            let (entries, isTrimmed) = try await followed.newEntries(after: position)
            if isTrimmed { await missed(.certain, isReported: true) }
            try await apply(entries, areMissed: false)
            try await addPending()
        }
    }

    /// Waits until the disk has written all that was read.
    func waitForWrites() async {
        await writes.wait { state.withLock(\.isWritten) }
    }

    /// Applies the stream's entries that this node does not know, and marks purges that the stream has lost to be added again.
    private func catchUp(_ saved: PurgePosition) async throws(RedisError) {
        let first = try await followed.oldest(at: cache.sharedClock.earliest)
        let identity = first.text("s") ?? ""
        let isSame = saved.stream == identity
        let reaches = isSame && (first.isGenesis || first.id <= saved.id)
        if !reaches {
            // A trimmed stream has lost entries that this node has never seen, whichever stream it followed before.
            let gap: MissedPurges = isSame || !first.isGenesis ? .certain : .possible
            await missed(gap, isReported: !saved.stream.isEmpty, until: first.isGenesis ? first.time ?? 0 : .max)
        }
        // Read before the pages, because purges added meanwhile are not lost.
        let sent = await read { try PurgeTable($0).latestSent(limit: Self.repeatedLimit) } ?? []
        var tokens: Set<String> = []
        var last = first.id
        var isPage = true
        var passesPosition = first.isGenesis || !reaches
        while isPage {
            let page = try await followed.page(after: tokens.isEmpty && last == first.id ? nil : last)
            tokens.formUnion(page.compactMap { $0.purge?.token })
            passesPosition = passesPosition || page.contains { $0.id == saved.id }
            // The position is not saved until everything is applied, so that a restart finds the gap again.
            try await apply(
                page, areMissed: !saved.stream.isEmpty, knownAfter: isSame ? saved.id : .zero, savingPosition: false)
            last = page.last?.id ?? last
            isPage = page.count == PurgeStream.pageSize
        }
        // The server has lost the stream's end, so entries with ids before the position may be new, and may have been trimmed.
        if !passesPosition { await missed(.certain, isReported: true) }
        let lost = sent.filter { purge in
            guard !tokens.contains(purge.token) else { return false }
            // A trimmed purge is not lost.
            let isTrimmed = isSame && !first.isGenesis && purge.entry.flatMap { StreamID($0) }.map { $0 < first.id } ?? false
            return !isTrimmed
        }
        let reached = PurgePosition(stream: identity, id: last)
        // The position must not be on the disk before the purges, and the node joins after what was missed is.
        writeNext(isRequired: true)
        state.withLock { state in
            // Another stream, or one that has lost its end, may be at an earlier position.
            (state.saved, state.position) = (reached, last)
            state.sentUnrecorded.formIntersection(tokens)
        }
        await cache.record { database in
            try PurgeTables(database).setPosition(reached)
            for purge in lost { try PurgeTable(database).setEntry(nil, ofToken: purge.token) }
        }
    }

    /// - Parameter end: When the stream that this node follows now was begun, if it was not trimmed: purges may be missed until then.
    private func missed(_ gap: MissedPurges, isReported: Bool, until end: Int64 = .max) async {
        if isReported {
            meter.update { $0.revalidations += 1 }
            handlers.onEvent(.revalidating)
        }
        // Records of other nodes from before the gap's end may be older than a purge that this node does not know. They outlive a
        // stream that was removed.
        let time = min(cache.sharedClock.latest, end)
        cache.purges.distrust(until: time)
        await cache.record { try PurgeTable($0).raiseFloor(toTime: time) }
        await handlers.revalidate(gap)
    }

    /// Lets the purges of entries take effect, and acknowledges what is on the disk. Waits for a disk that stalls only once, for
    /// ``writeLimit``.
    ///
    /// - Parameters:
    ///   - areMissed: Whether the entries were added while this node did not follow the stream. Known entries are not reported.
    ///   - acknowledged: Known entries up to this one were acknowledged before.
    ///   - savingPosition: Whether the position is recorded.
    private func apply(
        _ entries: [StreamEntry], areMissed: Bool, knownAfter acknowledged: StreamID = .zero, savingPosition: Bool = true
    ) async throws(RedisError) {
        guard let last = entries.last else { return try await acknowledge() }
        if entries.contains(where: { !$0.isGenesis && $0.purge == nil }) {
            // A purge that cannot be read may cover anything.
            await handlers.revalidate(.certain)
        }
        var read: [ReadEntry] = []
        for entry in entries {
            let purge = entry.purge
            let isNew = purge.map { cache.announce($0) } ?? false
            if isNew || entry.id > acknowledged { read.append(ReadEntry(id: entry.id, purge: purge, isNew: isNew)) }
            if let purge, isNew, areMissed || entry.isLate { state.withLock(\.onLatePurge)(purge.scope) }
        }
        meter.update { $0.purgesApplied += Int64(read.count(where: \.isNew)) }
        let position = PurgePosition(stream: streamIdentity, id: last.id)
        let (wasWritten, isFull) = state.withLock { state in
            if savingPosition { (state.saved, state.position) = (position, last.id) }
            defer { state.unwritten += read }
            return (state.isWritten, state.unwritten.count(where: \.isNew) > unwrittenLimit)
        }
        writeNext()
        if wasWritten || isFull {
            let limit = isFull ? Self.fullLimit : Self.writeLimit
            await writes.wait(within: limit, by: time) { state.withLock(\.isWritten) }
        }
        if !state.withLock(\.isWritten) {
            cache.forgetHotObjects(of: read.filter(\.isNew).compactMap(\.purge))
            if isFull {
                // It covers what arrives until it is written, too.
                _ = try? await cache.purge(.all)
                await waitForWrites()
            }
        }
        try await acknowledge()
    }

    /// Has the disk write all entries that wait for it, with the position, in one transaction. The next ones follow.
    ///
    /// - Parameter isRequired: Whether a transaction is queued even if earlier ones are not written, or no entry waits.
    private func writeNext(isRequired: Bool = false) {
        let next = state.withLock { state -> ([ReadEntry], PurgePosition?)? in
            guard isRequired || state.writing == 0 && !state.unwritten.isEmpty else { return nil }
            state.writing += 1
            defer { state.unwritten = [] }
            return (state.unwritten, state.saved)
        }
        guard let (read, position) = next else { return }
        // The row of a new purge has its entry.
        let passed = read.filter { !$0.isNew }.compactMap { entry in entry.purge.map { (entry.id.description, $0.token) } }
        cache.writeAnnounced(read.compactMap(\.purge)) { database in
            for (entry, token) in passed { try PurgeTable(database).setEntry(entry, ofToken: token) }
            if let position { try PurgeTables(database).setPosition(position) }
        } completion: { [self] result in
            state.withLock { state in
                state.writing -= 1
                var counts = (try? result.get()) ?? PurgeCounts()
                for entry in read {
                    guard let purge = entry.purge else { continue }
                    let own = state.own.removeValue(forKey: purge.token)
                    switch result {
                    case .success:
                        state.unacknowledged.append((entry.id, entry.isNew ? counts : own.flatMap(\.self) ?? PurgeCounts()))
                        if entry.isNew { counts = PurgeCounts() }
                    case .failure(.purgeNotDurable): state.failed = (state.failed + [entry.id]).suffix(Self.failedLimit)
                    case .failure: break
                    }
                }
            }
            writes.notify()
            writeNext()
        }
    }

    /// Acknowledges the entries that the disk has written.
    private func acknowledge() async throws(RedisError) {
        let written = state.withLock { state in
            if !state.failed.isEmpty, cache.unrecordedPurges.isEmpty {
                state.unacknowledged += state.failed.map { ($0, PurgeCounts()) }
                state.failed = []
            }
            return state.unacknowledged
        }
        try await followed.acknowledge(written, at: serverClock)
        // After an error, they are sent again.
        state.withLock { $0.unacknowledged.removeFirst(written.count) }
    }

    /// Adds the purges that the stream does not have, so that the other nodes apply them.
    private func addPending() async throws(RedisError) {
        while true {
            // If the ledger cannot be changed, purges that were added stay pending.
            let limit = Self.batchSize + state.withLock { $0.sentUnrecorded.count }
            let rows = await read { try PurgeTable($0).pending(limit: limit) } ?? []
            let pending = rows + cache.unrecordedPurges.filter { $0.entry == nil }
            let unsent = state.withLock { state in
                state.sentUnrecorded.formIntersection(pending.map(\.token))
                return pending.filter { !state.sentUnrecorded.contains($0.token) && !state.sending.contains($0.token) }
            }
            if unsent.isEmpty { break }
            let batch = Array(unsent.prefix(Self.batchSize))
            let (ids, failure) = try await followed.add(batch, to: streamIdentity, isLate: true)
            let added = Array(zip(ids, batch))
            state.withLock { $0.sentUnrecorded.formUnion(added.map(\.1.token)) }
            await noteEntries(added)
            if let failure { throw failure }
        }
        await countPending()
    }

    // MARK: The ledger

    /// Reads from the ledger; nil on failure.
    private func read<Result: Sendable>(_ body: @escaping @Sendable (SQLiteConnection) throws -> Result) async -> Result? {
        await disk.run { [cache] in try? cache.ledger.read(body) } ?? nil
    }

    /// Returns the saved position. An unreadable position counts as lost after ``maxLoads`` attempts.
    private func load() async throws(RedisError) -> PurgePosition {
        await countPending()
        if let saved = state.withLock(\.saved) { return saved }
        let found = await read { try PurgeTables($0).position() }
        return try state.withLock { state throws(RedisError) in
            if found == nil { state.failedLoads += 1 }
            guard let saved = found ?? (state.failedLoads >= Self.maxLoads ? PurgePosition() : nil) else {
                throw .unavailable("the position in the purge stream cannot be read")
            }
            state.saved = saved
            return saved
        }
    }

    /// Saves for the next process the state of the cluster's clock, the live nodes, and that this node takes part now. Returns at
    /// once if the disk has not saved an earlier state yet.
    func save() async {
        await withCheckedContinuation { continuation in save { continuation.resume() } }
    }

    private func save(_ completion: @escaping @Sendable () -> Void) {
        guard let sample = cache.sharedClock.saved, !isSaving.exchange(true, ordering: .relaxed) else {
            return completion()
        }
        let now = cache.sharedClock.monotonic
        let nodes = [registry.name] + registry.knownNodes.filter { $0 != registry.name }
        let work = { @Sendable [self] in
            try? cache.ledger.write(.normal) {
                try PurgeTables($0).setClock(sample, ofBoot: ClusterTime.boot, part: now, nodes: nodes)
            }
            isSaving.store(false, ordering: .relaxed)
            completion()
        }
        guard !disk.submit(work) else { return }
        isSaving.store(false, ordering: .relaxed)
        completion()
    }

    /// Counts the purges that the stream does not have.
    private func countPending() async {
        if let count = await read({ try PurgeTable($0).pendingCount() }) { meter.update { $0.purgesPending = count } }
    }
}
