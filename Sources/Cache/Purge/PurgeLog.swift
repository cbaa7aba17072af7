internal import Synchronization

/// The latest purges, in order: the one place that says whether a purge overtook a piece of work.
///
/// Bounded: when it is full the oldest is dropped, and work begun before that counts as overtaken whatever its source.
/// It is then answered but not stored, which is always safe. Any thread; the lock is held for a short scan.
final class PurgeLog: Sendable {
    private struct State {
        /// Number of purges so far.
        var number: Int64 = 0
        /// The scopes of purges `number - scopes.count + 1 ... number`.
        var scopes: ArraySlice<PurgeScope> = []
    }

    private let state = Mutex(State())
    private let limit: Int

    init(limit: Int = 4096) {
        self.limit = limit
    }

    var epoch: Epoch {
        state.withLock { Epoch(number: $0.number) }
    }

    /// Puts a purge into force: from here on no older epoch of a covered source is good.
    func append(_ scope: PurgeScope) {
        state.withLock { state in
            state.number += 1
            state.scopes.append(scope)
            if state.scopes.count > limit {
                // An array without its front keeps it allocated; copied now and then, that stays bounded.
                state.scopes = ArraySlice(state.scopes.suffix(limit / 2))
            }
        }
    }

    /// Whether a purge that covers the rendition came after `epoch`; see ``PurgeScope/covers(_:object:)``.
    func overtook(_ epoch: Epoch, sourceURL: String?, object: ObjectID? = nil) -> Bool {
        state.withLock { state in
            let later = state.number - epoch.number
            if later == 0 { return false }
            if later > Int64(state.scopes.count) { return true }
            return state.scopes.suffix(Int(later)).contains { $0.covers(sourceURL, object: object) }
        }
    }
}
