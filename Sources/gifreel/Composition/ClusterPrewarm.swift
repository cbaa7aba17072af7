internal import Cluster
internal import Prewarm

/// Prewarm lists of a cluster, in Redis or Valkey.
struct ClusterPrewarm: PrewarmSharing {
    private let lists: SharedPrewarm

    init(_ cluster: Cluster) {
        lists = cluster.prewarm
    }

    func add(_ id: String, _ entries: [[UInt8]]) async -> Bool {
        do throws(RedisError) {
            try await lists.add(id, entries)
            return true
        } catch {
            return false
        }
    }

    func claim(_ count: Int) async -> [SharedPrewarmEntry] {
        let tickets = (try? await lists.claim(count)) ?? []
        return tickets.map { SharedPrewarmEntry(id: $0.id, list: $0.list, payload: $0.payload) }
    }

    func renew(_ entries: [SharedPrewarmEntry]) async {
        try? await lists.renew(entries.map(Self.ticket))
    }

    func finish(_ entry: SharedPrewarmEntry, bytes: Int, error: String?) async {
        // If this fails, the claim expires, and a node that processes the entry again finds the rendition.
        _ = try? await lists.finish(Self.ticket(entry), bytes: Int64(bytes), error: error)
    }

    func progress(of id: String) async -> SharedPrewarmProgress? {
        guard let progress = try? await lists.progress(of: id) else { return nil }
        return SharedPrewarmProgress(
            total: Int(progress.total), succeeded: Int(progress.done), failed: Int(progress.failed),
            bytes: Int(progress.bytes), errors: progress.errors)
    }

    func cancel(_ id: String) async {
        try? await lists.cancel(id)
    }

    private static func ticket(_ entry: SharedPrewarmEntry) -> SharedPrewarm.Ticket {
        SharedPrewarm.Ticket(id: entry.id, list: entry.list, payload: entry.payload)
    }
}
