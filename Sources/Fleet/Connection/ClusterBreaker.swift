internal import Synchronization
package import SystemIO

/// The circuit breaker in front of the server, with a clock and its listener. Any thread.
package final class ClusterBreaker: Sendable {
    private let breaker: Mutex<CircuitBreaker>
    private let time: TimeSource
    private let onChange: @Sendable (RedisError?) -> Void

    /// - Parameters:
    ///   - onChange: Called with the error that opened the breaker, and with nil after it has closed again.
    package init(
        limits: CircuitBreaker.Limits = CircuitBreaker.Limits(failures: 3, pause: .seconds(1), maxPause: .seconds(1)),
        time: TimeSource, onChange: @escaping @Sendable (RedisError?) -> Void = { _ in }
    ) {
        breaker = Mutex(CircuitBreaker(limits))
        self.time = time
        self.onChange = onChange
    }

    package var phase: BreakerPhase { breaker.withLock { $0.phase(at: time.now) } }

    /// A permit for one call, whose end is reported with it; nil if the call has to fail at once.
    package func admit() -> CircuitBreaker.Permit? {
        breaker.withLock { $0.admit(at: time.now) }
    }

    package func succeeded(_ permit: CircuitBreaker.Permit) {
        if breaker.withLock({ $0.succeed(permit) }) { onChange(nil) }
    }

    package func failed(_ permit: CircuitBreaker.Permit, _ error: RedisError) {
        if breaker.withLock({ $0.fail(permit, at: time.now) }) { onChange(error) }
    }

    /// Reports a call that ended without telling anything about the server.
    package func abandoned(_ permit: CircuitBreaker.Permit) {
        breaker.withLock { $0.abandon(permit, at: time.now) }
    }

    /// Opens the breaker at once: the connection is lost.
    package func trip(_ error: RedisError) {
        if breaker.withLock({ $0.trip(at: time.now) }) { onChange(error) }
    }

    /// Admits a probe at once: the connection is back.
    package func retry() {
        breaker.withLock { $0.retry(at: time.now) }
    }
}
