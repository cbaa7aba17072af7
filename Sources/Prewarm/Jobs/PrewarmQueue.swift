package import Cluster
internal import Ledger
package import Logging
package import Renditions
internal import Synchronization
package import SystemIO
package import Telemetry

/// The server's prewarm jobs and the runners that process them, in the order of arrival.
///
/// The numbers of pending entries, of concurrent entries and of remembered jobs are bounded. Thread-safe; functions that
/// block for the disk say so.
package final class PrewarmQueue: Sendable {
    /// Bounds over all jobs.
    package struct Limits: Sendable {
        /// The number of entries in progress at the same time.
        package var concurrency: Int
        /// The number of unfinished entries.
        package var urls: Int
        /// The number of remembered jobs; beyond it the oldest finished ones are forgotten.
        package var jobs = 200

        package init(concurrency: Int, urls: Int) {
            self.concurrency = concurrency
            self.urls = urls
        }
    }

    fileprivate struct State {
        /// In the order of arrival.
        var jobs: [PrewarmJob] = []
        /// Entries of jobs that are being written to disk.
        var arriving = 0
        /// The idempotency keys of these jobs.
        var arrivingKeys: Set<String> = []
        /// Nil until ``PrewarmQueue/start(_:describe:report:)``.
        var prewarmer: Prewarmer?
        var report: Report?
        var isClosed = false

        var waiting: Int { jobs.reduce(arriving) { $0 + $1.remaining } }
    }

    /// Sends the report on a finished job to its callback. Any thread; must not block.
    package typealias Report = @Sendable (PrewarmJob) -> Void

    package let limits: Limits
    private let meter: LabelledCounter
    private let logger: Logger
    private let state = Mutex(State())
    private let tables: PrewarmTables
    /// A single thread, so that outcomes are written in order.
    private let threads: WorkThreads
    private let runners: TaskRunners

    package init(
        limits: Limits, tables: PrewarmTables, threads: WorkThreads, meter: LabelledCounter, logger: Logger
    ) {
        self.limits = limits
        self.tables = tables
        self.threads = threads
        self.meter = meter
        self.logger = logger
        runners = TaskRunners(limit: limits.concurrency, priority: .utility)
    }

    /// Restores the jobs of an earlier process from disk. Blocks; called before the server accepts requests.
    package func restore() {
        let (jobs, dropped) = tables.load()
        for (id, cause) in dropped {
            logger.warning("a damaged prewarm job was dropped", metadata: ["job": "\(id)", "cause": "\(cause)"])
        }
        let open = jobs.reduce(0) { $0 + $1.remaining }
        if open > 0 { logger.info("prewarming continues", metadata: ["urls": .stringConvertible(open)]) }
        state.withLock { $0.jobs = jobs }
    }

    /// Starts processing.
    ///
    /// - Parameters:
    ///   - pipeline: Returns the pipeline of the current settings.
    ///   - describe: Gives the code and the sentence of an error, for reports.
    ///   - report: Called once for each job with a callback that has ended; for a job that ended before a restart without
    ///     ``noteReported(_:)``, now.
    package func start(
        _ pipeline: @escaping @Sendable () -> RenditionPipeline, describe: @escaping PrewarmFailure.Describe,
        report: @escaping Report
    ) {
        let jobs = state.withLock { state in
            state.prewarmer = Prewarmer(pipeline: pipeline, describe: describe)
            state.report = report
            return state.jobs
        }
        for job in jobs where job.takeReport() { report(job) }
        wake()
    }

    /// Records on disk that the callback of a job has got the report, so that it is not sent again after a restart. Returns at
    /// once; a thread writes.
    package func noteReported(_ job: PrewarmJob) {
        let id = job.order.id
        _ = threads.submit { self.write { tables throws(LedgerError) in try tables.noteReported(id) } }
    }

    /// Starts no more entries and cancels those in progress. They are pending again after the next start.
    package func stop() {
        state.withLock { $0.isClosed = true }
        runners.cancelAll()
    }

    /// The number of unfinished entries.
    package var waiting: Int { state.withLock { $0.waiting } }

    /// The job with this id; nil if it is unknown or was forgotten.
    package func job(_ id: String) -> PrewarmJob? {
        state.withLock { $0.jobs.first { $0.order.id == id } }
    }

    /// The jobs that are remembered.
    package var summaries: [PrewarmReport] {
        state.withLock(\.jobs).map { PrewarmReport($0, from: nil).summary(added: $0.order.added) }
    }

    /// Why a request does not add a job; nil if it is the first one with its idempotency key.
    package func refusal(of request: PrewarmRequest) -> PrewarmRefusal? {
        state.withLock { $0.refusal(of: request) }
    }

    /// Accepts a job. Blocks until the job is on disk.
    package func add(_ order: PrewarmJob.Order) throws(PrewarmRefusal) {
        let refusal: PrewarmRefusal? = state.withLock { state in
            if state.isClosed { return .stopping }
            if let request = order.request, let refusal = state.refusal(of: request) { return refusal }
            guard state.waiting + order.entries.count <= limits.urls else {
                return .full(waiting: state.waiting, limit: limits.urls)
            }
            state.arriving += order.entries.count
            if let request = order.request { state.arrivingKeys.insert(request.key) }
            return nil
        }
        if let refusal { throw refusal }
        var failure: PrewarmRefusal?
        do throws(LedgerError) {
            try tables.create(order)
        } catch {
            failure = .notStored(cause: error.description)
        }
        let isRefused = failure != nil
        let forgotten = state.withLock { state in
            state.arriving -= order.entries.count
            if let request = order.request { state.arrivingKeys.remove(request.key) }
            if !isRefused { state.jobs.append(PrewarmJob(order)) }
            return state.forgetOldest(beyond: limits.jobs)
        }
        for id in forgotten { tables.remove(id) }
        if let failure { throw failure }
        wake()
    }

    /// Cancels a job that has not ended. Blocks until the cancellation is on disk.
    ///
    /// - Throws: ``PrewarmRefusal/notStored(cause:)`` if it holds only until the next start. Another call tries again.
    package func cancel(_ job: PrewarmJob) throws(PrewarmRefusal) {
        guard job.cancel() || job.progress.state == .cancelled else { return }
        do throws(LedgerError) {
            try tables.noteCancelled(job.order.id)
        } catch {
            throw .notStored(cause: error.description)
        }
    }

    // MARK: Runners

    private func wake() {
        guard let prewarmer = state.withLock({ $0.prewarmer }) else { return }
        runners.wake(taking: take) { (job: PrewarmJob, number: Int) in await self.process(number, of: job, prewarmer) }
    }

    /// Takes the next entry of the first job with a pending one.
    private func take() -> (PrewarmJob, Int)? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            for job in state.jobs {
                if let number = job.take() { return (job, number) }
            }
            return nil
        }
    }

    private func process(_ number: Int, of job: PrewarmJob, _ prewarmer: Prewarmer) async {
        let outcome = await prewarmer.warm(job.order.entries[number], retries: job.order.retries)
        job.finish(number, outcome)
        guard let outcome else { return }
        meter.increment(outcome.kind.rawValue)
        let (id, isOver) = (job.order.id, job.isOver)
        _ = threads.submit { self.write { tables throws(LedgerError) in try tables.note(number, outcome, of: id) } }
        if job.takeReport() { state.withLock { $0.report }?(job) }
        if isOver {
            logger.info("prewarmed", metadata: ["job": "\(id)", "urls": .stringConvertible(job.order.entries.count)])
        }
    }

    private func write(_ body: (PrewarmTables) throws(LedgerError) -> Void) {
        do throws(LedgerError) {
            try body(tables)
        } catch {
            // The job continues; after a restart some entries are processed again, as hits.
            logger.warning("a prewarm job cannot be written to disk", metadata: ["cause": "\(error)"])
        }
    }
}

extension PrewarmQueue.State {
    fileprivate func refusal(of request: PrewarmRequest) -> PrewarmRefusal? {
        if arrivingKeys.contains(request.key) { return .inProgress }
        guard let job = jobs.last(where: { $0.order.request?.key == request.key }) else { return nil }
        return job.order.request == request ? .known(id: job.order.id) : .conflict
    }

    /// Removes the oldest finished jobs beyond the limit, and returns their ids.
    fileprivate mutating func forgetOldest(beyond limit: Int) -> [String] {
        var forgotten: [String] = []
        while jobs.count > limit, let index = jobs.firstIndex(where: \.isOver) {
            forgotten.append(jobs.remove(at: index).order.id)
        }
        return forgotten
    }
}
