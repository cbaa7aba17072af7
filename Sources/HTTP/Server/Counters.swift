internal import Synchronization

/// The server's counts.
package struct HTTPServerCounters: Sendable, Equatable {
    /// Connections open now.
    package var openConnections = 0
    /// Connections accepted since the start.
    package var acceptedConnections = 0
    /// Requests whose head was read, since the start.
    package var requests = 0
}

/// One loop's counts, written by the loop and read by any thread.
final class LoopCounters: Sendable {
    let accepted = Atomic(0)
    let requests = Atomic(0)
}
