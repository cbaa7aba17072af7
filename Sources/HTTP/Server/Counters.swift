internal import Synchronization

/// What the server has done so far.
package struct HTTPServerCounters: Sendable, Equatable {
    /// Connections open now.
    package var openConnections = 0
    /// Connections accepted since the start.
    package var acceptedConnections = 0
    /// Requests whose head was read, since the start.
    package var requests = 0
}

/// One loop's counts, written by it and read by anybody.
final class LoopCounters: Sendable {
    let accepted = Atomic(0)
    let closed = Atomic(0)
    let requests = Atomic(0)
}

/// The connections of all loops together.
final class ConnectionCount: Sendable {
    private let value = Atomic(0)

    var current: Int { value.load(ordering: .relaxed) }
    func increment() { value.wrappingAdd(1, ordering: .relaxed) }
    func decrement() { value.wrappingSubtract(1, ordering: .relaxed) }
}
