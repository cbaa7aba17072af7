internal import SystemIO

/// What the parts of a node have in common: its connection for commands, its names and its times.
struct ClusterContext: Sendable {
    var commands: any RedisCommands
    let keys: ClusterKeys
    /// The node's name, which no other node and no other run has.
    let nodeName: String
    let timings: ClusterTimings
    let time: TimeSource
    let meter: ClusterMeter

    /// Runs commands within a limit, ``ClusterTimings/commandLimit`` by default.
    func run(_ commands: [RedisCommand], within limit: Duration? = nil) async throws(RedisError) -> [RedisValue] {
        try await self.commands.run(commands, within: limit ?? timings.commandLimit, time)
    }

    /// Runs one command as above.
    func run(_ command: RedisCommand, within limit: Duration? = nil) async throws(RedisError) -> RedisValue {
        try await run([command], within: limit)[0]
    }
}
