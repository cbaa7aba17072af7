package import Logging
package import PrometheusMetrics
package import Renditions
internal import Synchronization
package import SystemIO

/// The server's prewarm jobs, and the tasks that work on them: first come, first served, a few entries at once.
///
/// Bounded in entries that wait and in jobs that are remembered. Any thread, but for what is said to block.
package final class PrewarmQueue: Sendable {
    /// How much there may be.
    package struct Limits: Sendable {
        /// Entries at once, over all jobs.
        package var concurrency: Int
        /// Entries that are yet to be done, over all jobs.
        package var urls: Int
        /// Jobs that can be asked about; beyond, the oldest that are over are forgotten.
        package var jobs = 200

        package init(concurrency: Int, urls: Int) {
            self.concurrency = concurrency
            self.urls = urls
        }
    }

    /// Why a job was not accepted.
    package enum Refusal: Error, Sendable, Equatable {
        /// The server is stopping.
        case stopping
        /// Too many entries are pending.
        case full(waiting: Int, limit: Int)
        /// The job could not be written to disk.
        case notStored(cause: String)
    }

    fileprivate struct State {
        /// In the order in which they came.
        var jobs: [PrewarmJob] = []
        /// Entries of jobs that are being written down.
        var arriving = 0
        var runners: [Int: Task<Void, Never>] = [:]
        var lastRunner = 0
        /// Nil until ``PrewarmQueue/start(_:)``.
        var prewarmer: Prewarmer?
        var isClosed = false

        var waiting: Int { jobs.reduce(arriving) { $0 + $1.remaining } }
    }

    package let limits: Limits
    private let meter: LabelledCounter
    private let logger: Logger
    private let state = Mutex(State())
    /// Locked while the disk is waited for, so only ever by threads that may wait.
    private let journal: Mutex<PrewarmJournal>
    /// One thread, so that outcomes are written in order.
    private let threads: WorkThreads

    package init(
        limits: Limits, journal: sending PrewarmJournal, threads: WorkThreads, meter: LabelledCounter,
        logger: Logger
    ) {
        self.limits = limits
        self.journal = Mutex(journal)
        self.threads = threads
        self.meter = meter
        self.logger = logger
    }

    /// Reads what an earlier server left, so that whoever asks finds it. Blocks; to be done before requests come.
    package func load() {
        let (jobs, damages) = journal.withLock { $0.load() }
        for damage in damages {
            logger.warning(
                damage.isDropped ? "a damaged prewarm job was dropped" : "a prewarm job is damaged",
                metadata: ["file": "\(damage.file)", "cause": "\(damage.cause)"])
        }
        let open = jobs.reduce(0) { $0 + $1.remaining }
        if open > 0 { logger.info("prewarming goes on", metadata: ["urls": "\(open)"]) }
        state.withLock { $0.jobs = jobs }
    }

    /// Begins to work.
    ///
    /// - Parameters:
    ///   - store: Returns the current store.
    ///   - describe: Gives the code and the sentence of an error, for reports.
    package func start(
        _ store: @escaping @Sendable () -> RenditionStore, describe: @escaping PrewarmFailure.Describe
    ) {
        state.withLock { $0.prewarmer = Prewarmer(store: store, describe: describe) }
        wake()
    }

    /// Begins nothing more and calls off what is under way; after the next start that is begun anew.
    package func stop() {
        let runners = state.withLock { state in
            state.isClosed = true
            return state.runners.values
        }
        for runner in runners { runner.cancel() }
    }

    /// Entries that are yet to be done.
    package var waiting: Int { state.withLock { $0.waiting } }

    package func job(_ id: String) -> PrewarmJob? {
        state.withLock { $0.jobs.first { $0.order.id == id } }
    }

    /// Accepts a job. Blocks until it is on disk.
    package func add(_ order: PrewarmJob.Order) throws(Refusal) {
        let refusal: Refusal? = state.withLock { state in
            if state.isClosed { return .stopping }
            guard state.waiting + order.entries.count <= limits.urls else {
                return .full(waiting: state.waiting, limit: limits.urls)
            }
            state.arriving += order.entries.count
            return nil
        }
        if let refusal { throw refusal }
        let failure: Refusal? = journal.withLock { journal in
            do {
                try journal.add(order)
                return nil
            } catch {
                return .notStored(cause: "\(error)")
            }
        }
        let forgotten = state.withLock { state in
            state.arriving -= order.entries.count
            if failure == nil { state.jobs.append(PrewarmJob(order)) }
            return state.forgetOldest(beyond: limits.jobs)
        }
        for id in forgotten { write { try $0.remove(id) } }
        if let failure { throw failure }
        wake()
    }

    /// Calls a job off. Blocks for a write.
    package func cancel(_ job: PrewarmJob) {
        job.cancel()
        write { try $0.noteCancelled(job.order.id) }
    }

    // MARK: Runners

    /// Makes sure that as many work as may, where there is work.
    private func wake() {
        state.withLock { state in
            guard !state.isClosed, let prewarmer = state.prewarmer else { return }
            let wanted = min(limits.concurrency, state.waiting)
            while state.runners.count < wanted {
                state.lastRunner += 1
                let number = state.lastRunner
                state.runners[number] = Task(priority: .utility) { await self.run(number, prewarmer) }
            }
        }
    }

    /// Works until nothing is left to begin with.
    private func run(_ runner: Int, _ prewarmer: Prewarmer) async {
        while let (job, number) = take(runner) {
            let outcome = await prewarmer.warm(job.order.entries[number], retries: job.order.retries)
            job.finish(number, outcome)
            guard let outcome else { continue }
            meter.increment(outcome.kind.rawValue)
            let (id, isOver) = (job.order.id, job.isOver)
            _ = threads.submit {
                self.write { journal in
                    try journal.note(number, outcome, of: id)
                    if isOver { try journal.close(id) }
                }
            }
            if isOver { logger.info("prewarmed", metadata: ["job": "\(id)", "urls": "\(job.order.entries.count)"]) }
        }
    }

    /// The next entry of the first job that has one to begin with. Where there is none the runner has left, under the same
    /// lock: a job that comes right then finds its place free.
    private func take(_ runner: Int) -> (PrewarmJob, Int)? {
        state.withLock { state in
            if !state.isClosed {
                for job in state.jobs {
                    if let number = job.take() { return (job, number) }
                }
            }
            state.runners[runner] = nil
            return nil
        }
    }

    private func write(_ body: @Sendable (PrewarmJournal) throws -> Void) {
        journal.withLock { journal in
            do {
                try body(journal)
            } catch {
                // The job goes on; after a restart some entries are looked at once more.
                logger.warning("a prewarm job cannot be written down", metadata: ["cause": "\(error)"])
            }
        }
    }
}

extension PrewarmQueue.State {
    /// Takes the oldest jobs that are over out of a list that is too long, and returns their ids.
    fileprivate mutating func forgetOldest(beyond limit: Int) -> [String] {
        var forgotten: [String] = []
        while jobs.count > limit, let index = jobs.firstIndex(where: \.isOver) {
            forgotten.append(jobs.remove(at: index).order.id)
        }
        return forgotten
    }
}
