internal import Fleet
internal import Foundation
internal import Renditions
internal import Synchronization
internal import SystemIO
internal import Telemetry

/// Processes entries of lists on this node.
final class PrewarmRunner: Sendable {
    /// The pause between two polls while no list is in progress. Adding a list ends the pause.
    private static let idlePollInterval = Duration.seconds(60)
    /// The pause between two polls while a list may be in progress, so that claims that have expired are taken over.
    private static let busyPollInterval = Duration.seconds(4)
    /// The time after the last entry or message during which a list counts as in progress.
    private static let busyPeriod = Duration.seconds(60)
    private static let renewInterval = Duration.seconds(2)
    /// The time after which a list is reported again, by any node.
    private static let reportTime = Duration.seconds(600)

    /// See ``PrewarmQueue/Limits/concurrency``.
    private let concurrency: Int
    private let meter: LabelledCounter
    private let state = Mutex(State())

    private typealias Work = (ticket: PrewarmTicket, entry: QueuedEntry?)

    private struct State {
        /// The claimed entries: those in progress, and those that wait.
        var active: Set<PrewarmTicket> = []
        /// Claimed entries that wait because their lists have reached their concurrency on this node.
        var waiting: [Work] = []
        /// The number of entries in progress, by list.
        var running: [String: Int] = [:]
        var loop: Task<Void, Never>?
        /// When a list was added or an entry ended; nil before the first.
        var lastActivity: ContinuousClock.Instant?

        /// Removes and returns the waiting entries that may start now.
        mutating func takeStartable() -> [Work] {
            var startable: [Work] = []
            waiting.removeAll { work in
                let count = running[work.ticket.list, default: 0]
                guard count < work.entry?.concurrency ?? .max else { return false }
                running[work.ticket.list] = count + 1
                startable.append(work)
                return true
            }
            return startable
        }

        mutating func end(_ ticket: PrewarmTicket) {
            active.remove(ticket)
            let count = running[ticket.list, default: 0]
            running[ticket.list] = count > 1 ? count - 1 : nil
        }
    }

    init(concurrency: Int, meter: LabelledCounter) {
        self.concurrency = concurrency
        self.meter = meter
    }

    /// Starts to process entries.
    func start(_ lists: some PrewarmLists, _ prewarmer: Prewarmer, _ report: @escaping PrewarmQueue.Report) {
        let loop = Task { await self.run(lists, prewarmer, report) }
        state.withLock { $0.loop = loop }
    }

    /// Stops claiming entries, and cancels those in progress, whose claims expire.
    func stop() {
        state.withLock { $0.loop }?.cancel()
    }

    private func run(_ lists: some PrewarmLists, _ prewarmer: Prewarmer, _ report: @escaping PrewarmQueue.Report) async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.renewClaims(lists) }
            while !Task.isCancelled {
                // Reports do not count, because they wait for their receivers.
                let free = concurrency - state.withLock { $0.active.count { $0.callback == nil } }
                let tickets = free > 0 ? (try? await lists.claim(free)) ?? [] : []
                let startable = state.withLock { state in
                    for ticket in tickets {
                        state.active.insert(ticket)
                        let entry = try? JSONDecoder().decode(QueuedEntry.self, from: Data(ticket.payload))
                        // No entry waits for a concurrency that is never reached.
                        state.waiting.append((ticket, entry.flatMap { $0.concurrency > 0 ? $0 : nil }))
                    }
                    return state.takeStartable()
                }
                for work in startable {
                    group.addTask {
                        await self.process(work, lists, prewarmer, report)
                        self.state.withLock { $0.end(work.ticket) }
                        lists.arrivals.signal()
                    }
                }
                if tickets.isEmpty, await lists.arrivals.wait(for: pollInterval) { state.withLock { $0.lastActivity = .now } }
            }
            group.cancelAll()
        }
    }

    private func process(
        _ work: Work, _ lists: some PrewarmLists, _ prewarmer: Prewarmer, _ report: @escaping PrewarmQueue.Report
    ) async {
        if let callback = work.ticket.callback { return await send(report, work.ticket, to: callback, lists) }
        var outcome = PrewarmOutcome(code: "bad_request", detail: "The entry cannot be read.")
        if let entry = work.entry {
            guard let found = await prewarmer.warm(entry.entry, retries: entry.retries) else { return }
            outcome = found
        }
        // If counting fails, the claim expires, and the runner that processes the entry again finds the rendition.
        let result = PrewarmReport.Result(number: work.entry?.number ?? -1, outcome: outcome)
        if (try? await lists.finish(work.ticket, result, url: work.entry?.url ?? "")) == true {
            meter.increment(outcome.kind.rawValue)
        }
    }

    /// Reports a list that has ended. If the report does not end, the claim expires, and the list is reported again.
    private func send(
        _ report: PrewarmQueue.Report, _ ticket: PrewarmTicket, to callback: String, _ lists: some PrewarmLists
    ) async {
        guard let document = try? await lists.report(ticket.list, from: nil) else { return }
        let ended = AsyncSignal()
        report(document, callback) { ended.signal() }
        guard await ended.wait(for: Self.reportTime) else { return }
        _ = try? await lists.finish(ticket, nil, url: "")
    }

    private func renewClaims(_ lists: some PrewarmLists) async {
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
