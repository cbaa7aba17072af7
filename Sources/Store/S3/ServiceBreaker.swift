internal import Synchronization
package import SystemIO

/// The circuit breaker in front of a service, with a clock and its listener. Any thread.
package final class ServiceBreaker<Failure: Error>: Sendable {
    private let breaker: Mutex<CircuitBreaker>
    private let now: @Sendable () -> Duration
    private let onChange: @Sendable (Failure?) -> Void

    /// - Parameters:
    ///   - now: The time by a monotonic clock.
    ///   - onChange: Called with the error that opened the breaker, and with nil after it has closed again, on the thread of
    ///     the call that caused it. Must not block.
    package init(
        _ limits: CircuitBreaker.Limits, now: @escaping @Sendable () -> Duration,
        onChange: @escaping @Sendable (Failure?) -> Void
    ) {
        breaker = Mutex(CircuitBreaker(limits))
        self.now = now
        self.onChange = onChange
    }

    package var phase: BreakerPhase { breaker.withLock { $0.phase(at: now()) } }

    /// Returns a permit with which the caller reports the outcome of one call; nil if the call must fail at once.
    package func admit() -> CircuitBreaker.Permit? {
        breaker.withLock { $0.admit(at: now()) }
    }

    package func succeeded(_ permit: CircuitBreaker.Permit) {
        if breaker.withLock({ $0.succeed(permit) }) { onChange(nil) }
    }

    package func failed(_ permit: CircuitBreaker.Permit, _ error: Failure) {
        if breaker.withLock({ $0.fail(permit, at: now()) }) { onChange(error) }
    }

    /// Reports a call whose end says nothing about the server.
    package func abandoned(_ permit: CircuitBreaker.Permit) {
        breaker.withLock { $0.abandon(permit, at: now()) }
    }

    /// Opens the breaker at once: the connection is lost.
    package func trip(_ error: Failure) {
        if breaker.withLock({ $0.trip(at: now()) }) { onChange(error) }
    }

    /// Admits a probe at once: the connection is back.
    package func retry() {
        breaker.withLock { $0.retry(at: now()) }
    }
}
