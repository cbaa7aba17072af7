internal import Synchronization

/// The right to do a flight's work for the whole cluster. It is renewed until it ends; releasing the last reference ends it.
package final class Lease: Sendable {
    /// The result of ending a flight.
    package enum Completion: Sendable, Equatable {
        /// The record is valid, and callers on other nodes get it.
        case published
        /// The lease was lost earlier: another node does the work, or a purge overtook it. This node may use the result.
        case lost
        /// The server did not confirm the completion in time. Other nodes may or may not see the record.
        case unknown(RedisError)
    }

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
    package func complete(_ record: SharedRecord, lifetime: Duration, isOfSource: Bool = false) async -> Completion {
        guard end() else { return .lost }
        var record = record
        record.began = began
        let completion = await table.finish(self, record, lifetime: lifetime)
        if isOfSource, completion == .published { await table.announce(record, of: sourceURL) }
        return completion
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
