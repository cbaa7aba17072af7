/// The epochs at which stores were lost, so that a store that returns gets the purges that it has missed.
///
/// A store is known by the identity of its journal. Bounded: beyond the limit, the store that was lost first is dropped, and from
/// then on an unknown store counts as one that has missed everything.
struct LostStores: Sendable {
    private var epochs: [String: Epoch] = [:]
    private var hasDropped = false
    private let limit: Int

    init(limit: Int = 64) {
        self.limit = limit
    }

    /// Notes that the store with this journal is lost, unless it is known to be.
    mutating func insert(_ journal: String, lostAt epoch: Epoch) {
        guard epochs[journal] == nil else { return }
        epochs[journal] = epoch
        guard epochs.count > limit, let oldest = epochs.min(by: { $0.value < $1.value }) else { return }
        epochs[oldest.key] = nil
        hasDropped = true
    }

    /// The epoch after which a store may have missed purges.
    ///
    /// - Parameters:
    ///   - found: The journal of the store. One that was never lost is new or another server's; it gets the purges that no store
    ///     could record.
    ///   - lost: The journal of the lost store whose place it takes.
    func epoch(of found: String, inPlaceOf lost: String) -> Epoch {
        if let known = epochs[found] { return known }
        return hasDropped ? .beforeAll : epochs[lost] ?? .beforeAll
    }

    /// Notes that the store with this journal is open.
    mutating func remove(_ journal: String) {
        epochs[journal] = nil
    }
}
