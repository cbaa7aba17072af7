internal import Synchronization

/// The room for connections, which all loops share.
final class Admission: Sendable {
    private let limit: Int
    private let open = Atomic(0)
    private let pausedLoops = Atomic(0)

    init(limit: Int) {
        self.limit = limit
    }

    /// Connections open now.
    var count: Int { open.load(ordering: .relaxed) }

    /// Whether no more connections may be let in. Loops that ask at the same time may let in one too many each.
    var isFull: Bool { count >= limit }

    /// Whether clients wait for others to leave, be it at this loop or at another one.
    var isContended: Bool { pausedLoops.load(ordering: .relaxed) > 0 }

    func enter() { open.wrappingAdd(1, ordering: .relaxed) }
    func leave() { open.wrappingSubtract(1, ordering: .relaxed) }

    func pause() { pausedLoops.wrappingAdd(1, ordering: .relaxed) }
    func resume() { pausedLoops.wrappingSubtract(1, ordering: .relaxed) }
}
