/// A circuit breaker: decides whether calls are sent and when the next probe is due.
///
/// A closed breaker admits all calls and counts consecutive outages. At a limit it opens: calls fail at once. After a pause it
/// is half-open: one call is sent as a probe. The probe's success closes the breaker; its failure opens it for a longer pause.
///
/// The breaker has no clock: callers pass the time.
package struct CircuitBreaker: Sendable {
    package struct Limits: Sendable, Equatable {
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

    /// Permission to send one call, with the obligation to report its outcome.
    package struct Permit: Sendable, Equatable {
        fileprivate let generation: Int
        /// Whether the call is the probe of a half-open breaker.
        package let isProbe: Bool
    }

    private enum State {
        case closed(failures: Int)
        case open(until: Duration)
        /// A probe was sent. If its outcome is not reported before `until`, it counts as lost, and another probe may be sent.
        case probing(until: Duration)
    }

    /// The timeout for a probe's outcome, longer than any call.
    private static let longestProbe: Duration = .seconds(60)

    private let limits: Limits
    private var state = State.closed(failures: 0)
    private var pause: Duration
    /// Incremented by each state change. The outcome of a call sent in an earlier state is ignored.
    private var generation = 0

    package init(_ limits: Limits) {
        self.limits = limits
        pause = limits.pause
    }

    package func phase(at now: Duration) -> BreakerPhase {
        switch state {
        case .closed: .closed
        case .open(let until): now < until ? .open : .halfOpen
        case .probing: .halfOpen
        }
    }

    /// Returns a permit for one call; nil if the call must fail at once.
    package mutating func admit(at now: Duration) -> Permit? {
        switch state {
        case .closed: return Permit(generation: generation, isProbe: false)
        case .open(let until), .probing(let until):
            guard now >= until else { return nil }
            change(to: .probing(until: now + Self.longestProbe))
            return Permit(generation: generation, isProbe: true)
        }
    }

    /// Reports that the server answered. Returns true if this closes the breaker.
    package mutating func succeed(_ permit: Permit) -> Bool {
        guard permit.generation == generation else { return false }
        switch state {
        case .closed:
            state = .closed(failures: 0)
            return false
        case .probing:
            pause = limits.pause
            change(to: .closed(failures: 0))
            return true
        case .open: return false
        }
    }

    /// Reports an outage. Returns true if this opens the breaker after it was closed.
    package mutating func fail(_ permit: Permit, at now: Duration) -> Bool {
        guard permit.generation == generation else { return false }
        switch state {
        case .closed(let failures):
            guard failures + 1 >= limits.failures else {
                state = .closed(failures: failures + 1)
                return false
            }
            change(to: .open(until: now + pause))
            return true
        case .probing:
            pause = min(pause * 2, limits.maxPause)
            change(to: .open(until: now + pause))
            return false
        case .open: return false
        }
    }

    /// Reports that a call ended without evidence about the server. The next probe is due at once.
    package mutating func abandon(_ permit: Permit, at now: Duration) {
        guard permit.generation == generation, case .probing = state else { return }
        change(to: .open(until: now))
    }

    /// Opens the breaker at once, for an outage that no call reported. Returns false if it was already open.
    package mutating func trip(at now: Duration) -> Bool {
        defer { change(to: .open(until: now + pause)) }
        if case .open = state { return false }
        return true
    }

    /// Makes a probe due at once if the breaker is open.
    package mutating func retry(at now: Duration) {
        if case .open = state { change(to: .open(until: now)) }
    }

    private mutating func change(to new: State) {
        state = new
        generation += 1
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
