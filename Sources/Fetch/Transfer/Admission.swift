/// Who may run now, who waits, and who is turned away: one bound on all, one on each key, both also on those who wait.
///
/// First come, first served among those whose key has room, so that a key with no room holds nobody else up. A pure value.
struct Admission<ID: Hashable, Key: Hashable> {
    enum Answer: Hashable {
        case run, wait, full
    }

    struct Limits: Hashable {
        var running: Int
        var runningPerKey: Int
        var waiting: Int
        var waitingPerKey: Int
    }

    /// Lower limits affect later requests only: what runs keeps running, and what waits keeps waiting.
    var limits: Limits
    private var running = 0
    private var runningByKey: [Key: Int] = [:]
    private var waitingByKey: [Key: Int] = [:]
    private var queue: [(id: ID, key: Key)] = []

    init(_ limits: Limits) {
        self.limits = limits
    }

    var runningCount: Int { running }
    var waitingCount: Int { queue.count }

    /// Asks for a place. Who has to wait is given one by ``next()``.
    ///
    /// - Parameter isContinuation: It has run before and goes on under another key: it waits before all others, and is
    ///   never turned away.
    mutating func request(_ id: ID, key: Key, isContinuation: Bool = false) -> Answer {
        if hasRoom(for: key) {
            occupy(key)
            return .run
        }
        if isContinuation {
            queue.insert((id, key), at: 0)
        } else {
            guard queue.count < limits.waiting, waitingByKey[key, default: 0] < limits.waitingPerKey else { return .full }
            queue.append((id, key))
        }
        waitingByKey[key, default: 0] += 1
        return .wait
    }

    /// Gives back the place of one that ran under `key`.
    mutating func release(_ key: Key) {
        running -= 1
        Self.decrement(&runningByKey, key)
    }

    /// The next that may run now, if one may.
    mutating func next() -> ID? {
        guard running < limits.running, let index = queue.firstIndex(where: { hasRoom(for: $0.key) }) else { return nil }
        let entry = queue.remove(at: index)
        Self.decrement(&waitingByKey, entry.key)
        occupy(entry.key)
        return entry.id
    }

    /// Takes out one that waits. It does nothing where `id` does not wait.
    mutating func leave(_ id: ID) {
        guard let index = queue.firstIndex(where: { $0.id == id }) else { return }
        Self.decrement(&waitingByKey, queue.remove(at: index).key)
    }

    private func hasRoom(for key: Key) -> Bool {
        running < limits.running && runningByKey[key, default: 0] < limits.runningPerKey
    }

    private mutating func occupy(_ key: Key) {
        running += 1
        runningByKey[key, default: 0] += 1
    }

    private static func decrement(_ counts: inout [Key: Int], _ key: Key) {
        guard let count = counts[key] else { return }
        counts[key] = count > 1 ? count - 1 : nil
    }
}
