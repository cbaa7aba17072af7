internal import Synchronization
internal import SystemIO

/// How a caller's part in a flight begins.
package enum FlightStart: Sendable {
    /// The caller does the work, and then ends the lease.
    case lead(Lease)
    /// A node has done it. `isFollowed` if the caller waited for its flight.
    case found(SharedRecord, isFollowed: Bool)
    /// The caller does the work for this node only: the cluster cannot be used, or the caller's task was cancelled.
    case alone(RedisError)
}

/// Flights that the nodes of a cluster share: one node leads, and the others wait for its record.
///
/// Any thread. Callers suspend and can be cancelled.
final class FlightTable: LeaseTable {
    private struct Held {
        let key: String
        var renewed: Duration
    }

    private struct Waiter {
        let wakeup: AsyncSignal
        var value: [UInt8]?
    }

    private struct State {
        /// Leases of this node by their values.
        var held: [[UInt8]: Held] = [:]
        /// Callers that wait, by key and number.
        var waiters: [String: [Int: Waiter]] = [:]
        var lastNumber = 0
    }

    /// How often a caller looks again at once after the value has changed between two commands.
    private static let maxRaces = 4
    private static let maxLifetime: Duration = .seconds(30 * 86_400)

    private let commands: any RedisCommands
    private let keys: ClusterKeys
    private let nodeName: String
    private let history: PurgeHistory
    private let timings: ClusterTimings
    private let time: any ClusterTime
    private let meter: ClusterMeter
    private let executor: (any TaskExecutor)?
    private let isTakingPart: @Sendable () -> Bool
    private let state = Mutex(State())

    init(
        _ commands: any RedisCommands, _ keys: ClusterKeys, nodeName: String, _ history: PurgeHistory,
        _ timings: ClusterTimings,
        _ time: any ClusterTime, _ meter: ClusterMeter, executor: (any TaskExecutor)?,
        isTakingPart: @escaping @Sendable () -> Bool
    ) {
        self.commands = commands
        self.keys = keys
        self.nodeName = nodeName
        self.history = history
        self.timings = timings
        self.time = time
        self.meter = meter
        self.executor = executor
        self.isTakingPart = isTakingPart
    }

    // MARK: Joining

    /// Finds the record of a source's rendition, waits for a flight on another node, or takes the lease.
    ///
    /// - Parameters:
    ///   - alias: The rendition's name before anything is fetched: a digest in hexadecimal.
    ///   - sourceURL: The source's canonical URL.
    ///   - outdated: A record that the caller has got before and does not want again, such as a stale one.
    func findOrLead(_ alias: String, sourceURL: String, outdated: SharedRecord?) async -> FlightStart {
        guard isTakingPart() else { return alone(.unavailable("this node does not take part in the cluster")) }
        // Before the lease: purges that are applied from now on overtake the work.
        let position = history.position
        let key = keys.flight(alias, cover: history.cover(of: sourceURL))
        let value = Array("L:\(nodeName)/\(RandomText.make()):".utf8)
        // Callers subscribe before they look, so that no message is missed.
        let (number, wakeup) = addWaiter(key)
        defer { removeWaiter(number, key) }
        var isFollowed = false
        var races = 0
        while true {
            let step: Step
            do throws(RedisError) {
                step = try await look(key, value, sourceURL, position, outdated)
            } catch {
                // The server may have given the lease to this node.
                if error == .timedOut || error == .cancelled { abandon(key: key, value: value) }
                return alone(error)
            }
            switch step {
            case .lead(let lease): return .lead(lease)
            case .found(let record): return found(record, isFollowed)
            case .again where races < Self.maxRaces:
                races += 1
                continue
            case .again, .wait: break
            }
            races = 0
            isFollowed = true
            await wakeup.wait(for: timings.pollInterval, time)
            if Task.isCancelled { return alone(.cancelled) }
            if let bytes = takeMessage(number, key), let record = SharedRecord(bytes), isValid(record, sourceURL) {
                return found(record, true)
            }
        }
    }

    private enum Step {
        case lead(Lease)
        case found(SharedRecord)
        /// Another node's flight goes on.
        case wait
        /// The value has changed between two commands.
        case again
    }

    /// Looks for a record, takes the lease, or asks to be told of the flight's end; all within one command limit.
    private func look(
        _ key: String, _ value: [UInt8], _ sourceURL: String, _ position: StreamID, _ outdated: SharedRecord?
    ) async throws(RedisError) -> Step {
        let end = time.now + timings.commandLimit
        // A lease counts from before the command, so that it never outlasts the server's key.
        var start = time.now
        let replies = try await commands.run(
            [
                RedisCommand(
                    .statusOrBytes,
                    [
                        "SET", RedisArgument(key), RedisArgument(value), "NX", "GET", "PX", RedisArgument(timings.leaseTime),
                    ]),
                RedisCommand(.integer, ["INCR", RedisArgument(keys.fence)]),
            ], within: end - time.now, time)
        // The number is drawn while the lease holds, because the limit is shorter than the lease: later leases get greater ones.
        var known = try replies[0].optionalBytes()
        let fence = try replies[1].integer(in: 1...Int64.max)
        func lease() -> Step {
            .lead(take(key, value, fence, position, sourceURL, since: start))
        }
        guard known != nil else { return lease() }
        if let bytes = known, FlightValue(bytes) == .lease(isAwaited: false) {
            known = try await commands.run(
                .script(FlightScripts.await, keys: [key], []), within: end - time.now, time
            ).optionalBytes()
        }
        guard let bytes = known else { return .again }
        switch FlightValue(bytes) {
        case .lease: return .wait
        case .record(let record) where record != outdated && isValid(record, sourceURL): return .found(record)
        case .record, nil:
            start = time.now
            let reply = try await commands.run(
                .script(
                    FlightScripts.replace, keys: [key],
                    [RedisArgument(bytes), RedisArgument(value), RedisArgument(timings.leaseTime)]),
                within: end - time.now, time
            ).integer(in: 0...1)
            return reply == 1 ? lease() : .again
        }
    }

    private func isValid(_ record: SharedRecord, _ sourceURL: String) -> Bool {
        history.isValid(since: record.position, sourceURL: sourceURL, object: record.objectID)
    }

    private func alone(_ reason: RedisError) -> FlightStart {
        meter.update { $0.flightsAlone += 1 }
        return .alone(reason)
    }

    private func found(_ record: SharedRecord, _ isFollowed: Bool) -> FlightStart {
        meter.update { metrics in
            if isFollowed { metrics.flightsFollowed += 1 } else { metrics.recordsFound += 1 }
        }
        return .found(record, isFollowed: isFollowed)
    }

    // MARK: Waiting

    /// Delivers the end of a flight.
    func received(key: String, value: [UInt8]) {
        let wakeups = state.withLock { state in
            for number in state.waiters[key]?.keys.sorted() ?? [] { state.waiters[key]?[number]?.value = value }
            return state.waiters[key]?.values.map(\.wakeup) ?? []
        }
        for wakeup in wakeups { wakeup.signal() }
    }

    private func addWaiter(_ key: String) -> (Int, AsyncSignal) {
        let wakeup = AsyncSignal()
        return state.withLock { state in
            state.lastNumber += 1
            state.waiters[key, default: [:]][state.lastNumber] = Waiter(wakeup: wakeup)
            return (state.lastNumber, wakeup)
        }
    }

    private func removeWaiter(_ number: Int, _ key: String) {
        state.withLock { state in
            state.waiters[key]?[number] = nil
            if state.waiters[key]?.isEmpty == true { state.waiters[key] = nil }
        }
    }

    private func takeMessage(_ number: Int, _ key: String) -> [UInt8]? {
        state.withLock { $0.waiters[key]?[number]?.value.take() }
    }

    // MARK: Leases

    private func take(
        _ key: String, _ value: [UInt8], _ fence: Int64, _ position: StreamID, _ sourceURL: String, since start: Duration
    ) -> Lease {
        state.withLock { $0.held[value] = Held(key: key, renewed: start) }
        meter.update { $0.leasesTaken += 1 }
        return Lease(fence: fence, position: position, key: key, value: value, sourceURL: sourceURL, table: self)
    }

    func holds(value: [UInt8]) -> Bool {
        state.withLock { state in state.held[value].map { time.now < $0.renewed + timings.leaseTime } ?? false }
    }

    /// Leases of this node.
    var heldCount: Int { state.withLock { $0.held.count } }

    /// Extends this node's leases that are due, in one pipeline. Counts those that are lost.
    ///
    /// Called once per renew interval. A lease younger than that is not due: most flights end before their first renewal.
    func renew() async {
        let start = time.now
        let held = state.withLock { $0.held.filter { start >= $0.value.renewed + timings.renewInterval } }
        if held.isEmpty { return }
        let values = Array(held.keys)
        let commands = values.map { value in
            RedisCommand.script(
                FlightScripts.renew, keys: [held[value]?.key ?? ""], [RedisArgument(value), RedisArgument(timings.leaseTime)])
        }
        let replies = (try? await self.commands.run(commands, within: timings.commandLimit, time)) ?? []
        let now = time.now
        let lost = state.withLock { state in
            var lost = 0
            for (value, reply) in zip(values, replies) {
                if reply == .integer(1) {
                    state.held[value]?.renewed = start
                } else if reply == .integer(0), state.held.removeValue(forKey: value) != nil {
                    lost += 1
                }
            }
            for (value, lease) in state.held where now >= lease.renewed + timings.leaseTime {
                state.held[value] = nil
                lost += 1
            }
            return lost
        }
        if lost > 0 { meter.update { $0.leasesLost += Int64(lost) } }
    }

    func finish(_ lease: Lease, _ record: SharedRecord?, lifetime: Duration) async -> Lease.Completion {
        let isKnown = state.withLock { $0.held.removeValue(forKey: lease.value) != nil }
        var record = record
        // Nodes that have applied the purge look under another key; the others must not see the record for long.
        let isOvertaken = record.map { !isValid($0, lease.sourceURL) } ?? false
        if isOvertaken { record = nil }
        do throws(RedisError) {
            let isEnded = try await complete(lease.key, lease.value, record, lifetime)
            if !isEnded, isKnown { meter.update { $0.leasesLost += 1 } }
            return isEnded && !isOvertaken ? .published : .lost
        } catch {
            return .unknown(error)
        }
    }

    func announce(_ record: SharedRecord, of sourceURL: String) async {
        let message = ClusterMessage.failure(sourceURL: sourceURL, record: record.bytes)
        let command = RedisCommand(.integer, ["PUBLISH", RedisArgument(keys.channel), RedisArgument(message.bytes)])
        // A node that does not get the message finds the failure by itself.
        _ = try? await commands.run(command, within: timings.commandLimit, time)
    }

    /// Whether a record that was received is in force: no purge that this node knows overtook it.
    func isCurrent(_ record: SharedRecord, of sourceURL: String) -> Bool { isValid(record, sourceURL) }

    func abandon(key: String, value: [UInt8]) {
        state.withLock { $0.held[value] = nil }
        Task(executorPreference: executor) {
            // A lease that cannot be released expires.
            _ = try? await self.complete(key, value, nil, .zero)
        }
    }

    /// Ends a flight on the server; false if the lease is lost.
    private func complete(
        _ key: String, _ value: [UInt8], _ record: SharedRecord?, _ lifetime: Duration
    ) async throws(RedisError) -> Bool {
        let bytes = record?.bytes ?? []
        let milliseconds = record == nil ? 0 : max(.zero, min(lifetime, Self.maxLifetime)).milliseconds
        let command = RedisCommand.script(
            FlightScripts.complete, keys: [key],
            [
                RedisArgument(value), RedisArgument(bytes), RedisArgument(milliseconds), RedisArgument(keys.channel),
                RedisArgument(ClusterMessage.flight(key: key, value: bytes).bytes),
            ])
        return try await commands.run(command, within: timings.commandLimit, time).integer(in: 0...1) == 1
    }
}
