internal import Synchronization

/// The permission of a client to cause misses. Any thread.
package struct MissAllowance: Sendable {
    /// Counts a miss. Returns nil if the miss may go on, else the seconds to wait, at least 1. `isRequired` is whether the
    /// request is then refused; if false, it is answered without the miss.
    package let take: @Sendable (_ isRequired: Bool) -> Int?
    /// Refunds a counted miss for which the server had no capacity.
    package let giveBack: @Sendable () -> Void

    package init(
        _ take: @escaping @Sendable (_ isRequired: Bool) -> Int?, giveBack: @escaping @Sendable () -> Void = {}
    ) {
        self.take = take
        self.giveBack = giveBack
    }

    /// The permission for work that no client requested.
    package static let unlimited = MissAllowance { _ in nil }

    /// The permission of one request, for which all misses together count as one.
    package var countedOnce: MissAllowance {
        let isGiven = Mutex(false)
        return MissAllowance { isRequired in
            isGiven.withLock { isGiven in
                if isGiven { return nil }
                let wait = take(isRequired)
                isGiven = wait == nil
                return wait
            }
        } giveBack: {
            let wasGiven = isGiven.withLock { isGiven in
                defer { isGiven = false }
                return isGiven
            }
            if wasGiven { giveBack() }
        }
    }

    /// The permission for a miss that was counted already.
    package var counted: MissAllowance { MissAllowance({ _ in nil }, giveBack: giveBack) }

    /// Counts a miss.
    ///
    /// - Throws: ``RenditionError/rateLimited(retryAfter:)`` if the client has used up its allowance.
    package func use() throws(RenditionError) {
        if let seconds = take(true) { throw .rateLimited(retryAfter: seconds) }
    }

    /// Counts a miss and runs it. A miss that the server refuses does not count, so that the client may repeat it when the
    /// server has capacity.
    ///
    /// - Throws: ``RenditionError/rateLimited(retryAfter:)`` if the client has used up its allowance, and the errors of `miss`.
    func spend<Result>(
        _ miss: () async throws(RenditionError) -> Result
    ) async throws(RenditionError) -> Result {
        try use()
        return try await returning(miss)
    }

    /// Runs a miss that was counted already, and gives it back if the server refuses it.
    func returning<Result>(
        _ miss: () async throws(RenditionError) -> Result
    ) async throws(RenditionError) -> Result {
        do throws(RenditionError) {
            return try await miss()
        } catch {
            if error.isRefusal { giveBack() }
            throw error
        }
    }

    /// Counts a miss that the response does not depend on.
    ///
    /// - Returns: Whether the miss may go on.
    package func useIfAvailable() -> Bool { take(false) == nil }
}
