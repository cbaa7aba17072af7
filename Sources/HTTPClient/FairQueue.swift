internal import DequeModule

/// A queue that admits operations up to total and per-key limits, and queues the rest up to further limits. A pure value.
///
/// Operations are admitted in order of arrival. Operations whose key is at its limit are skipped, so that a slow key does not
/// block the others.
struct FairQueue<ID: Hashable, Key: Hashable> {
    enum Decision: Hashable {
        case admitted
        /// ``next(mayBegin:)`` returns the operation later.
        case queued
        /// The queue is full.
        case refused
    }

    /// Lower limits affect only later operations: running operations keep running, and queued operations stay queued.
    var limits: HTTPClient.Limits

    private(set) var runningCount = 0
    private var runningByKey: [Key: Int] = [:]
    private var waitingByKey: [Key: Int] = [:]
    private var queue: Deque<(id: ID, key: Key)> = []

    init(_ limits: HTTPClient.Limits) {
        self.limits = limits
    }

    var waitingCount: Int { queue.count }

    /// Admits, queues or refuses an operation.
    ///
    /// - Parameters:
    ///   - isContinuation: Whether the operation ran before, under any key. It is queued ahead of all others and never refused.
    ///   - mayBegin: Whether the operation may begin if the limits allow it. Otherwise it is queued.
    mutating func enter(_ id: ID, key: Key, isContinuation: Bool = false, mayBegin: () -> Bool = { true }) -> Decision {
        if hasCapacity(for: key), mayBegin() {
            admit(key)
            return .admitted
        }
        if isContinuation {
            queue.prepend((id, key))
        } else {
            guard queue.count < limits.waiting, waitingByKey[key, default: 0] < limits.waitingPerKey else { return .refused }
            queue.append((id, key))
        }
        waitingByKey[key, default: 0] += 1
        return .queued
    }

    /// Records the end of an operation that ran under `key`.
    mutating func leave(_ key: Key) {
        runningCount -= 1
        Self.decrement(&runningByKey, key)
    }

    /// Admits and returns the next queued operation that the limits allow.
    ///
    /// - Parameter mayBegin: See ``enter(_:key:isContinuation:mayBegin:)``.
    mutating func next(mayBegin: (ID) -> Bool = { _ in true }) -> ID? {
        guard runningCount < limits.running,
            let index = queue.firstIndex(where: { hasCapacity(for: $0.key) && mayBegin($0.id) })
        else { return nil }
        let entry = queue.remove(at: index)
        Self.decrement(&waitingByKey, entry.key)
        admit(entry.key)
        return entry.id
    }

    /// Removes an operation from the queue if it is queued.
    mutating func remove(_ id: ID) {
        guard let index = queue.firstIndex(where: { $0.id == id }) else { return }
        Self.decrement(&waitingByKey, queue.remove(at: index).key)
    }

    private func hasCapacity(for key: Key) -> Bool {
        runningCount < limits.running && runningByKey[key, default: 0] < limits.runningPerKey
    }

    private mutating func admit(_ key: Key) {
        runningCount += 1
        runningByKey[key, default: 0] += 1
    }

    private static func decrement(_ counts: inout [Key: Int], _ key: Key) {
        guard let count = counts[key] else { return }
        counts[key] = count > 1 ? count - 1 : nil
    }
}
