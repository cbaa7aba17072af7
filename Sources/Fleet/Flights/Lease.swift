internal import Synchronization

/// The right to do a flight's work for the whole cluster. It is renewed until it ends; releasing the last reference ends it.
package final class Lease: Sendable {
    /// The result of ending a flight.
    package enum Completion: Sendable, Equatable {
        /// The record is valid, and callers on other nodes get it.
        case published
        /// The lease was lost before: another node does the work, or a purge overtook it. The result may be used here.
        case lost
        /// The server did not confirm it in time. Other nodes may or may not see the record.
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

    /// Whether no other node can have the lease yet, as far as this node knows.
    package var isHeld: Bool { table.holds(value: value) }

    /// Ends the flight with a result for the callers on all nodes.
    ///
    /// The object must be readable by other nodes before.
    ///
    /// - Parameters:
    ///   - lifetime: How long the record is kept; zero gives it to the callers that wait and keeps nothing.
    ///   - isOfSource: Whether the record is a failure of the source, for all its renditions. It is then announced to all nodes.
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
