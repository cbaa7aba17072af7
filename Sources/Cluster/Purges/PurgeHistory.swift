internal import Synchronization

/// The purges of the stream that this node knows, and how far it has applied them. It decides whether a purge overtook a piece of
/// work anywhere in the cluster.
///
/// Bounded: if work began before the oldest known purge, it counts as overtaken. Any thread; the lock is held for a few
/// dictionary accesses.
package final class PurgeHistory: Sendable {
    private struct State {
        /// All purges up to here are applied.
        var position = StreamID.zero
        /// All purges after this position are known.
        var reach = StreamID.zero
        var entries: ArraySlice<(id: StreamID, scope: ClusterPurge)> = []
        var latestOfAll = StreamID.zero
        var urls: [String: StreamID] = [:]
        var objects: [String: StreamID] = [:]
        var prefixes: [String: StreamID] = [:]
    }

    private let state = Mutex(State())
    private let limit: Int

    init(limit: Int = 10_000) {
        self.limit = limit
    }

    /// The position in the stream up to which this node has applied all purges. Work notes it before it asks the origin.
    var position: StreamID { state.withLock { $0.position } }

    /// Makes a purge overtake older records. The caller then applies it to the node, and calls ``advance(to:)``.
    func insert(_ id: StreamID, _ scope: ClusterPurge) {
        state.withLock { state in
            // Entries come again after a reconnection, and the purges of this node may come before older ones of others.
            let index = (state.entries.lastIndex { $0.id <= id }).map { $0 + 1 } ?? state.entries.startIndex
            if index > state.entries.startIndex, state.entries[index - 1].id == id { return }
            state.entries.insert((id, scope), at: index)
            switch scope {
            case .all: state.latestOfAll = max(state.latestOfAll, id)
            case .url(let url): state.urls[url] = max(state.urls[url] ?? .zero, id)
            case .object(let object): state.objects[object] = max(state.objects[object] ?? .zero, id)
            case .prefix(let prefix): state.prefixes[prefix] = max(state.prefixes[prefix] ?? .zero, id)
            }
            if state.entries.count > limit { Self.dropOldest(limit / 2, &state) }
        }
    }

    /// Notes that all purges up to `id` are applied.
    func advance(to id: StreamID) {
        state.withLock { $0.position = max($0.position, id) }
    }

    /// Starts over: the purges after `reach` will be inserted.
    func reset(reach: StreamID, position: StreamID) {
        state.withLock { state in
            state = State()
            state.reach = reach
            state.position = position
        }
    }

    /// The latest purge that covers all renditions of the source; zero if there is none.
    func cover(of sourceURL: String) -> StreamID {
        state.withLock { Self.cover(of: sourceURL, $0) }
    }

    /// Whether a result may be used whose work began after all purges up to `start` were applied.
    func isValid(since start: StreamID, sourceURL: String, object: String?) -> Bool {
        state.withLock { state in
            let covers = max(Self.cover(of: sourceURL, state), object.flatMap { state.objects[$0] } ?? .zero)
            return start >= state.reach && covers <= start
        }
    }

    private static func cover(of sourceURL: String, _ state: State) -> StreamID {
        var cover = max(state.latestOfAll, state.urls[sourceURL] ?? .zero)
        for (prefix, id) in state.prefixes where id > cover && sourceURL.utf8.starts(with: prefix.utf8) { cover = id }
        return cover
    }

    private static func dropOldest(_ count: Int, _ state: inout State) {
        let oldest = state.entries.prefix(count)
        guard let reach = oldest.last?.id else { return }
        // A slice keeps its removed front allocated; the copy bounds that.
        state.entries = ArraySlice(Array(state.entries.dropFirst(count)))
        state.reach = max(state.reach, reach)
        if state.latestOfAll <= reach { state.latestOfAll = .zero }
        state.urls = state.urls.filter { $0.value > reach }
        state.objects = state.objects.filter { $0.value > reach }
        state.prefixes = state.prefixes.filter { $0.value > reach }
    }
}
