internal import SystemIO

/// Sends commands to a server. Higher-level protocols depend only on this interface, so tests can use a model of a server.
protocol RedisCommands: Sendable {
    /// Sends the commands in order, without waiting for replies in between, and returns the reply to each.
    ///
    /// - Parameter limit: The longest wait for all replies.
    /// - Throws: An error other than ``RedisError/refused(_:)`` if not every reply is known: each command may or may not have
    ///   been executed. Error replies are values.
    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue]

    /// Closes the current connection and reconnects, because the server may accept on a new connection what it refuses now.
    func drop(_ reason: RedisError)
}

extension RedisCommands {
    func drop(_ reason: RedisError) {}

    /// Runs the commands like ``replies(to:within:)``, and sends the text of scripts that the server does not know.
    ///
    /// - Returns: One reply per command.
    func run(
        _ commands: [RedisCommand], within limit: Duration, _ time: TimeSource
    ) async throws(RedisError) -> [RedisValue] {
        let end = time.now + limit
        var replies = try await replies(to: commands, within: limit)
        guard replies.count == commands.count else { throw .nonsense("\(replies.count) replies to \(commands.count) commands") }
        var unknown: [Int] = []
        for (index, reply) in replies.enumerated() {
            if case .error(let refusal) = reply, refusal.kind == .noScript, commands[index].script != nil {
                unknown.append(index)
            }
        }
        if unknown.isEmpty { return replies }
        let again = try await self.replies(to: unknown.map { commands[$0].withScriptText }, within: end - time.now)
        guard again.count == unknown.count else { throw .nonsense("\(again.count) replies to \(unknown.count) commands") }
        for (index, reply) in zip(unknown, again) { replies[index] = reply }
        return replies
    }

    /// Runs one command.
    func run(
        _ command: RedisCommand, within limit: Duration, _ time: TimeSource
    ) async throws(RedisError) -> RedisValue {
        try await run([command], within: limit, time)[0]
    }
}
