/// The renditions that were removed in the last hour, by their ids, with the times of their removals.
///
/// Every node deletes an object that is purged. An upload that was running on one of them may end after the deletions of the others:
/// the store has the object again until that node's own deletion is sent. Its record shows that it is older than the removal.
///
/// Bounded: where there are too many, the older half is forgotten.
struct RecentRemovals: Sendable {
    /// Seconds since 1970, by id.
    private var latest: [String: Int64] = [:]
    /// Those before ``latest``.
    private var former: [String: Int64] = [:]
    /// The time of the first removal in ``latest``.
    private var start: Int64 = 0
    private let limit: Int

    /// Seconds that a removal is remembered: longer than an upload takes.
    private static let lifetime: Int64 = 3600

    /// - Parameter limit: Ids to remember. Each takes about 200 bytes.
    init(limit: Int = 20_000) {
        self.limit = limit
    }

    /// Notes a removal.
    ///
    /// - Parameter time: Seconds since 1970.
    mutating func insert(_ id: String, at time: Int64) {
        // A negative difference: the clock was set back.
        if latest.count >= limit / 2 || !(0..<Self.lifetime).contains(time - start) {
            (latest, former, start) = ([:], latest, time)
        }
        latest[id] = max(time, latest[id] ?? time)
    }

    /// The time of the last removal of a rendition in seconds since 1970; nil if it is not remembered.
    func time(of id: String, now: Int64) -> Int64? {
        let found = latest[id] ?? former[id]
        return found.flatMap { (-Self.lifetime...Self.lifetime).contains(now - $0) ? $0 : nil }
    }
}
