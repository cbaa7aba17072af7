/// Permission of one request to cause a miss, used when neither the cache nor the failure memory has an answer.
package struct MissAllowance: Sendable {
    private let take: @Sendable () -> Int?

    /// - Parameter take: Counts a miss; returns nil if it may go on, else the seconds to wait, at least 1.
    package init(_ take: @escaping @Sendable () -> Int?) {
        self.take = take
    }

    /// For work that no client requested.
    package static let unlimited = MissAllowance { nil }

    /// Counts a miss; returns nil if it may go on.
    package func use() -> RenditionError? {
        take().map { .rateLimited(retryAfter: $0) }
    }
}
