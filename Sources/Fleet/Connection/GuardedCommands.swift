internal import SystemIO

/// Sends commands over a link behind a circuit breaker, and counts them.
///
/// A pipeline counts as failed if it has no replies, or if a reply says that the server as a whole refuses work.
final class GuardedCommands: RedisCommands {
    private let link: RedisLink
    private let breaker: CircuitBreaker<RedisError>
    private let meter: ClusterMeter
    private let time: TimeSource

    init(_ link: RedisLink, _ breaker: CircuitBreaker<RedisError>, _ meter: ClusterMeter, _ time: TimeSource) {
        self.link = link
        self.breaker = breaker
        self.meter = meter
        self.time = time
    }

    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue] {
        guard let permit = breaker.admit() else {
            meter.count(.breakerOpen)
            throw .breakerOpen
        }
        let start = time.now
        let replies: [RedisValue]
        do throws(RedisError) {
            defer { meter.count(commands.count, taking: time.now - start) }
            replies = try await link.replies(to: commands, within: limit)
        } catch {
            if error == .cancelled {
                breaker.abandoned(permit)
            } else {
                meter.count(error)
                breaker.failed(permit, error)
            }
            throw error
        }
        var refusal: RedisRefusal?
        for case .error(let error) in replies {
            meter.count(.refused(error))
            if error.concernsServer { refusal = error }
        }
        if let refusal {
            breaker.failed(permit, .refused(refusal))
            if refusal.isWorthReconnecting { link.drop(.refused(refusal)) }
        } else {
            breaker.succeeded(permit)
        }
        return replies
    }
}
