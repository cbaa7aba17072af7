/// Purges of the stream that a node has applied and could not make durable. The position on disk stays before the first of them, so that a
/// restart repeats them.
struct VolatilePurges {
    private var purges: [(id: StreamID, scope: ClusterPurge)] = []
    /// The first one that found no room here. The position stays before it until a restart.
    private var firstForgotten: StreamID?
    private static let limit = 256

    var all: [(id: StreamID, scope: ClusterPurge)] { purges }

    /// The first one; nil if all purges are durable.
    var first: StreamID? {
        let first = purges.map(\.id).min()
        return firstForgotten.map { min($0, first ?? $0) } ?? first
    }

    mutating func append(_ id: StreamID, _ scope: ClusterPurge) {
        guard !purges.contains(where: { $0.id == id }) else { return }
        if purges.count < Self.limit {
            purges.append((id, scope))
        } else {
            firstForgotten = min(firstForgotten ?? id, id)
        }
    }

    /// Removes a purge that is durable after all.
    mutating func remove(_ id: StreamID) {
        purges.removeAll { $0.id == id }
    }
}
