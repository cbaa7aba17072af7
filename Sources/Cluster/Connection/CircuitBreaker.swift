internal import Synchronization

/// Stops calls to a server that fails, so that no caller waits for it.
///
/// Closed: calls pass. Open: calls fail at once. Half-open, after ``openInterval`` or a new connection: one call passes as a trial;
/// its success closes the breaker, its failure opens it again. Any thread.
package final class CircuitBreaker: Sendable {
    package enum State: String, Sendable, Equatable {
        case closed
        case open
        case halfOpen = "half_open"
    }

    private enum Phase {
        case closed(failures: Int)
        case open(until: Duration)
        /// `trialEnd` is the moment after which a trial counts as lost; nil without a trial.
        case halfOpen(trialEnd: Duration?)
    }

    private let phase = Mutex(Phase.closed(failures: 0))
    private let threshold: Int
    private let openInterval: Duration
    private let trialLimit: Duration
    private let time: any ClusterTime
    private let onChange: @Sendable (State, RedisError?) -> Void

    /// - Parameters:
    ///   - threshold: The number of failures in a row that opens the breaker.
    ///   - openInterval: How long it stays open.
    ///   - onChange: Called after each change, with the error that opened it.
    package init(
        threshold: Int = 3, openInterval: Duration = .seconds(1), trialLimit: Duration = .seconds(1), time: any ClusterTime,
        onChange: @escaping @Sendable (State, RedisError?) -> Void = { _, _ in }
    ) {
        self.threshold = threshold
        self.openInterval = openInterval
        self.trialLimit = trialLimit
        self.time = time
        self.onChange = onChange
    }

    package var state: State {
        phase.withLock { phase in
            switch phase {
            case .closed: .closed
            case .open: .open
            case .halfOpen: .halfOpen
            }
        }
    }

    /// Whether a call may be sent. A call that may must be reported by ``succeeded()`` or ``failed(_:)``.
    package func admits() -> Bool {
        let (isAdmitted, isNew) = phase.withLock { phase in
            let now = time.now
            switch phase {
            case .closed: return (true, false)
            case .open(let until):
                guard now >= until else { return (false, false) }
                phase = .halfOpen(trialEnd: now + trialLimit)
                return (true, true)
            case .halfOpen(let trialEnd):
                if let trialEnd, now < trialEnd { return (false, false) }
                phase = .halfOpen(trialEnd: now + trialLimit)
                return (true, false)
            }
        }
        if isNew { onChange(.halfOpen, nil) }
        return isAdmitted
    }

    package func succeeded() {
        let isNew = phase.withLock { phase in
            // A late success of a call from before the breaker opened proves nothing.
            if case .open = phase { return false }
            defer { phase = .closed(failures: 0) }
            if case .halfOpen = phase { return true }
            return false
        }
        if isNew { onChange(.closed, nil) }
    }

    package func failed(_ error: RedisError) {
        let isNew = phase.withLock { phase in
            switch phase {
            case .closed(let failures) where failures + 1 < threshold:
                phase = .closed(failures: failures + 1)
                return false
            case .closed, .halfOpen:
                phase = .open(until: time.now + openInterval)
                return true
            case .open: return false
            }
        }
        if isNew { onChange(.open, error) }
    }

    /// Opens the breaker at once: the connection is lost.
    package func trip(_ error: RedisError) {
        let isNew = phase.withLock { phase in
            defer { phase = .open(until: time.now + openInterval) }
            if case .open = phase { return false }
            return true
        }
        if isNew { onChange(.open, error) }
    }

    /// Admits a trial at once: the connection is back.
    package func retry() {
        let isNew = phase.withLock { phase in
            guard case .open = phase else { return false }
            phase = .halfOpen(trialEnd: nil)
            return true
        }
        if isNew { onChange(.halfOpen, nil) }
    }
}
