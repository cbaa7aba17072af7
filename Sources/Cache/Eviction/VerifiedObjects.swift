internal import Synchronization

/// The objects whose bytes were compared with their SHA-256 since the start, so that they are not hashed each time they are
/// opened.
///
/// Bounded: when it is full it is emptied, and they are hashed once more. Any thread.
final class VerifiedObjects: Sendable {
    private let sequences = Mutex<Set<Int64>>([])
    private let limit: Int

    init(limit: Int = 1 << 18) {
        self.limit = limit
    }

    func contains(_ sequence: Int64) -> Bool {
        sequences.withLock { $0.contains(sequence) }
    }

    func insert(_ sequence: Int64) {
        sequences.withLock { sequences in
            if sequences.count >= limit { sequences.removeAll() }
            sequences.insert(sequence)
        }
    }

    func removeAll() {
        sequences.withLock { $0 = [] }
    }
}
