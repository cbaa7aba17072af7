internal import Synchronization

/// The circuit breaker in front of a service: decides whether calls are sent and when the next probe is due. Any thread.
///
/// A closed breaker admits all calls and counts consecutive outages. At a limit it opens: calls fail at once. After a pause it
/// is half-open: one call is sent as a probe. The probe's success closes the breaker; its failure opens it for a longer pause.
package final class CircuitBreaker<Failure: Error>: Sendable {
    /// Permission to send one call, with the obligation to report its outcome.
    package struct Permit: Sendable, Equatable {
        fileprivate let generation: Int
        /// Whether the call is the probe of a half-open breaker.
        package let isProbe: Bool
    }

    private enum Phase {
        case closed(failures: Int)
        case open(until: Duration)
        /// A probe was sent. If its outcome is not reported before `until`, it counts as lost, and another probe may be sent.
        case probing(until: Duration)
    }

    private struct State {
        var phase = Phase.closed(failures: 0)
        var pause: Duration
        /// Incremented by each change of the phase. The outcome of a call sent in an earlier phase is ignored.
        var generation = 0

        mutating func change(to new: Phase) {
            phase = new
            generation += 1
        }
    }

    /// The timeout for a probe's outcome, longer than any call.
    private static var longestProbe: Duration { .seconds(60) }

    private let limits: BreakerLimits
    private let state: Mutex<State>
    private let now: @Sendable () -> Duration
    private let onChange: @Sendable (Failure?) -> Void

    /// - Parameters:
    ///   - now: The time by a monotonic clock.
    ///   - onChange: Called with the error that opened the breaker, and with nil after it has closed again, on the thread of
    ///     the call that caused it. Must not block.
    package init(
        _ limits: BreakerLimits, now: @escaping @Sendable () -> Duration, onChange: @escaping @Sendable (Failure?) -> Void
    ) {
        self.limits = limits
        self.now = now
        self.onChange = onChange
        state = Mutex(State(pause: limits.pause))
    }

    package var phase: BreakerPhase {
        switch state.withLock(\.phase) {
        case .closed: .closed
        case .open(let until): now() < until ? .open : .halfOpen
        case .probing: .halfOpen
        }
    }

    /// Returns a permit for one call; nil if the call must fail at once.
    package func admit() -> Permit? {
        let now = now()
        return state.withLock { state in
            switch state.phase {
            case .closed: return Permit(generation: state.generation, isProbe: false)
            case .open(let until), .probing(let until):
                guard now >= until else { return nil }
                state.change(to: .probing(until: now + Self.longestProbe))
                return Permit(generation: state.generation, isProbe: true)
            }
        }
    }

    /// Reports that the server answered.
    package func succeeded(_ permit: Permit) {
        let isClosed = state.withLock { state in
            guard permit.generation == state.generation else { return false }
            switch state.phase {
            case .closed:
                state.phase = .closed(failures: 0)
                return false
            case .probing:
                state.pause = limits.pause
                state.change(to: .closed(failures: 0))
                return true
            case .open: return false
            }
        }
        if isClosed { onChange(nil) }
    }

    /// Reports an outage.
    package func failed(_ permit: Permit, _ error: Failure) {
        let now = now()
        let isOpened = state.withLock { state in
            guard permit.generation == state.generation else { return false }
            switch state.phase {
            case .closed(let failures) where failures + 1 < limits.failures:
                state.phase = .closed(failures: failures + 1)
                return false
            case .closed:
                state.change(to: .open(until: now + state.pause))
                return true
            case .probing:
                state.pause = min(state.pause * 2, limits.maxPause)
                state.change(to: .open(until: now + state.pause))
                return false
            case .open: return false
            }
        }
        if isOpened { onChange(error) }
    }

    /// Reports that a call ended without evidence about the server. The next probe is due at once.
    package func abandoned(_ permit: Permit) {
        let now = now()
        state.withLock { state in
            guard permit.generation == state.generation, case .probing = state.phase else { return }
            state.change(to: .open(until: now))
        }
    }

    /// Opens the breaker at once, for an outage that no call reported: the connection is lost.
    package func trip(_ error: Failure) {
        let now = now()
        let wasOpen = state.withLock { state in
            defer { state.change(to: .open(until: now + state.pause)) }
            return if case .open = state.phase { true } else { false }
        }
        if !wasOpen { onChange(error) }
    }

    /// Makes a probe due at once if the breaker is open: the connection is back.
    package func retry() {
        let now = now()
        state.withLock { state in
            if case .open = state.phase { state.change(to: .open(until: now)) }
        }
    }
}

/// The limits of a ``CircuitBreaker``.
package struct BreakerLimits: Sendable, Equatable {
    /// The number of consecutive outages that opens the breaker.
    package var failures: Int
    /// The first pause between opening and a probe. Doubles with each failed probe.
    package var pause: Duration
    /// The longest pause.
    package var maxPause: Duration

    package init(failures: Int, pause: Duration, maxPause: Duration) {
        self.failures = failures
        self.pause = pause
        self.maxPause = maxPause
    }
}

/// The state of a circuit breaker as shown to operators.
package enum BreakerPhase: String, Sendable, Equatable {
    /// Calls are sent.
    case closed
    /// Calls fail at once.
    case open
    /// One call is, or will be, sent as a probe; others fail at once.
    case halfOpen = "half-open"
}
