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

/// The steps of a flight that have to be atomic on the server.
///
/// A flight's key holds its lease, `L:token:`, to which `w` is appended once a caller on another node waits; later its record,
/// `R…`. A single key for both lets one command look up the record and take the lease.
enum FlightScripts {
    /// Marks a lease as awaited by a caller, and returns the previous value: nil, a lease or a record. Argument: the lifetime of a
    /// lease in ms, given to a marked lease that never expires, as in a copy of the server's data without lifetimes.
    static let await = RedisScript(
        .bytesOrNone,
        """
        local value = redis.call('GET', KEYS[1])
        if value and string.sub(value, 1, 1) == 'L' then
          if string.sub(value, -1) ~= 'w' then
            redis.call('SET', KEYS[1], value .. 'w', 'KEEPTTL')
          else
            redis.call('PEXPIRE', KEYS[1], ARGV[1], 'NX')
          end
        end
        return value
        """)

    /// Replaces an invalid record with a lease. Arguments: the record, the lease, its time in ms. Returns 1 or 0.
    static let replace = RedisScript(
        .integer,
        """
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
        redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
        return 1
        """)

    /// Prolongs a lease. Arguments: the lease, its time in ms. Returns 1, or 0 if it is lost.
    static let renew = RedisScript(
        .integer,
        """
        local value = redis.call('GET', KEYS[1])
        if value ~= ARGV[1] and value ~= ARGV[1] .. 'w' then return 0 end
        return redis.call('PEXPIRE', KEYS[1], ARGV[2])
        """)

    /// Ends a flight: replaces its lease with a record, or removes it, and notifies waiting callers. Arguments: the lease, the
    /// record, its lifetime in ms (0 removes the lease), the channel, the message. Returns 1, or 0 if the lease is lost.
    static let complete = RedisScript(
        .integer,
        """
        local value = redis.call('GET', KEYS[1])
        if value ~= ARGV[1] and value ~= ARGV[1] .. 'w' then return 0 end
        if ARGV[3] == '0' then
          redis.call('DEL', KEYS[1])
        else
          redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
        end
        if value ~= ARGV[1] then redis.call('PUBLISH', ARGV[4], ARGV[5]) end
        return 1
        """)
}

/// The value of a flight's key.
enum FlightValue: Equatable {
    case record(SharedRecord)
    /// A lease of any node, and whether its end will be announced.
    case lease(isAwaited: Bool)

    init?(_ bytes: [UInt8]) {
        if let record = SharedRecord(bytes) {
            self = .record(record)
        } else if bytes.starts(with: "L:".utf8), bytes.count < 512 {
            self = .lease(isAwaited: bytes.last == UInt8(ascii: "w"))
        } else {
            return nil
        }
    }
}
