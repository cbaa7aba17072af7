internal import DequeModule
internal import Synchronization
package import SystemIO

/// The requests of this node that were answered with 202: those in progress, and those that ended within the last ten minutes.
///
/// Their number is bounded, and one client network has at most a quarter of it. Any thread; lives as long as the process.
package final class StatusRegistry: Sendable {
    /// Intervals, which tests shorten.
    package struct Timings: Sendable {
        /// The time for which a status is kept after the end.
        package var lifetime: Duration = .seconds(600)
        /// The interval at which an event stream checks the progress.
        package var interval: Duration = .milliseconds(250)
        /// The time after which an idle event stream sends a comment, so that proxies keep the connection open.
        package var heartbeat: Duration = .seconds(15)
        /// The minimum time between two reads of another node's status, and between two writes of this node's.
        package var sharing: Duration = .seconds(1)
        /// The time after which other nodes forget a status that is not final, unless it is written again.
        var sharedLifetime: Duration { sharing * 15 }
    }

    private struct Ended {
        let id: UInt128
        /// Nanoseconds of the monotonic clock.
        let expires: UInt64
    }

    private struct SharedStream: Equatable {
        let status: UInt128
        let client: ClientNetwork?
    }

    private struct State {
        var requests: [UInt128: AsyncRequest] = [:]
        var clients: [ClientNetwork: Int] = [:]
        /// The ended requests in the order of their expiry.
        var ended: Deque<Ended> = []
        var limit: Int
        var isClosed = false
        /// The event streams of other nodes' statuses.
        var sharedStreams: [SharedStream] = []

        mutating func remove(_ id: UInt128) -> AsyncRequest? {
            guard let request = requests.removeValue(forKey: id) else { return nil }
            if let client = request.client, let count = clients[client] { clients[client] = count > 1 ? count - 1 : nil }
            return request
        }

        mutating func removeExpired(at now: UInt64) {
            let count = ended.prefix { $0.expires <= now }.count
            for entry in ended.prefix(count) { _ = remove(entry.id) }
            ended.removeFirst(count)
        }

        /// Seconds until the next status expires, at least 1.
        func retryAfter(_ now: UInt64) -> Int {
            guard let next = ended.first else { return 5 }
            return Int(clamping: (next.expires - min(now, next.expires)) / 1_000_000_000) + 1
        }
    }

    /// The maximum number of concurrent event streams of other nodes' statuses. Each reads from the cluster once per second.
    private static let mostSharedStreams = 256

    let timings: Timings
    private let state: Mutex<State>
    /// Tasks that wait until the registry is closed.
    private let waiters = Waiters()
    private let now: @Sendable () -> UInt64

    /// - Parameter limit: The number of statuses; 0 answers no request with 202.
    package init(limit: Int, timings: Timings = Timings(), clock: TimeSource = .system) {
        self.timings = timings
        state = Mutex(State(limit: limit))
        now = clock.monotonicNanoseconds
    }

    /// Changes the limit. Statuses beyond a smaller one stay until they expire.
    package func setLimit(_ limit: Int) {
        state.withLock { $0.limit = limit }
    }

    /// Whether requests may be answered with 202.
    var isOn: Bool { state.withLock { $0.limit > 0 } }

    /// The number of statuses, and of those whose work has not ended.
    package var counts: (kept: Int, running: Int) {
        let now = now()
        return state.withLock { state in
            state.removeExpired(at: now)
            return (state.requests.count, state.requests.count - state.ended.count)
        }
    }

    var streams: Int {
        state.withLock { Array($0.requests.values) }.reduce(0) { $0 + $1.openStreams }
    }

    /// Permits another event stream of another node's status until the returned value is released; nil if there are too many
    /// for this status, for the client or in total, or after ``close()``.
    func openSharedStream(of id: UInt128, for client: ClientNetwork?) -> StreamPermit? {
        let stream = SharedStream(status: id, client: client)
        let isPermitted = state.withLock { state in
            let open = state.sharedStreams
            guard !state.isClosed, open.count < Self.mostSharedStreams,
                open.count(where: { $0.status == id }) < AsyncRequest.mostStreams,
                client == nil || open.count(where: { $0.client == client }) < Self.mostSharedStreams / 4
            else { return false }
            state.sharedStreams.append(stream)
            return true
        }
        guard isPermitted else { return nil }
        return StreamPermit {
            self.state.withLock { state in
                if let index = state.sharedStreams.firstIndex(of: stream) { state.sharedStreams.remove(at: index) }
            }
        }
    }

    /// The number of event streams of other nodes' statuses.
    var sharedStreams: Int { state.withLock { $0.sharedStreams.count } }

    /// Registers a request.
    ///
    /// - Throws: `overloaded`, `rate_limited` if the client has too many statuses, or `draining`.
    func open(_ client: ClientNetwork?) throws(Problem) -> AsyncRequest {
        let now = now()
        return try state.withLock { state throws(Problem) in
            if state.isClosed { throw .draining }
            state.removeExpired(at: now)
            guard state.requests.count < state.limit else {
                throw Problem(
                    503, "overloaded", "Too many asynchronous requests are in progress or have just ended.",
                    retryAfter: state.retryAfter(now))
            }
            if let client {
                guard state.clients[client, default: 0] < max(1, state.limit / 4) else {
                    throw Problem(
                        429, "rate_limited", "This address has sent too many asynchronous requests.",
                        retryAfter: state.retryAfter(now))
                }
                state.clients[client, default: 0] += 1
            }
            let request = AsyncRequest(client: client)
            state.requests[request.id] = request
            return request
        }
    }

    /// Records that the work of a request has ended: its status expires from now on.
    func ended(_ request: AsyncRequest) {
        let expires = now() + UInt64(max(0, timings.lifetime / .nanoseconds(1)))
        state.withLock { state in
            guard state.requests[request.id] != nil else { return }
            state.ended.append(Ended(id: request.id, expires: expires))
        }
    }

    /// The request with an id; nil if there is none, or its status has expired.
    func find(_ id: UInt128) -> AsyncRequest? {
        let now = now()
        return state.withLock { state in
            state.removeExpired(at: now)
            return state.requests[id]
        }
    }

    /// Removes a request, and cancels it if it has not ended.
    func remove(_ request: AsyncRequest) {
        state.withLock { state in
            _ = state.remove(request.id)
            state.ended.removeAll { $0.id == request.id }
        }
        // The status of a request that is cancelled but not removed is shown to other nodes.
        request.cancel()
    }

    /// Cancels all requests in progress and ends all event streams. Later requests are refused.
    package func close() {
        let requests = state.withLock { state in
            state.isClosed = true
            return Array(state.requests.values)
        }
        for request in requests where request.cancel() { ended(request) }
        waiters.notify()
    }

    /// Whether event streams must end.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Suspends until ``close()``, the cancellation of the task, or the end of the interval.
    func awaitClose(within interval: Duration) async {
        await waiters.wait(within: interval) { isClosed }
    }
}
