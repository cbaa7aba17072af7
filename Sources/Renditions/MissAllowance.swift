internal import Synchronization

/// The permission of a client to cause misses. Any thread.
package struct MissAllowance: Sendable {
    /// Counts a miss; returns nil if it may go on, else the seconds to wait, at least 1. The parameter says whether the request is
    /// refused then; without the miss, it would still be answered.
    package let take: @Sendable (_ isRequired: Bool) -> Int?

    /// - Parameter take: See ``take``.
    package init(_ take: @escaping @Sendable (_ isRequired: Bool) -> Int?) {
        self.take = take
    }

    /// For work that no client requested.
    package static let unlimited = MissAllowance { _ in nil }

    /// The permission of one request, for which all misses together count as one.
    package var countedOnce: MissAllowance {
        let grant = Grant()
        return MissAllowance { isRequired in
            grant.isGiven.withLock { isGiven in
                if isGiven { return nil }
                let wait = take(isRequired)
                isGiven = wait == nil
                return wait
            }
        }
    }

    /// Counts a miss.
    ///
    /// - Throws: ``RenditionError/rateLimited(retryAfter:)`` if the client has used up its allowance.
    package func use() throws(RenditionError) {
        if let seconds = take(true) { throw .rateLimited(retryAfter: seconds) }
    }

    /// Counts a miss that the response does not depend on.
    ///
    /// - Returns: Whether the miss may go on.
    package func useIfAvailable() -> Bool { take(false) == nil }

    private final class Grant: Sendable {
        let isGiven = Mutex(false)
    }
}
