internal import SystemIO

/// Sends calls through the circuit breaker, within a deadline, with retries, and counts them. Any thread.
final class GuardedCalls: Sendable {
    private let breaker: CircuitBreaker<StoreError>
    private let backoff: Backoff
    private let meter: StoreMeter
    private let now: @Sendable () -> Duration
    private let probe: Probe?

    /// A small request that shows whether the server works.
    typealias Probe = @Sendable (_ limit: Duration) async throws(StoreError) -> Void

    /// - Parameters:
    ///   - probe: Sent before the first call after an outage, since that call may be large; nil for none.
    ///   - now: The time by a monotonic clock.
    ///   - report: Called once per change of the breaker's state, on the thread of the call that caused it. Must not block.
    init(
        limits: BreakerLimits, backoff: Backoff, meter: StoreMeter, now: @escaping @Sendable () -> Duration,
        probe: Probe? = nil, report: @escaping @Sendable (StoreEvent) -> Void
    ) {
        breaker = CircuitBreaker(limits, now: now) { report($0.map { .suspended($0) } ?? .resumed) }
        self.backoff = backoff
        self.meter = meter
        self.now = now
        self.probe = probe
    }

    var phase: BreakerPhase { breaker.phase }

    /// Runs `body` until it succeeds, fails for good, has run `attempts` times, or `limit` has passed.
    ///
    /// - Parameter body: Makes one attempt within the given time. Must be idempotent.
    /// - Throws: ``StoreError/suspended`` if the breaker is open, or the error of the last attempt.
    func perform<Value: Sendable>(
        _ operation: StoreOperation, within limit: Duration, attempts: Int = 3,
        _ body: (_ timeLeft: Duration) async throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        let start = now()
        let permit = try await admit(within: limit)
        var failures = 0
        while true {
            do throws(StoreError) {
                let value = try await body(limit - (now() - start))
                meter.countEnd(operation, after: now() - start)
                breaker.succeeded(permit)
                return value
            } catch {
                failures += 1
                if failures < attempts, error.isTransient, error != .timedOut,
                    await waitForRetry(error, failures, timeLeft: limit - (now() - start))
                {
                    meter.update { $0.retries += 1 }
                    continue
                }
                let final: StoreError = Task.isCancelled ? .cancelled : error
                meter.countEnd(operation, after: now() - start)
                meter.countFailure(final)
                settle(permit, final, of: operation)
                throw final
            }
        }
    }

    /// Returns a permit for one call. If the breaker is half-open, a probe closes it first.
    private func admit(within limit: Duration) async throws(StoreError) -> CircuitBreaker<StoreError>.Permit {
        if let permit = breaker.admit() {
            guard permit.isProbe, let probe else { return permit }
            try await send(probe, permit, within: limit)
            if let next = breaker.admit() { return next }
        }
        meter.countFailure(.suspended)
        throw .suspended
    }

    /// Sends a probe if one is due. Without calls, the breaker would otherwise stay open after the end of an outage.
    func probeIfDue(within limit: Duration) async {
        guard let probe, phase == .halfOpen, let permit = breaker.admit(), permit.isProbe else { return }
        try? await send(probe, permit, within: limit)
    }

    private func send(
        _ probe: Probe, _ permit: CircuitBreaker<StoreError>.Permit, within limit: Duration
    ) async throws(StoreError) {
        do throws(StoreError) {
            try await probe(limit)
        } catch {
            let final: StoreError = Task.isCancelled ? .cancelled : error
            meter.countFailure(final)
            settle(permit, final, of: .get)
            throw final
        }
        breaker.succeeded(permit)
    }

    /// Waits before the next attempt. Returns false if no time is left for one, or the task was cancelled.
    private func waitForRetry(_ error: StoreError, _ failures: Int, timeLeft: Duration) async -> Bool {
        var pause = backoff.pause(after: failures)
        if case .throttled(let requested?) = error { pause = max(pause, requested) }
        guard pause < timeLeft else { return false }
        return (try? await Task.sleep(for: pause)) != nil
    }

    /// Reports a failed call to the breaker.
    private func settle(_ permit: CircuitBreaker<StoreError>.Permit, _ error: StoreError, of operation: StoreOperation) {
        switch error {
        case .cancelled, .closed, .file, .exhausted: breaker.abandoned(permit)
        case _ where error.isOutage(of: operation): breaker.failed(permit, error)
        case .denied:
            // The credentials do not permit deletion. The response does not show whether they permit anything else.
            breaker.abandoned(permit)
        default:
            // The server works: it answered, although not with success.
            breaker.succeeded(permit)
        }
    }
}
