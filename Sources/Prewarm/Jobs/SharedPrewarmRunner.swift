package import Cluster
internal import Foundation
package import Renditions
internal import Synchronization
internal import SystemIO

/// Processes entries of shared lists on this node, at most as many at a time as the local queue does.
package final class SharedPrewarmRunner: Sendable {
    /// The pause between two polls while no list is in progress. A message of a new list ends it.
    private static let idlePollInterval = Duration.seconds(60)
    /// The pause between two polls while a list may be in progress, so that claims of a dead node are taken over.
    private static let busyPollInterval = Duration.seconds(4)
    /// The time after the last entry or message during which a list counts as in progress.
    private static let busyPeriod = Duration.seconds(60)
    private static let renewInterval = Duration.seconds(2)
    /// The attempts after the first, per entry.
    private static let retries = 2

    private let concurrency: Int
    private let pollSignal = AsyncSignal()
    private let state = Mutex(State())

    private struct State {
        /// Nil until ``SharedPrewarmRunner/start(_:_:describe:)``.
        var lists: SharedPrewarm?
        var active: Set<SharedPrewarm.Ticket> = []
        var loop: Task<Void, Never>?
        /// When an entry or a message of a list was last seen; nil before the first.
        var lastActivity: ContinuousClock.Instant?
    }

    package init(concurrency: Int) {
        self.concurrency = concurrency
    }

    private var lists: SharedPrewarm? { state.withLock { $0.lists } }

    /// Adds a list for all nodes. Returns false if this node has to process it alone.
    package func add(_ order: PrewarmJob.Order) async -> Bool {
        let payloads = order.entries.map { Array((try? JSONEncoder().encode(SharedEntry($0))) ?? Data()) }
        guard let lists else { return false }
        do throws(RedisError) {
            try await lists.add(order.id, payloads)
            return true
        } catch {
            return false
        }
    }

    /// The report on a list; nil if it is unknown.
    package func report(_ id: String) async -> PrewarmReport? {
        guard let progress = try? await lists?.progress(of: id) else { return nil }
        return PrewarmReport(id, progress)
    }

    /// Drops the unfinished entries of a list.
    package func cancel(_ id: String) async {
        try? await lists?.cancel(id)
    }

    /// Starts to process entries.
    package func start(
        _ lists: SharedPrewarm, _ pipeline: @escaping @Sendable () -> RenditionPipeline,
        describe: @escaping PrewarmFailure.Describe
    ) {
        let prewarmer = Prewarmer(pipeline: pipeline, describe: describe)
        let loop = Task(priority: .utility) { await self.run(lists, prewarmer) }
        state.withLock { state in
            state.lists = lists
            state.loop = loop
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
                let free = concurrency - state.withLock { $0.active.count }
                let entries = free > 0 ? (try? await lists.claim(free)) ?? [] : []
                for entry in entries {
                    state.withLock { _ = $0.active.insert(entry) }
                    group.addTask {
                        await self.process(entry, lists, prewarmer)
                        self.state.withLock { _ = $0.active.remove(entry) }
                        self.wake()
                    }
                }
                if entries.isEmpty { await pollSignal.wait(for: pollInterval) }
            }
            group.cancelAll()
        }
    }

    private func process(_ entry: SharedPrewarm.Ticket, _ lists: SharedPrewarm, _ prewarmer: Prewarmer) async {
        guard let known = try? JSONDecoder().decode(SharedEntry.self, from: Data(entry.payload)) else {
            let failure = SharedPrewarm.Failure(url: "", code: "bad_request", detail: "The entry cannot be read.")
            return await finish(entry, lists, .failed(failure))
        }
        guard let outcome = await prewarmer.warm(known.entry, retries: Self.retries) else { return }
        await finish(entry, lists, SharedPrewarm.Outcome(outcome, url: known.url))
    }

    private func finish(_ entry: SharedPrewarm.Ticket, _ lists: SharedPrewarm, _ outcome: SharedPrewarm.Outcome) async {
        // If this fails, the claim expires, and a node that processes the entry again finds the rendition.
        _ = try? await lists.finish(entry, outcome)
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

    init(_ entry: PrewarmEntry) {
        url = entry.url
        format = entry.format
        options = entry.options
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
    /// The report on a list that several nodes process. Single outcomes are not known.
    fileprivate init(_ id: String, _ progress: SharedPrewarm.Progress) {
        self.id = id
        total = Int(progress.total)
        done = Int(progress.done + progress.failed)
        state = done >= total ? "done" : "running"
        failed = Int(progress.failed)
        hits = Int(progress.hits)
        new = Int(max(0, progress.done - progress.hits))
        bytes = Int(progress.bytes)
        saved = Int(progress.saved)
        errors = progress.errors.map { Failure(url: $0.url, code: $0.code, detail: $0.detail) }
    }
}
