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

    /// Runs commands within a limit, ``ClusterTimings/commandLimit`` by default.
    func run(_ commands: [RedisCommand], within limit: Duration? = nil) async throws(RedisError) -> [RedisValue] {
        try await self.commands.run(commands, within: limit ?? timings.commandLimit)
    }

    /// Runs one command within a limit, ``ClusterTimings/commandLimit`` by default.
    func run(_ command: RedisCommand, within limit: Duration? = nil) async throws(RedisError) -> RedisValue {
        try await run([command], within: limit)[0]
    }
}
