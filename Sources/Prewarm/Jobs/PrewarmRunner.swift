internal import Fleet
internal import Foundation
internal import Synchronization
internal import SystemIO
internal import Telemetry

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

    /// The number of waiting and pausing entries at which no more are claimed.
    private static let waitingLimit = 1000
    /// The number of those of one list at which no more of this list are claimed.
    private static let waitingLimitOfList = 100

    /// See ``PrewarmQueue/Limits/concurrency``.
    private let concurrency: Int
    private let meter: LabelledCounter
    private let state = Mutex(State())

    private struct Work {
        let ticket: PrewarmTicket
        /// Nil for a report, and for an entry that cannot be read.
        let entry: QueuedEntry?
        var attempts = Prewarmer.Attempts()
        var place: EntryPlaces.Place
        /// Whether the list may have been cancelled since the entry was claimed.
        var hasWaited = false
        /// The end of a pause between two attempts.
        var start = ContinuousClock.now

        /// The number of places of the entry's list.
        var concurrency: Int { entry?.concurrency ?? .max }
    }

    private struct State {
        /// The claimed entries and reports: those in progress, and those that wait.
        var active: Set<PrewarmTicket> = []
        /// Claimed entries that wait for places of their lists or origins on this node, and those that pause.
        var waiting: [Work] = []
        /// The number of entries in progress. Those that pause do not count.
        var running = 0
        /// The places of the entries in progress or in a pause, by list.
        var places: [String: EntryPlaces] = [:]
        var loop: Task<Void, Never>?
        /// When a list was added or an entry ended, or this node started: it may have ended with claims on entries.
        var lastActivity = ContinuousClock.now

        /// The lists with entries that have to wait for others of their list, and those with many that wait.
        var fullLists: Set<String> {
            let lists = Dictionary(grouping: waiting, by: \.ticket.list).filter { list, waiting in
                waiting.count >= PrewarmRunner.waitingLimitOfList
                    || waiting.contains { places[list]?.areTaken(of: $0.concurrency) == true }
            }
            return Set(lists.keys)
        }

        /// Adds claimed entries and reports to those that wait.
        mutating func add(_ tickets: [PrewarmTicket]) {
            for ticket in tickets where active.insert(ticket).inserted {
                let entry = try? JSONDecoder().decode(QueuedEntry.self, from: Data(ticket.payload))
                // A concurrency of 0 would let the entry wait forever.
                let valid = entry.flatMap { $0.concurrency > 0 ? $0 : nil }
                waiting.append(Work(ticket: ticket, entry: valid, place: .init(of: valid?.entry)))
            }
        }

        /// Removes and returns the waiting entries and reports that may start now.
        ///
        /// - Parameter concurrency: The most entries in progress. Reports do not count, because they wait for their receivers.
        mutating func takeStartable(_ concurrency: Int) -> [Work] {
            var (startable, others): ([Work], [Work]) = ([], [])
            for var work in waiting {
                let isReport = work.ticket.callback != nil
                let mayStart =
                    isReport
                    || running < concurrency && work.start <= .now
                        && places[work.ticket.list, default: EntryPlaces()].take(&work.place, of: work.concurrency)
                guard mayStart else {
                    work.hasWaited = true
                    others.append(work)
                    continue
                }
                if !isReport { running += 1 }
                startable.append(work)
            }
            waiting = others
            return startable
        }

        /// Takes an entry or a report out of those in progress.
        ///
        /// - Parameter pause: The time until the next attempt at the entry; nil if there is none.
        mutating func end(_ work: Work, pause: Prewarmer.Pause?) {
            if work.ticket.callback == nil { running -= 1 }
            let list = work.ticket.list
            if let pause {
                var work = work
                // Without capacity, other entries of the list could not be made either.
                if pause.isForOrigin { places[list]?.leaveToOtherOrigins(&work.place) }
                (work.start, work.hasWaited) = (.now + pause.duration, true)
                waiting.append(work)
                return
            }
            active.remove(work.ticket)
            places[list]?.leave(work.place)
            if places[list]?.isEmpty == true { places[list] = nil }
        }
    }

    init(concurrency: Int, meter: LabelledCounter) {
        self.concurrency = concurrency
        self.meter = meter
    }

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
                let (startable, free, full) = state.withLock { state in
                    let startable = state.takeStartable(concurrency)
                    let free = state.waiting.count < Self.waitingLimit ? concurrency - state.running : 0
                    return (startable, free, state.fullLists)
                }
                for work in startable {
                    group.addTask {
                        var work = work
                        let pause = await self.process(&work, lists, prewarmer, report)
                        self.state.withLock { $0.end(work, pause: pause) }
                        lists.arrivals.signal()
                        guard let pause else { return }
                        try? await Task.sleep(for: pause.duration)
                        lists.arrivals.signal()
                    }
                }
                let tickets = free > 0 ? (try? await lists.claim(free, except: full)) ?? [] : []
                state.withLock { $0.add(tickets) }
                if tickets.isEmpty, await lists.arrivals.wait(for: pollInterval) { state.withLock { $0.lastActivity = .now } }
            }
            group.cancelAll()
        }
    }

    /// Works on an entry or a report. Returns the pause before the next attempt; nil if there is none.
    private func process(
        _ work: inout Work, _ lists: some PrewarmLists, _ prewarmer: Prewarmer, _ report: @escaping PrewarmQueue.Report
    ) async -> Prewarmer.Pause? {
        let ticket = work.ticket
        if let callback = ticket.callback {
            await send(report, ticket, to: callback, lists)
            return nil
        }
        // The claim on an entry of a cancelled list expires.
        if work.hasWaited, (try? await lists.report(ticket.list, from: nil))?.state ?? "cancelled" == "cancelled" { return nil }
        var outcome = PrewarmOutcome(code: "bad_request", detail: "The entry cannot be read.")
        if let entry = work.entry {
            switch await prewarmer.attempt(entry.entry, retries: entry.retries, &work.attempts) {
            case .ended(let found)?: outcome = found
            case .paused(let pause)?: return pause
            case nil: return nil
            }
        }
        // If counting fails, the claim expires, and the runner that processes the entry again finds the rendition.
        let result = PrewarmReport.Result(number: work.entry?.number ?? -1, outcome: outcome)
        if (try? await lists.finish(ticket, result, url: work.entry?.url ?? "")) == true {
            meter.increment(outcome.kind.rawValue)
        }
        return nil
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
        let isBusy = state.withLock { .now - $0.lastActivity < Self.busyPeriod }
        return isBusy ? Self.busyPollInterval : Self.idlePollInterval
    }
}
