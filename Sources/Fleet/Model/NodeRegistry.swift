internal import Synchronization
internal import SystemIO

/// A live node, as its latest heartbeat describes it.
package struct LiveNode: Sendable, Equatable {
    package let name: String
    /// The purge stream position up to which the node had applied all purges when it joined; zero before that.
    let joined: StreamID
    /// The position up to which the node has applied all purges.
    package internal(set) var position: StreamID

    /// - Parameter value: The value that the node has written.
    init(_ name: String, _ value: [UInt8]) {
        self.name = name
        let parts = String(decoding: value.prefix(128), as: UTF8.self).split(separator: " ").map { StreamID(String($0)) }
        joined = parts.first.flatMap(\.self) ?? .zero
        position = parts.last.flatMap(\.self) ?? .zero
    }
}

/// The registry of live nodes: a set of names, and a key per node that expires without heartbeats. Thread-safe.
///
/// Each function sends its commands over the connection of its argument.
final class NodeRegistry: Sendable {
    private struct State {
        /// The time just before the latest successful heartbeat was sent. The server's count starts later.
        var lastBeat: Duration?
        var knownNodes: [String] = []
        /// The live nodes at the latest lookup.
        var live: [LiveNode] = []
        /// See ``LiveNode/joined``.
        var joined = StreamID.zero
        /// See ``LiveNode/position``.
        var position = StreamID.zero
        /// The nodes that were known when a node listed itself, or the connection or this node's entry was lost, and the time until
        /// which they count as live: the server may have lost them without their knowledge.
        var expected: (names: Set<String>, end: Duration) = ([], .zero)
        /// The nodes that a former process knew. They count as live until the same time, or until they are listed: from then on,
        /// the list says when they leave.
        var former: Set<String> = []
    }

    /// The largest number of names that are read from the list of nodes.
    private static let maxNodes = 10_000

    /// Removes dead nodes from the list, except for those that have come back since. Keys: the list, and the key of each node.
    /// Arguments: the nodes' names. Returns the number of removed nodes.
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

    /// Whether the node was listed, and no heartbeat since has found it missing.
    var isRegistered: Bool { state.withLock { $0.lastBeat != nil } }

    /// The live nodes at the latest lookup, and those that were listed since; at least this node.
    var knownNodes: [String] { state.withLock { $0.knownNodes.isEmpty ? [name] : $0.knownNodes } }

    /// The live nodes at the latest lookup.
    var liveNodes: [LiveNode] { state.withLock(\.live) }

    /// Notes that another node has listed itself. A lookup may have begun before, and the server may lose the list before the next
    /// one.
    func registered(_ other: String) {
        state.withLock { state in
            state.knownNodes = Set(state.knownNodes).union([name, other]).sorted()
            expectKnown(&state)
        }
    }

    /// Notes that a node has left for good: its name does not come back.
    func left(_ other: String) {
        state.withLock { state in
            state.knownNodes.removeAll { $0 == other }
            state.expected.names.remove(other)
            state.former.remove(other)
        }
    }

    /// Counts nodes that a former process knew as live. The time begins with ``reconnected()``.
    func expect(_ nodes: some Sequence<String>) {
        state.withLock { $0.former = Set(nodes) }
    }

    /// Counts the known nodes as live until they must have noticed the loss: the server may be a different one.
    func reconnected() {
        state.withLock { expectKnown(&$0) }
    }

    private func expectKnown(_ state: inout State) {
        state.expected = (state.expected.names.union(state.knownNodes), time.now + timings.nodeLifetime)
    }

    /// Lists this node as live. Purges from now on wait for it.
    func register(_ context: ClusterContext) async throws(RedisError) {
        let start = time.now
        state.withLock { $0.joined = .zero }
        let message = RedisCommand(.integer, ["PUBLISH", keys.channel, ClusterMessage.registered(name).bytes])
        let replies = try await context.run(beatCommands + [message])
        for reply in replies { try reply.succeeded() }
        state.withLock { state in
            state.lastBeat = start
            if Self.wasLost(replies) { expectKnown(&state) }
        }
        // Looks up the other nodes, so that purges made without the server count them.
        _ = try? await liveNodes(context)
    }

    /// Announces, as ``beat(_:at:)``, that this node joins the cluster, with all purges up to a position applied.
    func join(_ context: ClusterContext, at position: StreamID) async throws(RedisError) -> Bool {
        state.withLock { $0.joined = position }
        return try await beat(context, at: position)
    }

    /// Sends a heartbeat.
    ///
    /// - Parameter position: See ``LiveNode/position``.
    /// - Returns: Whether the node was still listed. If not, the node may have missed purges and must catch up.
    func beat(_ context: ClusterContext, at position: StreamID) async throws(RedisError) -> Bool {
        let start = time.now
        state.withLock { $0.position = position }
        let replies = try await context.run(beatCommands)
        for reply in replies { try reply.succeeded() }
        let isListed = replies[0] != .none && isLive
        state.withLock { state in
            state.lastBeat = isListed ? start : nil
            if Self.wasLost(replies) { expectKnown(&state) }
        }
        return isListed
    }

    /// Whether the server had no key of this node, or no such name in its list, before ``beatCommands``. Other nodes may be lost,
    /// too.
    private static func wasLost(_ replies: [RedisValue]) -> Bool { replies[0] == .none || replies[1] == .integer(1) }

    private var beatCommands: [RedisCommand] {
        let value = state.withLock { "\($0.joined) \($0.position)" }
        return [
            // First, because other nodes remove names without a key from the list.
            RedisCommand(.statusOrBytes, ["SET", keys.node(name), value, "PX", timings.nodeLifetime, "GET"]),
            // Repeated with each heartbeat: the server may have evicted the list.
            RedisCommand(.integer, ["SADD", keys.nodes, name]),
        ]
    }

    /// Returns the names of the live nodes, and removes dead nodes from the list.
    func liveNodes(_ context: ClusterContext) async throws(RedisError) -> [String] {
        let list = try await context.run(RedisCommand(.array, ["SMEMBERS", keys.nodes]))
        var names: [String] = []
        for element in try list.elements().prefix(Self.maxNodes) { names.append(try element.text()) }
        names.sort()
        // If the next command fails, any of these nodes may be live.
        state.withLock { $0.knownNodes = Set($0.knownNodes).union(names).sorted() }
        let command = RedisCommand(.array, ["MGET"] + names.map { keys.node($0) })
        let values = names.isEmpty ? [] : try await context.run(command).elements()
        guard values.count == names.count else { throw .nonsense("\(values.count) values for \(names.count) keys") }
        var nodes: [LiveNode] = []
        for (name, value) in zip(names, values) {
            if let bytes = try value.optionalBytes() { nodes.append(LiveNode(name, bytes)) }
        }
        let listed = nodes.map(\.name)
        let live = state.withLock { state in
            // The server has lost this node, and may have lost others that do not know it yet.
            if state.lastBeat != nil, !listed.contains(name) { expectKnown(&state) }
            state.former.subtract(listed)
            // Before the first connection, the time has not begun.
            if state.expected.end > .zero, time.now >= state.expected.end { (state.expected.names, state.former) = ([], []) }
            let live = listed + state.expected.names.union(state.former).subtracting(listed).sorted()
            (state.knownNodes, state.live) = (live, nodes)
            return live
        }
        let dead = zip(names, values).filter { $1 == .none }.map(\.0)
        if !dead.isEmpty {
            // A node that comes back adds itself again.
            _ = try? await context.run(.script(Self.forget, keys: [keys.nodes] + dead.map { keys.node($0) }, dead))
        }
        return live
    }

    /// Removes a node from the list, so that purges no longer wait for it, and tells the other nodes. If the server cannot be
    /// reached, the node's key expires.
    func remove(_ name: String, _ context: ClusterContext) async {
        if name == self.name { state.withLock { $0.lastBeat = nil } }
        left(name)
        let removal = [
            RedisCommand(.integer, ["DEL", keys.node(name)]), RedisCommand(.integer, ["SREM", keys.nodes, name]),
            RedisCommand(.integer, ["PUBLISH", keys.channel, ClusterMessage.left(name).bytes]),
        ]
        _ = try? await context.run(removal)
    }
}
