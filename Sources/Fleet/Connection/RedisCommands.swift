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
}
