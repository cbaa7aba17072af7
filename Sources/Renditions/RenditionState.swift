package import Cache
package import Fetch
internal import Synchronization

/// The mutable state of the core. It lives as long as the process; a reload replaces only the policy of the stores that use
/// it, so requests before and after a reload share flights, failures and admission.
package final class RenditionState: Sendable {
    typealias Outcome = Result<RenditionMaker.Made, RenditionError>

    /// Renditions of URLs that are being produced.
    let flights: FlightTable<RenditionStore.Key, Outcome>
    /// Renditions of uploads that are being produced.
    let uploadFlights: FlightTable<ObjectID, Outcome>
    /// Sources that are being fetched.
    let fetchFlights: FlightTable<SourceFetches.Key, SourceFetches.Outcome>
    /// Sources in memory from which a rendition is being produced.
    let loans = Mutex<[SourceURL: SourceFetches.Loan]>([:])
    package let failures: RememberedProblems
    /// Bounds all work in progress.
    let admission: MissAdmission

    /// The bounds of waiting and of memory. They take effect at once, also for work in progress.
    package struct Limits: Sendable {
        /// How long a caller waits for a worker.
        package var queueTimeout: Duration
        /// A backstop for one fetch; the fetcher has its own timeouts.
        package var fetchLifetime: Duration
        /// A backstop for a whole miss; every stage has its own timeout.
        package var lifetime: Duration
        /// Conversions at workers and in their queue.
        package var jobs: Int
        /// Bytes of sources in memory.
        package var bytes: Int

        package init(
            queueTimeout: Duration, fetchLifetime: Duration, lifetime: Duration, jobs: Int, bytes: Int
        ) {
            self.queueTimeout = queueTimeout
            self.fetchLifetime = fetchLifetime
            self.lifetime = lifetime
            self.jobs = jobs
            self.bytes = bytes
        }
    }

    /// - Parameter executor: Runs the work in flight; nil for Swift's own.
    package init(_ limits: Limits, clock: CacheClock, executor: (any TaskExecutor)? = nil) {
        flights = FlightTable(patience: limits.queueTimeout, lifetime: limits.lifetime, executor: executor)
        uploadFlights = FlightTable(patience: limits.queueTimeout, lifetime: limits.lifetime, executor: executor)
        fetchFlights = FlightTable(patience: limits.fetchLifetime, lifetime: limits.fetchLifetime, executor: executor)
        failures = RememberedProblems(clock: clock)
        admission = MissAdmission(jobs: limits.jobs, bytes: limits.bytes)
    }

    /// Applies other limits. Work that exceeds a smaller limit goes on; nothing more is admitted until it has ended.
    package func apply(_ limits: Limits) {
        flights.setTimeouts(patience: limits.queueTimeout, lifetime: limits.lifetime)
        uploadFlights.setTimeouts(patience: limits.queueTimeout, lifetime: limits.lifetime)
        fetchFlights.setTimeouts(patience: limits.fetchLifetime, lifetime: limits.fetchLifetime)
        admission.resize(jobs: limits.jobs, bytes: limits.bytes)
    }
}
