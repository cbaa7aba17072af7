internal import Synchronization

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
