package import Cluster
internal import Foundation
internal import Synchronization

/// A list of entries to bring into the cache, and its progress. Thread-safe.
package final class PrewarmJob: Sendable {
    /// The immutable part of a job.
    package struct Order: Sendable {
        /// 32 hexadecimal digits.
        package let id: String
        package let entries: [PrewarmEntry]
        /// Attempts after the first, per entry.
        let retries: Int
        /// The number of entries in progress at the same time.
        let concurrency: Int
        /// The URL that gets the report when all entries are processed; nil for none.
        package let callback: String?
        /// The request that has added the job, if it may be repeated.
        package let request: PrewarmRequest?
        /// When the job was added, in milliseconds since 1970.
        package let added: Int64

        package init(
            id: String, entries: [PrewarmEntry], retries: Int, concurrency: Int, callback: String? = nil,
            request: PrewarmRequest? = nil, added: Int64 = Int64(Date.now.timeIntervalSince1970 * 1000)
        ) {
            self.id = id
            self.entries = entries
            self.retries = retries
            self.concurrency = concurrency
            self.callback = callback
            self.request = request
            self.added = added
        }
    }

    /// A snapshot of the progress.
    struct Progress: Sendable {
        var totals = PrewarmTotals()
        var state = State.waiting
        /// Outcomes in the order of their arrival, each with the number of its entry.
        var outcomes: [(number: Int, outcome: PrewarmOutcome)] = []
    }

    enum State: String, Sendable {
        case waiting
        case running
        case done
        case cancelled
    }

    private struct Work {
        var progress: Progress
        /// The pending entries, the next one last.
        var open: [Int]
        var running = 0
        /// Whether the callback has got the report, or is about to get it.
        var isReported: Bool
    }

    package let order: Order
    private let state: Mutex<Work>

    /// - Parameters:
    ///   - outcomes: Outcomes from before a restart.
    ///   - isCancelled: Whether the job was cancelled before the restart.
    ///   - isReported: Whether the callback got the report before the restart.
    init(
        _ order: Order, outcomes: [(number: Int, outcome: PrewarmOutcome)] = [], isCancelled: Bool = false,
        isReported: Bool = false
    ) {
        self.order = order
        var progress = Progress()
        var open = Set(order.entries.indices)
        for known in outcomes where open.remove(known.number) != nil {
            progress.totals.add(known.outcome)
            progress.outcomes.append(known)
        }
        if isCancelled { progress.state = .cancelled } else if open.isEmpty { progress.state = .done }
        state = Mutex(Work(progress: progress, open: isCancelled ? [] : open.sorted(by: >), isReported: isReported))
    }

    /// A consistent snapshot.
    var progress: Progress { state.withLock { $0.progress } }

    var isReported: Bool { state.withLock { $0.isReported } }

    /// The number of unfinished entries, those in progress included.
    var remaining: Int { state.withLock { $0.open.count + $0.running } }

    /// Whether no more outcomes will arrive.
    var isOver: Bool { state.withLock { $0.open.isEmpty && $0.running == 0 } }

    /// Takes the next pending entry; nil if none is pending or the job's concurrency limit is reached.
    func take() -> Int? {
        state.withLock { state in
            guard state.running < order.concurrency, let number = state.open.popLast() else { return nil }
            state.running += 1
            state.progress.state = .running
            return number
        }
    }

    /// Records the outcome of a taken entry; nil makes it pending again.
    func finish(_ number: Int, _ outcome: PrewarmOutcome?) {
        state.withLock { state in
            state.running -= 1
            if let outcome {
                state.progress.totals.add(outcome)
                state.progress.outcomes.append((number, outcome))
            } else if state.progress.state != .cancelled {
                state.open.append(number)
            }
            if state.open.isEmpty && state.running == 0 && state.progress.state != .cancelled { state.progress.state = .done }
        }
    }

    /// Whether the report is to be sent to the callback now. True once at most: when all entries are processed.
    func takeReport() -> Bool {
        state.withLock { state in
            guard order.callback != nil, state.progress.state == .done, !state.isReported else { return false }
            state.isReported = true
            return true
        }
    }

    /// Drops the pending entries. Entries in progress finish.
    ///
    /// - Returns: False if the job had ended.
    @discardableResult
    func cancel() -> Bool {
        state.withLock { state in
            guard state.progress.state != .done, state.progress.state != .cancelled else { return false }
            state.progress.state = .cancelled
            state.open = []
            return true
        }
    }
}

/// The body of `GET /prewarm/{id}` (docs/api.md).
package struct PrewarmReport: Codable {
    /// An outcome with the number of its entry.
    struct Result: Codable {
        var number: Int
        var outcome: PrewarmOutcome
    }

    package var id: String
    /// When the job was added, in seconds since 1970; in lists of jobs only.
    package var added: Int64?
    package var state: String
    package var total: Int
    /// Finished entries, failures included.
    package var done: Int
    package var failed: Int
    package var hits: Int
    package var new: Int
    /// Bytes of the renditions that are in the cache.
    package var bytes: Int
    package var saved: Int
    /// The first failures; nil in lists of jobs.
    var errors: [SharedPrewarm.Failure]?
    /// Outcomes in the order of their arrival, starting at the requested one; nil if none was requested.
    var results: [Result]?

    /// The most failures in ``errors``.
    static let errorLimit = 100
    /// The most outcomes in ``results``.
    static let resultLimit = 1000

    /// - Parameter first: The index of the first requested outcome; nil for none.
    package init(_ job: PrewarmJob, from first: Int?) {
        let progress = job.progress
        id = job.order.id
        state = progress.state.rawValue
        total = job.order.entries.count
        done = progress.totals.done
        failed = progress.totals.failed
        hits = progress.totals.hits
        new = progress.totals.new
        bytes = progress.totals.bytes
        saved = progress.totals.saved
        errors = progress.outcomes.lazy.filter { $0.outcome.kind == .failed }.prefix(Self.errorLimit).map { failed in
            SharedPrewarm.Failure(
                url: job.order.entries[failed.number].url, code: failed.outcome.code ?? "",
                detail: failed.outcome.detail ?? "")
        }
        results = first.map { first in
            progress.outcomes.dropFirst(first).prefix(Self.resultLimit).map { Result(number: $0.number, outcome: $0.outcome) }
        }
    }
    /// The job as `GET /prewarm` lists it.
    ///
    /// - Parameter added: Milliseconds since 1970.
    func summary(added: Int64) -> PrewarmReport {
        var summary = self
        summary.added = added / 1000
        (summary.errors, summary.results) = (nil, nil)
        return summary
    }

    /// Summaries of the jobs of this node and of the cluster, newest first.
    ///
    /// - Parameter limit: The largest number.
    package static func newest(_ one: [PrewarmReport], _ other: [PrewarmReport], limit: Int) -> [PrewarmReport] {
        Array((one + other).sorted { ($0.added ?? 0, $0.id) > ($1.added ?? 0, $1.id) }.prefix(limit))
    }
}
