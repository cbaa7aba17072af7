internal import SystemIO

/// Statuses of requests that are in progress on one node, for clients whose next request reaches another.
///
/// The node that has a request writes its status under a key with a lifetime. A client that leaves by way of another node sets a mark,
/// which the node of the request finds with its next write.
package final class SharedStatuses: Sendable {
    /// The lifetime of a mark: longer than the time between two writes.
    private static let markTime: Duration = .seconds(60)

    private let commands: any RedisCommands
    private let keys: ClusterKeys
    private let timings: ClusterTimings
    private let time: TimeSource

    init(_ commands: any RedisCommands, _ keys: ClusterKeys, _ timings: ClusterTimings, _ time: TimeSource) {
        self.commands = commands
        self.keys = keys
        self.timings = timings
        self.time = time
    }

    /// Writes a status, in one round trip.
    ///
    /// - Parameters:
    ///   - id: The id of the request, which no other has.
    ///   - document: The status, which only callers read.
    ///   - lifetime: The time after which the status is forgotten, unless it is written again.
    /// - Returns: Whether a client has cancelled the request by way of another node.
    package func write(_ id: String, _ document: [UInt8], for lifetime: Duration) async throws(RedisError) -> Bool {
        let replies = try await commands.run(
            [
                RedisCommand(
                    .status,
                    ["SET", RedisArgument(keys.status(id)), RedisArgument(document), "PX", RedisArgument(lifetime)]),
                RedisCommand(.integer, ["EXISTS", RedisArgument(keys.statusMark(id))]),
            ], within: timings.commandLimit, time)
        try replies[0].succeeded()
        return try replies[1].integer(in: 0...1) == 1
    }

    /// Returns the status of a request; nil if there is none.
    package func read(_ id: String) async throws(RedisError) -> [UInt8]? {
        let reply = try await commands.run(
            RedisCommand(.bytesOrNone, ["GET", RedisArgument(keys.status(id))]), within: timings.commandLimit, time)
        return try reply.optionalBytes()
    }

    /// Removes a status, and marks the request for its node as cancelled.
    ///
    /// - Returns: Whether there was a status.
    package func cancel(_ id: String) async throws(RedisError) -> Bool {
        let replies = try await commands.run(
            [
                RedisCommand(
                    .status, ["SET", RedisArgument(keys.statusMark(id)), "1", "PX", RedisArgument(Self.markTime)]),
                RedisCommand(.integer, ["DEL", RedisArgument(keys.status(id))]),
            ], within: timings.commandLimit, time)
        try replies[0].succeeded()
        return try replies[1].integer(in: 0...1) == 1
    }

    /// Removes a status.
    package func remove(_ id: String) async throws(RedisError) {
        try await commands.run(
            RedisCommand(.integer, ["DEL", RedisArgument(keys.status(id))]), within: timings.commandLimit, time
        ).succeeded()
    }
}
