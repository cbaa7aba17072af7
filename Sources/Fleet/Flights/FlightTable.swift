internal import Store
internal import Synchronization
internal import SystemIO

/// How a caller joins a flight.
package enum FlightStart: Sendable {
    /// The caller does the work, and then ends the lease.
    case lead(Lease)
    /// A node has done the work. `isFollowed` if the caller waited for its flight.
    case found(SharedRecord, isFollowed: Bool)
    /// The caller does the work for this node only: the cluster cannot be used, or the caller's task was cancelled.
    case alone(RedisError)
}

/// Flights that the nodes of a cluster share: one node leads, and the others wait for its record.
///
/// Thread-safe. Callers suspend and can be cancelled.
package final class FlightTable: Sendable {
    /// A caller that waits for a flight to end, and the value that the flight ended with.
    private final class Waiter: Sendable {
        let wakeup = AsyncSignal()
        let value = Mutex<[UInt8]?>(nil)
    }

    /// How many times a caller retries immediately after the value changed between two commands.
    private static let maxRaces = 4
    /// The number of polls after which a caller has the lifetime of another node's lease checked.
    private static let pollsPerCheck = 10

    private let context: ClusterContext
    private let purges: PurgeIndex
    private let leases: LeaseTable
    private let isTakingPart: @Sendable () -> Bool
    private let waiters = Mutex<[String: [Waiter]]>([:])

    init(
        _ context: ClusterContext, _ purges: PurgeIndex, leases: LeaseTable, isTakingPart: @escaping @Sendable () -> Bool
    ) {
        self.context = context
        self.purges = purges
        self.leases = leases
        self.isTakingPart = isTakingPart
    }

    // MARK: Joining

    /// Finds the record of a source's rendition, waits for another node's flight, or takes the lease for one.
    ///
    /// Suspends while another node leads; a cancelled caller leaves at once. If the server is slow or unreachable, the caller
    /// waits for at most 250 ms.
    ///
    /// - Parameters:
    ///   - alias: The rendition's name before anything is fetched, as hexadecimal digits.
    ///   - sourceURL: The source's canonical URL, as purges compare it.
    ///   - outdated: A record that this function returned before and that it must not return again, such as a stale record.
    package func findOrLead(_ alias: String, sourceURL: String, outdated: SharedRecord? = nil) async -> FlightStart {
        guard isTakingPart() else { return alone(.unavailable("this node does not take part in the cluster")) }
        // Read before taking the lease: purges accepted from now on overtake the work.
        let began = purges.epoch.began
        let key = context.keys.flight(alias, cover: purges.cover(of: sourceURL))
        let value = Array("L:\(context.nodeName)/\(Hex.encode(UInt128.random(in: .min ... .max))):".utf8)
        // Callers subscribe before the lookup, so that no message is missed.
        let waiter = Waiter()
        waiters.withLock { $0[key, default: []].append(waiter) }
        defer {
            waiters.withLock { waiters in
                waiters[key]?.removeAll { $0 === waiter }
                if waiters[key]?.isEmpty == true { waiters[key] = nil }
            }
        }
        var polls = 0
        var races = 0
        while true {
            let step: Step
            do throws(RedisError) {
                let checksLease = polls % Self.pollsPerCheck == Self.pollsPerCheck - 1
                step = try await look(key, value, sourceURL, began, outdated, checksLease: checksLease)
            } catch {
                // The server may have given the lease to this node.
                if error == .timedOut || error == .cancelled { leases.abandon(key: key, value: value) }
                return alone(error)
            }
            switch step {
            case .lead(let lease): return .lead(lease)
            case .found(let record): return found(record, polls > 0)
            case .again where races < Self.maxRaces:
                races += 1
                continue
            case .again, .wait: break
            }
            races = 0
            polls += 1
            await waiter.wakeup.wait(for: context.timings.pollInterval, context.time)
            if Task.isCancelled { return alone(.cancelled) }
            if let bytes = waiter.value.withLock({ $0.take() }), let record = SharedRecord(bytes),
                record.isCurrent(sourceURL, purges)
            {
                return found(record, true)
            }
        }
    }

    private enum Step {
        case lead(Lease)
        case found(SharedRecord)
        /// Another node's flight is in progress.
        case wait
        /// The value has changed between two commands.
        case again
    }

    /// Looks up a record, takes the lease, or requests a message at the flight's end, all within one command limit.
    private func look(
        _ key: String, _ value: [UInt8], _ sourceURL: String, _ began: Int64, _ outdated: SharedRecord?,
        checksLease: Bool
    ) async throws(RedisError) -> Step {
        let (time, leaseTime) = (context.time, context.timings.leaseTime)
        let end = time.now + context.timings.commandLimit
        // The lease starts before the command is sent, so that it never outlasts the server's key.
        var start = time.now
        var known = try await context.run(
            RedisCommand(.statusOrBytes, ["SET", key, value, "NX", "GET", "PX", leaseTime]), within: end - time.now
        ).optionalBytes()
        func lease() -> Step {
            .lead(leases.take(key, value, began, sourceURL, since: start))
        }
        guard known != nil else { return lease() }
        if let bytes = known, case .lease(let isAwaited) = FlightValue(bytes), !isAwaited || checksLease {
            known = try await context.run(.script(FlightScripts.await, keys: [key], [leaseTime]), within: end - time.now)
                .optionalBytes()
        }
        guard let bytes = known else { return .again }
        switch FlightValue(bytes) {
        case .lease: return .wait
        case .record(let record) where record != outdated && record.isCurrent(sourceURL, purges): return .found(record)
        case .record, nil:
            start = time.now
            let reply = try await context.run(
                .script(FlightScripts.replace, keys: [key], [bytes, value, leaseTime]), within: end - time.now
            ).integer(in: 0...1)
            return reply == 1 ? lease() : .again
        }
    }

    private func alone(_ reason: RedisError) -> FlightStart {
        context.meter.update { $0.flightsAlone += 1 }
        return .alone(reason)
    }

    private func found(_ record: SharedRecord, _ isFollowed: Bool) -> FlightStart {
        context.meter.update { metrics in
            if isFollowed { metrics.flightsFollowed += 1 } else { metrics.recordsFound += 1 }
        }
        return .found(record, isFollowed: isFollowed)
    }

    // MARK: Waiting

    func received(key: String, value: [UInt8]) {
        for waiter in waiters.withLock({ $0[key] ?? [] }) {
            waiter.value.withLock { $0 = value }
            waiter.wakeup.signal()
        }
    }
}

extension SharedRecord {
    /// Whether no known purge may have been accepted after the work began.
    func isCurrent(_ sourceURL: String, _ purges: PurgeIndex) -> Bool {
        purges.isCurrent(began, sourceURL: sourceURL, object: objectID)
    }
}
