internal import Store
internal import SystemIO

/// Sends commands over a link behind a circuit breaker, and counts them.
///
/// A pipeline counts as failed if it has no replies, or if a reply says that the server as a whole refuses work.
final class GuardedCommands: RedisCommands {
    private let link: RedisLink
    private let breaker: ServiceBreaker<RedisError>
    private let meter: ClusterMeter
    private let time: TimeSource

    init(_ link: RedisLink, _ breaker: ServiceBreaker<RedisError>, _ meter: ClusterMeter, _ time: TimeSource) {
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
        let result: Result<[RedisValue], RedisError>
        do throws(RedisError) {
            result = .success(try await link.replies(to: commands, within: limit))
        } catch {
            result = .failure(error)
        }
        meter.count(commands.count, taking: time.now - start)
        switch result {
        case .success(let replies):
            var refusal: RedisRefusal?
            for case .error(let error) in replies {
                meter.count(.refused(error))
                if error.concernsServer { refusal = error }
            }
            guard let refusal else {
                breaker.succeeded(permit)
                break
            }
            breaker.failed(permit, .refused(refusal))
            if refusal.isWorthReconnecting { link.drop(.refused(refusal)) }
        case .failure(.cancelled):
            breaker.abandoned(permit)
        case .failure(let error):
            meter.count(error)
            breaker.failed(permit, error)
        }
        return try result.get()
    }
}
