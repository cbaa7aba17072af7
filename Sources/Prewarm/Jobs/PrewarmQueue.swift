package import Fleet
package import Logging
package import Renditions
package import Store
internal import Synchronization
package import SystemIO
package import Telemetry

/// The prewarm lists of the cluster, and this server's own lists in its ledger, which stores lists that cannot be added to the
/// cluster. Each kind of list has a runner. Thread-safe.
package final class PrewarmQueue: Sendable {
    /// Limits across all lists.
    package struct Limits: Sendable {
        /// The number of entries in progress at the same time for each kind of list.
        package var concurrency: Int
        /// The number of unfinished entries of this server, or of the cluster.
        package var urls: Int
        /// The number of this server's own lists to keep; beyond it, the oldest finished lists are removed.
        package var jobs = PrewarmReport.listLimit

        package init(concurrency: Int, urls: Int) {
            self.concurrency = concurrency
            self.urls = urls
        }
    }

    package let limits: Limits
    private let own: PrewarmTables
    private let shared: SharedPrewarm?
    private let runners: [PrewarmRunner]
    private let isStopped = Atomic(false)

    /// - Parameters:
    ///   - ledger: Opened with ``owned``.
    ///   - threads: The threads that run transactions. They must not be closed before ``stop()``.
    ///   - readers: The threads that read reports, which do not wait for a disk that stalls; nil for `threads`.
    ///   - cluster: The lists of the cluster; nil without one.
    ///   - meter: Counts finished entries by the name of their ``PrewarmOutcome/Kind``.
    package init(
        limits: Limits, ledger: Ledger, threads: WorkThreads, readers: WorkThreads? = nil, cluster: SharedPrewarm? = nil,
        meter: LabelledCounter, logger: Logger
    ) {
        self.limits = limits
        own = PrewarmTables(ledger, threads: threads, readers: readers, logger: logger)
        shared = cluster
        runners = (0..<2).map { _ in PrewarmRunner(concurrency: limits.concurrency, meter: meter) }
    }

    /// Starts processing, including unfinished lists of an earlier process.
    ///
    /// - Parameters:
    ///   - pipeline: Returns the pipeline of the current settings.
    ///   - describe: Returns the code and the sentence of an error, for reports.
    ///   - report: Called for each ended list with a callback; called again if the report does not end.
    package func start(
        _ pipeline: @escaping @Sendable () -> RenditionPipeline, describe: @escaping PrewarmOutcome.Describe,
        report: @escaping Report
    ) {
        let prewarmer = Prewarmer(pipeline: pipeline, describe: describe)
        runners[0].start(own, prewarmer, report)
        if let shared { runners[1].start(shared, prewarmer, report) }
    }

    /// Sends the report on a list to its callback, and calls `ended` when the receiver has accepted the report or delivery was
    /// given up. Called on any thread; must not block.
    package typealias Report = @Sendable (PrewarmReport, _ callback: String, _ ended: @escaping @Sendable () -> Void) -> Void

    /// Starts no more entries, and cancels those in progress, which become pending again, for other nodes or after the next start.
    package func stop() {
        isStopped.store(true, ordering: .relaxed)
        for runner in runners { runner.stop() }
    }

    /// The number of unfinished entries of this server's own lists. Blocks.
    package var waiting: Int { own.waiting }

    /// Adds a list for all nodes, or for this one if the others cannot be reached.
    ///
    /// - Returns: The id of the list, which an earlier request may have added.
    package func add(_ order: PrewarmOrder) async throws(PrewarmRefusal) -> String {
        if isStopped.load(ordering: .relaxed) { throw .stopping }
        var refusal: PrewarmRefusal?
        do throws(LedgerError) {
            // A list with this key may be on this node only.
            if let request = order.request { refusal = try await own.refusal(of: request) }
            if refusal == nil {
                do throws(RedisError) {
                    guard let shared else { throw .unavailable("there is no cluster") }
                    refusal = try await shared.add(order, limit: limits.urls)
                } catch {
                    refusal = try await own.add(order, limits)
                }
            }
        } catch {
            throw .notStored(cause: error.description)
        }
        if case .known(let id) = refusal { return id }
        if let refusal { throw refusal }
        return order.id
    }

    /// Returns the report on a list; nil if the list is unknown or was removed.
    ///
    /// - Parameters:
    ///   - first: The index of the first requested outcome; nil for none.
    ///   - isCancelling: Whether to drop the list's pending entries.
    package func report(
        _ id: String, from first: Int?, isCancelling: Bool = false
    ) async throws(PrewarmRefusal) -> PrewarmReport? {
        do throws(LedgerError) {
            if isCancelling { try await own.cancel(id) }
            if let report = try await own.report(id, from: first) { return report }
        } catch {
            throw isCancelling ? .notStored(cause: error.description) : .unknown(cause: error.description)
        }
        guard let shared else { return nil }
        do throws(RedisError) {
            let report = try await shared.report(id, from: first)
            if isCancelling, report != nil { try await shared.cancel(id) }
            return report
        } catch {
            throw .unknown(cause: error.description)
        }
    }

    /// The latest lists of this node and of the cluster, newest first.
    package func lists() async throws(PrewarmRefusal) -> [PrewarmReport] {
        do {
            let lists = try await own.lists() + (shared?.lists() ?? [])
            return Array(
                lists.sorted { ($0.added ?? 0, $0.id) > ($1.added ?? 0, $1.id) }.prefix(PrewarmReport.listLimit))
        } catch {
            throw .unknown(cause: "\(error)")
        }
    }
}

/// The stored form of a list entry, which any node may process later.
struct QueuedEntry: Codable {
    let url: String
    let format: String
    let options: [String: String]
    let number: Int
    /// Attempts after the first.
    let retries: Int
    /// The number of entries of the list that a node works on at the same time.
    let concurrency: Int

    var entry: PrewarmEntry { PrewarmEntry(url: url, format: format, options: options) }
}

extension PrewarmEntry {
    /// Returns the entry as lists store it; see ``QueuedEntry``.
    package func queued(_ number: Int, retries: Int, concurrency: Int) -> [UInt8] {
        JSONText.encode(
            QueuedEntry(
                url: url, format: format, options: options, number: number, retries: retries, concurrency: concurrency))
    }
}
