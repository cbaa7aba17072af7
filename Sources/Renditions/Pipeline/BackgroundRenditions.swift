internal import DequeModule
internal import Sandbox
internal import Synchronization
internal import SystemIO

/// Produces renditions that no client waits for, at the priority of prewarming. An entry may name a rendition that is produced
/// first, because clients wait for it.
///
/// The numbers of waiting and of concurrent entries are bounded. An entry beyond the bound is dropped, and a rendition that
/// waits already is not added again. The clients that caused the entries take turns, and none may fill the queue: a list of
/// sources that do not answer would otherwise delay the renditions of all others for an hour. Any thread.
package final class BackgroundRenditions: Sendable {
    /// The result of an entry, as the metrics name it.
    package enum Outcome: String, Sendable, CaseIterable {
        /// The rendition was produced.
        case made
        /// The rendition was stored already.
        case hit
        /// It could not be produced, or the origin forbids storing it.
        case failed
        /// Too many entries were waiting.
        case dropped
    }

    private struct Entry: Sendable {
        let rendition: RenditionRequest
        let predecessor: RenditionRequest?
    }

    private struct State {
        /// The entries of each client in the order of their arrival. No value is empty.
        var waiting: [ClientNetwork?: Deque<Entry>] = [:]
        /// The clients with entries; the first one is next.
        var turns: Deque<ClientNetwork?> = []
        /// The renditions that wait or are in progress.
        var known: Set<FlightKey> = []
        /// Nil until ``BackgroundRenditions/start(_:)``, and after ``BackgroundRenditions/stop()``.
        var pipeline: (@Sendable () -> RenditionPipeline)?

        var count: Int { waiting.values.reduce(0) { $0 + $1.count } }

        /// Whether an entry fits beside those that wait. A client gets at most three times as many places as are free.
        func hasRoom(for client: ClientNetwork?, within limit: Int) -> Bool {
            let free = limit - count
            guard let client else { return free > 0 }
            return waiting[client]?.count ?? 0 < 3 * free
        }

        mutating func append(_ entry: Entry, of client: ClientNetwork?) {
            if waiting[client] == nil { turns.append(client) }
            waiting[client, default: []].append(entry)
        }

        mutating func popNext() -> Entry? {
            guard let client = turns.popFirst(), var entries = waiting.removeValue(forKey: client) else { return nil }
            let entry = entries.popFirst()
            if !entries.isEmpty {
                waiting[client] = entries
                turns.append(client)
            }
            return entry
        }
    }

    private let waitingLimit: Int
    private let count: @Sendable (Outcome) -> Void
    private let state = Mutex(State())
    private let runners: TaskRunners

    /// - Parameters:
    ///   - concurrency: The number of entries in progress at the same time.
    ///   - waiting: The number of entries that may wait.
    ///   - count: Counts the outcome of an entry.
    package init(concurrency: Int, waiting: Int = 1000, count: @escaping @Sendable (Outcome) -> Void) {
        waitingLimit = waiting
        self.count = count
        runners = TaskRunners(limit: concurrency)
    }

    /// Starts processing.
    ///
    /// - Parameter pipeline: Returns the pipeline of the current settings.
    package func start(_ pipeline: @escaping @Sendable () -> RenditionPipeline) {
        state.withLock { $0.pipeline = pipeline }
        wake()
    }

    /// Discards waiting entries, cancels those in progress, and ignores later entries.
    package func stop() {
        state.withLock { state in
            state.waiting = [:]
            state.turns = []
            state.pipeline = nil
        }
        runners.cancelAll()
    }

    /// The number of entries that wait.
    package var waiting: Int { state.withLock { $0.count } }

    /// Whether a rendition may be added while at most `limit` may wait.
    package func hasRoom(for rendition: RenditionRequest, within limit: Int) -> Bool {
        state.withLock { $0.hasRoom(for: rendition.client, within: limit) }
    }

    /// Whether a rendition waits or is in progress.
    package func contains(_ rendition: RenditionRequest) -> Bool {
        state.withLock { $0.known.contains(FlightKey(rendition)) }
    }

    /// Adds a rendition, unless it waits or is in progress already. It counts as a miss of the client. A client that has
    /// used up its allowance adds nothing, nor does a request that is answered from the store only.
    ///
    /// - Parameter predecessor: The rendition that clients wait for. It is produced first, if it is not stored.
    /// - Returns: Whether it waits or is in progress now.
    @discardableResult
    package func add(_ rendition: RenditionRequest, after predecessor: RenditionRequest? = nil) -> Bool {
        if contains(rendition) { return true }
        guard !rendition.isOnlyFromStore, rendition.allowance.useIfAvailable() else { return false }
        let entry = Entry(rendition: Self.inBackground(rendition), predecessor: predecessor.map(Self.inBackground))
        let isDropped = state.withLock { state in
            guard state.pipeline != nil, !state.known.contains(FlightKey(rendition)) else { return false }
            guard state.hasRoom(for: rendition.client, within: waitingLimit) else { return true }
            state.known.insert(FlightKey(rendition))
            state.append(entry, of: rendition.client)
            return false
        }
        if isDropped {
            rendition.allowance.giveBack()
            count(.dropped)
        }
        wake()
        return contains(rendition)
    }

    private static func inBackground(_ request: RenditionRequest) -> RenditionRequest {
        var copy = RenditionRequest(
            request.rendition, of: request.source, urgency: .prewarm, alternative: request.alternative)
        copy.companion = request.companion
        return copy
    }

    private func wake() {
        runners.wake(taking: take) { (entry: Entry, pipeline: RenditionPipeline) in
            let outcome = await Self.outcome(entry, pipeline)
            self.state.withLock { _ = $0.known.remove(FlightKey(entry.rendition)) }
            if let outcome { self.count(outcome) }
        }
    }

    private func take() -> (Entry, RenditionPipeline)? {
        state.withLock { state in
            guard let pipeline = state.pipeline else { return nil }
            return state.popNext().map { ($0, pipeline()) }
        }
    }

    /// Produces the predecessor, then the rendition; returns nil if the task was cancelled.
    private static func outcome(_ entry: Entry, _ pipeline: RenditionPipeline) async -> Outcome? {
        do throws(RenditionError) {
            // Joins the flight of a client that has asked for it meanwhile, which then keeps that client's urgency.
            if let predecessor = entry.predecessor, !(try await pipeline.find(predecessor).isStorable) { return .failed }
            switch try await pipeline.find(entry.rendition).provenance {
            case .hit, .stale: return .hit
            default: return .made
            }
        } catch {
            return error == .cancelled ? nil : .failed
        }
    }
}
