internal import Store
internal import Synchronization
internal import SystemIO

/// The right to do a flight's work for the whole cluster. It is renewed until it ends; releasing the last reference ends it.
package final class Lease: Sendable {
    /// The earliest time at which the lease may have been taken, in milliseconds of the cluster's clock.
    package let began: Int64
    let key: String
    let value: [UInt8]
    let sourceURL: String
    private let table: LeaseTable
    private let isEnded = Mutex(false)

    init(began: Int64, key: String, value: [UInt8], sourceURL: String, table: LeaseTable) {
        self.began = began
        self.key = key
        self.value = value
        self.sourceURL = sourceURL
        self.table = table
    }

    deinit {
        if end() { table.abandon(key: key, value: value) }
    }

    /// Whether this node still holds the lease, as far as it knows: no other node can have taken it yet.
    package var isHeld: Bool { table.holds(value: value) }

    /// Ends the flight with a result for the callers on all nodes.
    ///
    /// Other nodes must be able to read the object before this call.
    ///
    /// - Parameters:
    ///   - lifetime: How long the record is kept; zero only delivers it to waiting callers.
    ///   - isOfSource: Whether the record is a failure of the source, which applies to all its renditions and is announced to
    ///     all nodes.
    /// - Returns: Whether callers on other nodes get the record. They do not if the lease was lost or a purge overtook it. If
    ///   the server does not answer in time, they may.
    package func complete(_ record: SharedRecord, lifetime: Duration, isOfSource: Bool = false) async -> Bool {
        guard end() else { return false }
        var record = record
        record.began = began
        let isPublished = await table.finish(self, record, lifetime: lifetime)
        if isOfSource, isPublished { await table.announce(record, of: sourceURL) }
        return isPublished
    }

    /// Ends the flight without a result: a caller on another node takes it over.
    package func release() async {
        if end() { _ = await table.finish(self, nil, lifetime: .zero) }
    }

    private func end() -> Bool {
        isEnded.withLock { isEnded in
            defer { isEnded = true }
            return !isEnded
        }
    }
}

/// The leases that this node holds. It renews them, and ends their flights on the server.
///
/// Thread-safe.
final class LeaseTable: Sendable {
    private struct Held {
        let key: String
        var renewed: Duration
    }

    private static let maxLifetime: Duration = .seconds(30 * 86_400)

    private let context: ClusterContext
    private let purges: PurgeIndex
    private let executor: (any TaskExecutor)?
    private let held = Mutex<[[UInt8]: Held]>([:])

    init(_ context: ClusterContext, _ purges: PurgeIndex, executor: (any TaskExecutor)?) {
        self.context = context
        self.purges = purges
        self.executor = executor
    }

    /// Registers a lease that the server has just granted to this node.
    ///
    /// - Parameter start: A time before the command, so that the lease never outlasts the server's key.
    func take(_ key: String, _ value: [UInt8], _ began: Int64, _ sourceURL: String, since start: Duration) -> Lease {
        held.withLock { $0[value] = Held(key: key, renewed: start) }
        context.meter.update { $0.leasesTaken += 1 }
        return Lease(began: began, key: key, value: value, sourceURL: sourceURL, table: self)
    }

    /// Whether this node still holds the lease, as far as it knows: no other node can have taken it yet.
    func holds(value: [UInt8]) -> Bool {
        held.withLock { $0[value].map { context.time.now < $0.renewed + context.timings.leaseTime } ?? false }
    }

    var count: Int { held.withLock(\.count) }

    /// Renews this node's due leases in one pipeline, and counts lost leases.
    ///
    /// Called once per renew interval. A younger lease is not due: most flights end before their first renewal.
    func renew() async {
        let (start, timings) = (context.time.now, context.timings)
        let due = held.withLock { $0.filter { start >= $0.value.renewed + timings.renewInterval } }
        if due.isEmpty { return }
        let values = Array(due.keys)
        let commands = values.map { value in
            RedisCommand.script(FlightScripts.renew, keys: [due[value]?.key ?? ""], [value, timings.leaseTime])
        }
        let replies = (try? await context.run(commands)) ?? []
        let now = context.time.now
        let lost = held.withLock { held in
            var lost = 0
            for (value, reply) in zip(values, replies) {
                if reply == .integer(1) {
                    held[value]?.renewed = start
                } else if reply == .integer(0), held.removeValue(forKey: value) != nil {
                    lost += 1
                }
            }
            for (value, lease) in held where now >= lease.renewed + timings.leaseTime {
                held[value] = nil
                lost += 1
            }
            return lost
        }
        if lost > 0 { context.meter.update { $0.leasesLost += Int64(lost) } }
    }

    /// Ends a flight, with or without a record. See ``Lease/complete(_:lifetime:isOfSource:)``.
    func finish(_ lease: Lease, _ record: SharedRecord?, lifetime: Duration) async -> Bool {
        let isKnown = held.withLock { $0.removeValue(forKey: lease.value) != nil }
        var record = record
        // Nodes that have applied the purge use another key. The other nodes must not see the record for long.
        let isOvertaken = record.map { !$0.isCurrent(lease.sourceURL, purges) } ?? false
        if isOvertaken { record = nil }
        guard let isEnded = try? await complete(lease.key, lease.value, record, lifetime) else { return false }
        if !isEnded, isKnown { context.meter.update { $0.leasesLost += 1 } }
        return isEnded && !isOvertaken
    }

    func announce(_ record: SharedRecord, of sourceURL: String) async {
        let message = ClusterMessage.failure(sourceURL: sourceURL, record: record.bytes)
        // A node that does not get the message finds the failure by itself.
        _ = try? await context.run(RedisCommand(.integer, ["PUBLISH", context.keys.channel, message.bytes]))
    }

    func abandon(key: String, value: [UInt8]) {
        held.withLock { $0[value] = nil }
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
        let message = ClusterMessage.flight(key: key, value: bytes).bytes
        return try await context.run(
            .script(FlightScripts.complete, keys: [key], [value, bytes, milliseconds, context.keys.channel, message])
        ).integer(in: 0...1) == 1
    }
}
