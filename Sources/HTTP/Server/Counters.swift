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
