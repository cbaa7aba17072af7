internal import Synchronization
internal import SystemIO

/// A live node, as its latest heartbeat describes it.
package struct LiveNode: Sendable, Equatable {
    package let name: String
    /// The position in the purge stream up to which it had applied all purges when it began to take part; zero before that.
    let joined: StreamID
    /// The position up to which it has applied all purges.
    package internal(set) var position: StreamID

    /// - Parameter value: What the node has written.
    init(_ name: String, _ value: [UInt8]) {
        self.name = name
        let parts = String(decoding: value.prefix(128), as: UTF8.self).split(separator: " ").map { StreamID(String($0)) }
        joined = parts.first.flatMap(\.self) ?? .zero
        position = parts.last.flatMap(\.self) ?? .zero
    }
}

/// The registry of live nodes: a set of names, and a key per node that expires without heartbeats. Any thread.
final class NodeRegistry: Sendable {
    private struct State {
        /// The moment before the latest successful heartbeat was sent. The server counts from a later moment.
        var lastBeat: Duration?
        var knownNodes: [String] = []
        /// Of the latest look.
        var live: [LiveNode] = []
        /// See ``LiveNode/joined``.
        var joined = StreamID.zero
        /// See ``LiveNode/position``.
        var position = StreamID.zero
        /// The nodes that were live before the connection was lost, and until when they count as live: the server may have forgotten them, and
        /// they do not know that yet.
        var expected: (names: Set<String>, end: Duration) = ([], .zero)
    }

    /// The largest number of names that are read from the list of nodes.
    private static let maxNodes = 10_000

    /// Takes dead nodes off the list, except for those that have come back since. Keys: the list, and the key of each node.
    /// Arguments: their names. Returns the number of nodes taken off.
    static let forget = RedisScript(
        .integer,
        """
        local count = 0
        for index = 2, #KEYS do
          if redis.call('EXISTS', KEYS[index]) == 0 then
            count = count + redis.call('SREM', KEYS[1], ARGV[index - 1])
          end
        end
        return count
        """)

    let name: String
    private let keys: ClusterKeys
    private let timings: ClusterTimings
    private let time: TimeSource
    private let state = Mutex(State())

    init(_ context: ClusterContext) {
        (name, keys, timings, time) = (context.nodeName, context.keys, context.timings, context.time)
    }

    /// Whether the server certainly lists this node as live.
    var isLive: Bool {
        state.withLock { state in state.lastBeat.map { time.now < $0 + timings.nodeLifetime } ?? false }
    }

    /// Whether the node was listed, and no heartbeat has failed to find it so since.
    var isRegistered: Bool { state.withLock { $0.lastBeat != nil } }

    /// The live nodes at the latest look; at least this one.
    var knownNodes: [String] { state.withLock { $0.knownNodes.isEmpty ? [name] : $0.knownNodes } }

    /// The live nodes at the latest look.
    var liveNodes: [LiveNode] { state.withLock(\.live) }

    /// Has the nodes that were live count as that until they would have noticed that they are not: the server may be another one.
    func reconnected() {
        state.withLock { state in
            state.expected = (Set(state.live.map(\.name)).union(state.expected.names), time.now + timings.nodeLifetime)
        }
    }

    /// Lists this node as live. Purges from now on wait for it.
    func register(_ commands: some RedisCommands) async throws(RedisError) {
        let start = time.now
        state.withLock { $0.joined = .zero }
        // The key first: other nodes take a name without a key off the list.
        let replies = try await commands.run(
            [beatCommand, RedisCommand(.integer, ["SADD", keys.nodes, name])], within: timings.commandLimit, time)
        for reply in replies { try reply.succeeded() }
        state.withLock { $0.lastBeat = start }
        // Purges that this node makes without the server count the others.
        _ = try? await liveNodes(commands, within: timings.commandLimit)
    }

    /// Tells the other nodes that this one begins to take part, with all purges up to a position applied.
    ///
    /// - Returns: See ``beat(_:at:)``.
    func join(_ commands: some RedisCommands, at position: StreamID) async throws(RedisError) -> Bool {
        state.withLock { $0.joined = position }
        return try await beat(commands, at: position)
    }

    /// Sends a heartbeat.
    ///
    /// - Parameter position: See ``LiveNode/position``.
    /// - Returns: Whether the node was still listed. Where it was not, purges may have passed it by: it must catch up.
    func beat(_ commands: some RedisCommands, at position: StreamID) async throws(RedisError) -> Bool {
        let start = time.now
        state.withLock { $0.position = position }
        let reply = try await commands.run(beatCommand, within: timings.commandLimit, time)
        try reply.succeeded()
        guard reply != .none, isLive else {
            state.withLock { $0.lastBeat = nil }
            return false
        }
        state.withLock { $0.lastBeat = start }
        return true
    }

    private var beatCommand: RedisCommand {
        let value = state.withLock { "\($0.joined) \($0.position)" }
        return RedisCommand(.statusOrBytes, ["SET", keys.node(name), value, "PX", timings.nodeLifetime, "GET"])
    }

    /// The names of the nodes that are live now. Forgets dead ones.
    func liveNodes(_ commands: some RedisCommands, within limit: Duration) async throws(RedisError) -> [String] {
        let end = time.now + limit
        let list = try await commands.run(RedisCommand(.array, ["SMEMBERS", keys.nodes]), within: limit, time)
        var names: [String] = []
        for element in try list.elements().prefix(Self.maxNodes) { names.append(try element.text()) }
        names.sort()
        // Should the next look fail: any of them may be live.
        state.withLock { $0.knownNodes = Set($0.knownNodes).union(names).sorted() }
        let values =
            names.isEmpty
            ? []
            : try await commands.run(
                RedisCommand(.array, ["MGET"] + names.map { keys.node($0) }), within: end - time.now, time
            ).elements()
        guard values.count == names.count else { throw .nonsense("\(values.count) values for \(names.count) keys") }
        var nodes: [LiveNode] = []
        for (name, value) in zip(names, values) {
            if let bytes = try value.optionalBytes() { nodes.append(LiveNode(name, bytes)) }
        }
        let listed = nodes.map(\.name)
        let live = state.withLock { state in
            if time.now >= state.expected.end { state.expected.names = [] }
            let live = listed + state.expected.names.subtracting(listed).sorted()
            (state.knownNodes, state.live) = (live, nodes)
            return live
        }
        let dead = zip(names, values).filter { $1 == .none }.map(\.0)
        if !dead.isEmpty {
            // A node that comes back adds itself again.
            _ = try? await commands.run(
                .script(Self.forget, keys: [keys.nodes] + dead.map { keys.node($0) }, dead),
                within: max(.milliseconds(1), end - time.now), time)
        }
        return live
    }

    /// Takes a node off the list, so that purges no longer wait for it. A name that stays listed because the server cannot be reached
    /// expires.
    func remove(_ name: String, _ commands: some RedisCommands) async {
        if name == self.name { state.withLock { $0.lastBeat = nil } }
        let removal = [RedisCommand(.integer, ["DEL", keys.node(name)]), RedisCommand(.integer, ["SREM", keys.nodes, name])]
        _ = try? await commands.run(removal, within: timings.commandLimit, time)
    }
}
