/// Statuses of requests that are in progress on one node, for clients whose next request reaches another node.
///
/// The node that processes a request writes its status under a key with a lifetime. A client that cancels through another node
/// sets a mark, which the processing node finds at its next write.
package struct SharedStatuses: Sendable {
    /// The lifetime of a mark: longer than the time between two writes.
    private static let markTime: Duration = .seconds(60)

    let context: ClusterContext
    private var keys: ClusterKeys { context.keys }

    /// Writes a status, in one round trip.
    ///
    /// - Parameters:
    ///   - id: The request's unique id.
    ///   - document: The status, which only callers interpret.
    ///   - lifetime: The time after which the status is forgotten, unless it is written again.
    /// - Returns: Whether a client has cancelled the request through another node.
    package func write(_ id: String, _ document: [UInt8], for lifetime: Duration) async throws(RedisError) -> Bool {
        let replies = try await context.run([
            RedisCommand(.status, ["SET", keys.status(id), document, "PX", lifetime]),
            RedisCommand(.integer, ["EXISTS", keys.statusMark(id)]),
        ])
        try replies[0].succeeded()
        return try replies[1].integer(in: 0...1) == 1
    }

    /// Returns the status of a request; nil if there is none.
    package func read(_ id: String) async throws(RedisError) -> [UInt8]? {
        try await context.run(RedisCommand(.bytesOrNone, ["GET", keys.status(id)])).optionalBytes()
    }

    /// Removes a status, and marks the request as cancelled for the node that processes it.
    ///
    /// - Returns: Whether there was a status.
    package func cancel(_ id: String) async throws(RedisError) -> Bool {
        let replies = try await context.run([
            RedisCommand(.status, ["SET", keys.statusMark(id), "1", "PX", Self.markTime]),
            RedisCommand(.integer, ["DEL", keys.status(id)]),
        ])
        try replies[0].succeeded()
        return try replies[1].integer(in: 0...1) == 1
    }

    package func remove(_ id: String) async throws(RedisError) {
        try await context.run(RedisCommand(.integer, ["DEL", keys.status(id)])).succeeded()
    }
}
