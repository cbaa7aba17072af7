package import Cluster
internal import Foundation
package import Renditions
internal import Synchronization
internal import SystemIO

/// Processes entries of shared lists on this node, with the concurrency limit of the local queue.
package final class SharedPrewarmRunner: Sendable {
    /// The pause between two polls while no list is in progress. A message of a new list ends it.
    private static let idlePollInterval = Duration.seconds(60)
    /// The pause between two polls while a list may be in progress, so that claims of a dead node are taken over.
    private static let busyPollInterval = Duration.seconds(4)
    /// The time after the last entry or message during which a list counts as in progress.
    private static let busyPeriod = Duration.seconds(60)
    private static let renewInterval = Duration.seconds(2)
    private let concurrency: Int
    private let pollSignal = AsyncSignal()
    private let state = Mutex(State())

    private struct State {
        /// Nil until ``SharedPrewarmRunner/start(_:_:describe:)``.
        var lists: SharedPrewarm?
        /// The claimed entries: those in progress, and those that wait.
        var active: Set<SharedPrewarm.Ticket> = []
        /// Claimed entries that wait because their lists have reached their concurrency on this node.
        var waiting: [(ticket: SharedPrewarm.Ticket, entry: SharedEntry?)] = []
        /// The entries in progress, by list.
        var running: [String: Int] = [:]
        var loop: Task<Void, Never>?
        var report: Report = { _, _, _ in }
        /// When an entry or a message of a list was last seen; nil before the first.
        var lastActivity: ContinuousClock.Instant?

        /// Takes the waiting entries that may begin now.
        mutating func takeStartable() -> [(ticket: SharedPrewarm.Ticket, entry: SharedEntry?)] {
            var startable: [(ticket: SharedPrewarm.Ticket, entry: SharedEntry?)] = []
            waiting.removeAll { work in
                let count = running[work.ticket.list, default: 0]
                guard count < work.entry?.concurrency ?? .max else { return false }
                running[work.ticket.list] = count + 1
                startable.append(work)
                return true
            }
            return startable
        }

        mutating func end(_ ticket: SharedPrewarm.Ticket) {
            active.remove(ticket)
            let count = running[ticket.list, default: 0]
            running[ticket.list] = count > 1 ? count - 1 : nil
        }
    }

    /// Sends the report on a list to its callback, and calls the function when the receiver has accepted it, or it was given up. Any
    /// thread; must not block.
    package typealias Report = @Sendable (PrewarmReport, _ callback: String, _ ended: @escaping @Sendable () -> Void) -> Void

    /// The time after which another node reports a list, if this one has not.
    private static let reportTime = Duration.seconds(600)

    package init(concurrency: Int) {
        self.concurrency = concurrency
    }

    private var lists: SharedPrewarm? { state.withLock { $0.lists } }

    /// Adds a list for all nodes.
    ///
    /// - Parameter limit: The largest number of unfinished entries in the cluster.
    /// - Returns: False if this node has to process the list alone.
    package func add(_ order: PrewarmJob.Order, limit: Int) async throws(PrewarmRefusal) -> Bool {
        guard let lists else { return false }
        let payloads = order.entries.enumerated().map { number, entry in
            Array((try? JSONEncoder().encode(SharedEntry(entry, number, of: order))) ?? Data())
        }
        let refusal: PrewarmRefusal?
        do throws(RedisError) {
            refusal = try await lists.add(order.id, payloads, limit: limit, for: order.request, callback: order.callback)
        } catch {
            return false
        }
        if let refusal { throw refusal }
        return true
    }

    /// The report on a list; nil if it is unknown.
    ///
    /// - Parameter first: The index of the first requested outcome; nil for none.
    package func report(_ id: String, from first: Int?) async throws(RedisError) -> PrewarmReport? {
        guard let lists else { return nil }
        // The outcomes are read first, so that a list that is reported as done lacks none.
        var results: [[UInt8]]?
        if let first { results = try await lists.results(of: id, from: first, limit: PrewarmReport.resultLimit) }
        return try await lists.progress(of: id).map { PrewarmReport(id, $0, results) }
    }

    /// Summaries of every prewarm list in the cluster.
    package func summaries() async throws(RedisError) -> [PrewarmReport] {
        try await lists?.lists().map { PrewarmReport($0.id, $0.progress, nil).summary(added: $0.added) } ?? []
    }

    /// Drops the unfinished entries of a list.
    package func cancel(_ id: String) async throws(RedisError) {
        try await lists?.cancel(id)
    }

    /// Starts to process entries.
    package func start(
        _ lists: SharedPrewarm, _ pipeline: @escaping @Sendable () -> RenditionPipeline,
        describe: @escaping PrewarmFailure.Describe, report: @escaping Report
    ) {
        let prewarmer = Prewarmer(pipeline: pipeline, describe: describe)
        let loop = Task(priority: .utility) { await self.run(lists, prewarmer) }
        state.withLock { state in
            state.lists = lists
            state.loop = loop
            state.report = report
        }
    }

    /// Claims no more entries and cancels those in progress. Other nodes process them after their claims have expired.
    package func stop() {
        state.withLock { $0.loop }?.cancel()
        pollSignal.signal()
    }

    /// Polls for entries now: a list was added, or an entry ended.
    package func wake() {
        state.withLock { $0.lastActivity = .now }
        pollSignal.signal()
    }

    private func run(_ lists: SharedPrewarm, _ prewarmer: Prewarmer) async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.renewClaims(lists) }
            while !Task.isCancelled {
                // Reports wait for their receivers.
                let free = concurrency - state.withLock { $0.active.count { !$0.isReport } }
                let entries = free > 0 ? (try? await lists.claim(free)) ?? [] : []
                let startable = state.withLock { state in
                    for ticket in entries {
                        state.active.insert(ticket)
                        let entry = try? JSONDecoder().decode(SharedEntry.self, from: Data(ticket.payload))
                        state.waiting.append((ticket, entry))
                    }
                    return state.takeStartable()
                }
                for work in startable {
                    group.addTask {
                        await self.process(work.ticket, work.entry, lists, prewarmer)
                        self.state.withLock { $0.end(work.ticket) }
                        self.wake()
                    }
                }
                if entries.isEmpty { await pollSignal.wait(for: pollInterval) }
            }
            group.cancelAll()
        }
    }

    private func process(
        _ ticket: SharedPrewarm.Ticket, _ entry: SharedEntry?, _ lists: SharedPrewarm, _ prewarmer: Prewarmer
    ) async {
        if ticket.isReport { return await report(ticket, lists) }
        // If counting fails, the claim expires, and a node that processes the entry again finds the rendition.
        guard let entry else {
            let failure = SharedPrewarm.Failure(url: "", code: "bad_request", detail: "The entry cannot be read.")
            _ = try? await lists.finish(ticket, .failed(failure))
            return
        }
        guard let outcome = await prewarmer.warm(entry.entry, retries: entry.retries) else { return }
        let result = try? JSONEncoder().encode(PrewarmReport.Result(number: entry.number, outcome: outcome))
        _ = try? await lists.finish(
            ticket, SharedPrewarm.Outcome(outcome, url: entry.url), result: result.map { Array($0) } ?? [])
    }

    /// Reports a list that has ended. If that does not end, the claim expires, and another node reports it.
    private func report(_ ticket: SharedPrewarm.Ticket, _ lists: SharedPrewarm) async {
        guard let progress = try? await lists.progress(of: ticket.list) else { return }
        if let callback = progress.callback {
            let ended = AsyncSignal()
            state.withLock { $0.report }(PrewarmReport(ticket.list, progress, nil), callback) { ended.signal() }
            guard await ended.wait(for: Self.reportTime) else { return }
        }
        try? await lists.finishReport(ticket)
    }

    private func renewClaims(_ lists: SharedPrewarm) async {
        while !Task.isCancelled {
            try? await Task.sleep(for: Self.renewInterval)
            let active = state.withLock { Array($0.active) }
            if !active.isEmpty { try? await lists.renew(active) }
        }
    }

    private var pollInterval: Duration {
        let isBusy = state.withLock { $0.lastActivity.map { .now - $0 < Self.busyPeriod } ?? false }
        return isBusy ? Self.busyPollInterval : Self.idlePollInterval
    }
}

/// The form of an entry in a shared list.
private struct SharedEntry: Codable {
    let url: String
    let format: String
    let options: [String: String]
    /// The index of the entry in its list.
    let number: Int
    let retries: Int
    /// The number of entries of the list that a node works on at the same time.
    let concurrency: Int

    init(_ entry: PrewarmEntry, _ number: Int, of order: PrewarmJob.Order) {
        url = entry.url
        format = entry.format
        options = entry.options
        self.number = number
        retries = order.retries
        concurrency = order.concurrency
    }

    var entry: PrewarmEntry { PrewarmEntry(url: url, format: format, options: options) }
}

extension SharedPrewarm.Outcome {
    /// - Parameter url: The URL of the entry.
    fileprivate init(_ outcome: PrewarmOutcome, url: String) {
        switch outcome.kind {
        case .failed:
            self = .failed(SharedPrewarm.Failure(url: url, code: outcome.code ?? "", detail: outcome.detail ?? ""))
        case .hit, .new:
            self = .made(isHit: outcome.kind == .hit, bytes: Int64(outcome.bytes), saved: Int64(outcome.saved))
        }
    }
}

extension PrewarmReport {
    /// The report on a list that several nodes process.
    ///
    /// - Parameter results: The requested outcomes, each as JSON; nil if none were requested.
    fileprivate init(_ id: String, _ progress: SharedPrewarm.Progress, _ results: [[UInt8]]?) {
        self.results = results?.compactMap { try? JSONDecoder().decode(Result.self, from: Data($0)) }
        self.id = id
        total = Int(progress.total)
        done = Int(progress.done + progress.failed)
        state = done >= total ? "done" : "running"
        failed = Int(progress.failed)
        hits = Int(progress.hits)
        new = Int(max(0, progress.done - progress.hits))
        bytes = Int(progress.bytes)
        saved = Int(progress.saved)
        errors = progress.errors
    }
}
