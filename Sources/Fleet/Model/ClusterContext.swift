internal import SystemIO

/// The context that the parts of a node share: its command connection, names and timings.
struct ClusterContext: Sendable {
    var commands: any RedisCommands
    let keys: ClusterKeys
    /// The node's name, unique across nodes and runs.
    let nodeName: String
    let timings: ClusterTimings
    let time: TimeSource
    let meter: ClusterMeter

    /// Returns one reply per command. The limit is ``ClusterTimings/commandLimit`` by default.
    func run(_ commands: [RedisCommand], within limit: Duration? = nil) async throws(RedisError) -> [RedisValue] {
        let replies = try await self.commands.replies(to: commands, within: limit ?? timings.commandLimit)
        guard replies.count == commands.count else { throw .nonsense("\(replies.count) replies to \(commands.count) commands") }
        return replies
    }

    /// Runs one command within a limit, ``ClusterTimings/commandLimit`` by default.
    func run(_ command: RedisCommand, within limit: Duration? = nil) async throws(RedisError) -> RedisValue {
        try await run([command], within: limit)[0]
    }
}
