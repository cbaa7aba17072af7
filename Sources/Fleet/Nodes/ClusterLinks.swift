internal import SystemIO

/// The connections of a node, each with its own thread: for commands, messages and the purge stream.
///
/// Sends commands behind a circuit breaker, and counts them. A pipeline counts as failed if it has no replies, or if a reply says
/// that the server as a whole refuses work.
final class ClusterLinks: RedisCommands {
    private let commands: RedisLink
    private let messages: RedisLink
    let stream: RedisLink
    let breaker: CircuitBreaker<RedisError>
    private let reporter: StateReporter
    private let meter: ClusterMeter
    private let time: TimeSource

    init(_ configuration: ClusterConfiguration, _ reporter: StateReporter, _ meter: ClusterMeter, _ time: TimeSource) {
        let (address, keys) = (configuration.address, configuration.keys)
        commands = RedisLink(address, name: "cluster-cmd", rights: keys.rights, time: time)
        messages = RedisLink(address, name: "cluster-sub", channel: keys.channel, time: time)
        stream = RedisLink(address, name: "cluster-purge", time: time)
        let limits = BreakerLimits(failures: 3, pause: .seconds(1), maxPause: .seconds(1))
        breaker = CircuitBreaker(limits, now: { time.now }) { reporter.set(.breaker, $0) }
        (self.reporter, self.meter, self.time) = (reporter, meter, time)
    }

    /// Starts the threads.
    ///
    /// - Parameters:
    ///   - onMessage: Handles a message on the cluster's channel.
    ///   - onStream: Handles a new connection of the purge stream.
    func start(onMessage: @escaping @Sendable ([UInt8]) -> Void, onStream: @escaping @Sendable () -> Void) {
        let (breaker, reporter, meter) = (breaker, reporter, meter)
        @Sendable func count(_ event: RedisLink.Event) {
            switch event {
            case .connected: meter.update { $0.connections += 1 }
            case .lost(let error): meter.count(error)
            case .failed: break
            }
        }
        commands.start { event in
            count(event)
            if case .lost(let error) = event { breaker.trip(error) }
            reporter.set(.commands, event.error)
            if event == .connected { breaker.retry() }
        }
        messages.start(
            onEvent: { event in
                count(event)
                // Callers poll, so a lost subscription only delays them.
                if case .lost = event { return }
                reporter.setSubscription(event.error)
            }, onMessage: onMessage)
        stream.start { event in
            count(event)
            if let error = event.error { reporter.set(.stream, error) } else { onStream() }
        }
    }

    /// Ends the threads. Blocks for a few seconds at most.
    func close() {
        for link in [commands, messages, stream] { link.close() }
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
            replies = try await self.commands.replies(to: commands, within: limit)
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
            if refusal.isWorthReconnecting { self.commands.drop(.refused(refusal)) }
        } else {
            breaker.succeeded(permit)
        }
        return replies
    }
}
