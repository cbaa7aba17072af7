internal import Fetch
package import Fleet
package import Store
internal import Synchronization
package import SystemIO

/// The mutable state of the core. It lives as long as the process. A reload replaces only the policy of the pipelines that use
/// it, so requests before and after a reload share flights, failures and admission.
package final class RenditionState: Sendable {
    /// Limits on waiting and memory. They take effect at once, even for work in progress.
    package struct Limits: Sendable {
        /// The longest time that a caller waits for a worker.
        package var queueTimeout: Duration
        /// The longest time that a client waits for a rendition in all; nil for no limit.
        package var waitTimeout: Duration?
        /// A backstop for one fetch, which has timeouts of its own.
        package var fetchLifetime: Duration
        /// A backstop for a whole miss, whose stages have timeouts of their own.
        package var missLifetime: Duration
        /// Conversions that run or wait.
        package var jobs: Int
        /// Bytes of sources in memory.
        package var bytes: Int
        /// Fetches that run at once.
        package var fetches: Int
        /// Fetches that run at once at one host and port.
        package var fetchesPerHost: Int

        package init(
            queueTimeout: Duration, waitTimeout: Duration? = nil, fetchLifetime: Duration, missLifetime: Duration, jobs: Int,
            bytes: Int, fetches: Int, fetchesPerHost: Int = .max / 4
        ) {
            self.queueTimeout = queueTimeout
            self.waitTimeout = waitTimeout
            self.fetchLifetime = fetchLifetime
            self.missLifetime = missLifetime
            self.jobs = jobs
            self.bytes = bytes
            self.fetches = fetches
            self.fetchesPerHost = fetchesPerHost
        }
    }

    let flights: SingleFlight<FlightKey, RenditionResult>
    let uploadFlights: SingleFlight<ObjectID, RenditionResult>
    /// Objects that are loaded from the shared tier, by their paths; nil if the tier does not have the object.
    let objectFlights: SingleFlight<String, CachedRendition?>
    let sources: SourceLoader.State
    let failures: FailureMemory
    let missing: MissingSources
    let admission: Admission
    /// Closed until this node knows the purges that it missed.
    package let catchUp: CatchUpGate
    private let cache: Cache
    private let failureScope: Mutex<String>

    /// - Parameter executor: Runs the work of flights; nil for Swift's default.
    package init(
        _ limits: Limits, failureScope: String = "", cache: Cache, clock: TimeSource,
        catchUp: CatchUpGate = CatchUpGate(isOpen: true), executor: (any TaskExecutor)? = nil
    ) {
        self.catchUp = catchUp
        self.failureScope = Mutex(failureScope)
        flights = SingleFlight(
            queueTimeout: limits.queueTimeout, waitTimeout: limits.waitTimeout, lifetime: limits.missLifetime,
            time: clock, executor: executor)
        uploadFlights = SingleFlight(
            queueTimeout: limits.queueTimeout, waitTimeout: limits.waitTimeout, lifetime: limits.missLifetime,
            time: clock, executor: executor)
        objectFlights = SingleFlight(
            queueTimeout: limits.queueTimeout, lifetime: limits.missLifetime, time: clock, executor: executor)
        sources = SourceLoader.State(cache, lifetime: limits.fetchLifetime, time: clock, executor: executor)
        failures = FailureMemory(cache.purges, clock: clock)
        self.cache = cache
        missing = MissingSources(clock: clock)
        admission = Admission(
            jobs: limits.jobs, bytes: limits.bytes, fetches: limits.fetches, fetchesPerHost: limits.fetchesPerHost)
    }

    /// Applies other limits. Work that exceeds a smaller limit goes on; nothing more is admitted until it has ended.
    package func apply(_ limits: Limits, failureScope: String) {
        self.failureScope.withLock { $0 = failureScope }
        flights.setTimeouts(queue: limits.queueTimeout, wait: limits.waitTimeout, lifetime: limits.missLifetime)
        uploadFlights.setTimeouts(queue: limits.queueTimeout, wait: limits.waitTimeout, lifetime: limits.missLifetime)
        objectFlights.setTimeouts(queue: limits.queueTimeout, lifetime: limits.missLifetime)
        sources.setLifetime(limits.fetchLifetime)
        admission.setLimits(
            jobs: limits.jobs, bytes: limits.bytes, fetches: limits.fetches, fetchesPerHost: limits.fetchesPerHost)
    }

    /// Detaches from later calls all work in progress that a purge covers, and forgets the failures that it covers.
    func invalidate(_ scope: PurgeScope) {
        // Fetches first: a flight that starts after its table was closed must not join a fetch from before the purge.
        sources.close(scope)
        flights.close { scope.covers($0.source.canonical) }
        switch scope {
        case .all:
            uploadFlights.close { _ in true }
            objectFlights.close { _ in true }
        case .object(let id):
            // A flight of a source may produce the object, too: its callers compare, because only its end shows that.
            uploadFlights.close { $0 == id }
            objectFlights.close { $0.hasPrefix(id.description) }
        // A purge of sources leaves the shared tier unchanged.
        case .url, .prefix, .host: break
        }
        failures.forget(scope)
        missing.forget(scope)
    }

    /// Forgets the failures by rules and limits that a reload may have replaced.
    package func forgetRefusals() {
        failures.forgetRefusals()
    }

    /// Remembers the failure of a source that another node has found.
    ///
    /// - Parameter isCurrent: Whether no purge overtook it.
    package func remember(_ record: SharedRecord, ofSourceAt sourceURL: String, if isCurrent: () -> Bool) {
        // Noted before `isCurrent` is called: a purge that arrives later is compared with the work of the other node.
        let epoch = cache.epoch.began(at: record.began)
        guard let failure = SharedFailure(record, scope: failureScope.withLock { $0 }), failure.isOfSource, isCurrent() else {
            return
        }
        failures.remember(failure, of: nil, ofSourceAt: sourceURL, since: epoch)
    }

    /// The number of misses in progress.
    package var missesInProgress: Int { flights.count + uploadFlights.count }

    /// The number of remembered failures.
    package var rememberedFailures: Int { failures.count }
}

/// The identity of a miss: concurrent requests with equal keys share a flight.
struct FlightKey: Hashable, Sendable {
    let source: SourceURL
    let rendition: Rendition
    private let isImage: Bool

    init(_ request: RenditionRequest, isImage: Bool = false) {
        self.isImage = isImage
        source = request.source
        rendition = request.rendition
    }
}
