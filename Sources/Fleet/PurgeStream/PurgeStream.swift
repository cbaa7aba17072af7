internal import Store
internal import SystemIO

/// The purge stream in Redis over one connection: its commands and the meaning of their replies. Thread-safe.
struct PurgeStream: Sendable {
    /// The number of entries in a page that is not the last.
    static let pageSize = 500
    /// The bound of the stream, in entries.
    private static let maxEntries = 10_000
    /// How long acknowledgements of a purge are kept, so that its progress is known.
    static let acknowledgementTime: Duration = .seconds(3600)

    let context: ClusterContext
    private var keys: ClusterKeys { context.keys }
    private var longLimit: Duration { context.timings.longLimit }

    // MARK: Reading

    /// Returns the oldest entry. Creates the stream if it does not exist.
    ///
    /// - Parameter now: The earliest possible time in milliseconds of the cluster's clock. Work that begins from now on is not
    ///   earlier.
    func oldest(at now: Int64) async throws(RedisError) -> StreamEntry {
        for id in ["0-1", "*"] {
            if let first = try await range("XRANGE", "-", "+", count: 1).first { return first }
            // Fails if another node was faster, or if a stream was emptied, which then continues with later ids.
            let identity = Hex.encode(UInt128.random(in: .min ... .max))
            _ = try await context.run(
                RedisCommand(.statusOrBytes, ["XADD", keys.purges, id, "k", StreamEntry.genesis, "s", identity, "t", now]))
        }
        guard let first = try await range("XRANGE", "-", "+", count: 1).first else {
            throw .nonsense("a stream without entries after one was added")
        }
        return first
    }

    /// Returns at most ``pageSize`` entries in order.
    ///
    /// - Parameter position: Nil for the beginning.
    func page(after position: StreamID?) async throws(RedisError) -> [StreamEntry] {
        try await range("XRANGE", position.map { "(\($0)" } ?? "-", "+", count: Self.pageSize)
    }

    /// Waits for entries after this position.
    ///
    /// - Returns: The next entries in order, none if none arrived within ``ClusterTimings/blockTime``, and whether the stream
    ///   may have been trimmed beyond the position, so that entries are lost.
    func newEntries(after position: StreamID) async throws(RedisError) -> (entries: [StreamEntry], isTrimmed: Bool) {
        let time = context.timings.blockTime
        let command = RedisCommand(
            .arrayOrNone, ["XREAD", "COUNT", "100", "BLOCK", time, "STREAMS", keys.purges, position.description])
        let entries = try StreamEntry.read(try await context.run(command, within: time + longLimit))
        guard !entries.isEmpty else { return ([], false) }
        // Checked after the read: if the oldest entry is not later than the position now, it was not during the read.
        guard let first = try await range("XRANGE", "-", "+", count: 1).first else {
            throw .nonsense("the purge stream is gone")
        }
        return (entries, !first.isGenesis && first.id > position)
    }

    /// Returns the entry of a purge by its token, or by its own id, as nodes of older versions report it; nil if the stream does
    /// not contain it.
    func entry(_ name: String) async throws(RedisError) -> StreamID? {
        if let id = StreamID(name) {
            let entry = try await range("XRANGE", id.description, id.description, count: 1).first
            return entry?.isGenesis == true ? nil : entry?.id
        }
        var end = "+"
        while true {
            let page = try await range("XREVRANGE", end, "-", count: Self.pageSize)
            if let entry = page.first(where: { $0.text("i") == name }) { return entry.id }
            guard page.count == Self.pageSize, let last = page.last else { return nil }
            end = "(\(last.id)"
        }
    }

    private func range(_ name: String, _ from: String, _ to: String, count: Int) async throws(RedisError) -> [StreamEntry] {
        let command = RedisCommand(.array, [name, keys.purges, from, to, "COUNT", count])
        return try StreamEntry.entries(try await context.run(command, within: longLimit))
    }

    // MARK: Adding

    /// Adds purges in order, unless the stream does not exist.
    ///
    /// - Parameters:
    ///   - identity: The identity of the stream that the node follows.
    ///   - isLate: Whether the purges were accepted a while ago.
    /// - Returns: The entries of the first purges, and why the next purge was not added. Later purges may have been added.
    func add(
        _ purges: [Purge], to identity: String, isLate: Bool
    ) async throws(RedisError) -> (ids: [StreamID], failure: RedisError?) {
        let additions = purges.map { purge in
            let fields: [any RedisArgument] = [
                "k", purge.scope.kind, "v", purge.scope.argument, "s", identity, "n", context.nodeName, "t", purge.madeAt,
                "i", purge.token,
            ]
            return RedisCommand(
                .statusOrBytes,
                ["XADD", keys.purges, "NOMKSTREAM", "MAXLEN", "~", Self.maxEntries, "*"] + fields + (isLate ? ["a", "1"] : []))
        }
        var ids: [StreamID] = []
        for reply in try await context.run(additions, within: purges.count == 1 ? nil : longLimit) {
            do throws(RedisError) {
                let id = try reply.optionalBytes().flatMap { StreamID(String(decoding: $0, as: UTF8.self)) }
                guard let id else { throw .nonsense("the purge stream is gone") }
                ids.append(id)
            } catch {
                return (ids, error)
            }
        }
        return (ids, nil)
    }

    // MARK: Acknowledging

    /// Acknowledges entries that this node has applied, to the nodes that wait for them.
    ///
    /// - Parameter now: The server's clock in milliseconds, from which the ids are made. Other clocks may differ by hours.
    func acknowledge(
        _ applied: some Sequence<(id: StreamID, counts: PurgeCounts)>, at now: Int64
    ) async throws(RedisError) {
        let oldest = Self.oldestAcknowledged(at: now)
        let acknowledgements = applied.filter { $0.id.milliseconds >= oldest }.flatMap { id, counts in
            let key = keys.acknowledgements(id)
            return [
                RedisCommand(.integer, ["HSET", key, context.nodeName, "\(counts.purged) \(counts.bytes)"]),
                RedisCommand(.integer, ["PEXPIRE", key, Self.acknowledgementTime]),
                RedisCommand(.integer, ["PUBLISH", keys.channel, ClusterMessage.acknowledged(id).bytes]),
            ]
        }
        if acknowledgements.isEmpty { return }
        for reply in try await context.run(acknowledgements, within: longLimit) { try reply.succeeded() }
    }

    /// The milliseconds of the oldest entries whose acknowledgements are kept.
    static func oldestAcknowledged(at now: Int64) -> UInt64 { UInt64(max(0, now - acknowledgementTime.milliseconds)) }

    /// Returns what each node that has applied an entry removed, by node name.
    func acknowledgements(of id: StreamID) async throws(RedisError) -> [String: PurgeCounts] {
        let hash = try await context.run(RedisCommand(.array, ["HGETALL", keys.acknowledgements(id)])).fields()
        var counts: [String: PurgeCounts] = [:]
        for (node, value) in hash {
            let numbers = try value.text().split(separator: " ").map { Int64($0) }
            guard numbers.count == 2, let purged = numbers[0], let bytes = numbers[1], purged >= 0, bytes >= 0 else {
                throw .nonsense("an acknowledgement without two numbers")
            }
            counts[node] = PurgeCounts(purged: purged, bytes: bytes)
        }
        return counts
    }
}

extension StreamEntry {
    /// The kind of the entry that begins a stream.
    fileprivate static let genesis = "genesis"

    /// Whether this is the entry that begins a stream, and not a purge.
    var isGenesis: Bool { text("k") == Self.genesis }

    /// The purge; nil if it cannot be read.
    ///
    /// An entry without a token comes from a node of an older version, which added it when the purge was accepted.
    var purge: Purge? {
        guard let scope = text("k").flatMap({ PurgeScope(kind: $0, argument: text("v") ?? "") }) else { return nil }
        return Purge(
            scope, madeAt: time ?? min(Int64(clamping: id.milliseconds), Self.maxTime), isLocal: false,
            token: text("i") ?? "entry \(id)", entry: id.description)
    }

    /// When the purge was accepted, at the latest, or the stream was begun, at the earliest, in milliseconds of the cluster's clock;
    /// nil in entries of older versions.
    var time: Int64? { text("t").flatMap { Int64($0) }.flatMap { (0...Self.maxTime).contains($0) ? $0 : nil } }

    /// Whether the purge was accepted a while before its entry was added.
    var isLate: Bool { text("a") != nil }

    /// The largest plausible time in milliseconds since 1970.
    private static let maxTime: Int64 = 1 << 53
}
