internal import CLinux
internal import Glibc
internal import SystemIO

/// Accepts a loop's connections, at a pace that follows their arrival and within the server's limit.
final class Acceptor {
    private let poller: Poller
    private let limit: ConnectionLimit
    private var listeners: [Listener]
    private var pace = AcceptPace()
    /// Whether new connections wait in the kernel's backlog, because the limit is reached or the system refuses them.
    private(set) var isPaused = false
    /// Why no connection could be accepted since the last one; nil if that was not reported.
    private var reported: SystemError?

    init(_ listeners: [Listener], poller: Poller, limit: ConnectionLimit) {
        self.listeners = listeners
        self.poller = poller
        self.limit = limit
    }

    /// Accepts as many connections of a listener as the pace allows. The listener reports again while more are waiting.
    ///
    /// - Parameters:
    ///   - turn: The number of the loop's current turn.
    ///   - closeIdle: Closes idle connections; returns false if there are none.
    ///   - start: Takes over an accepted connection.
    /// - Returns: Whether more connections may be waiting.
    func accept(
        from index: Int, turn: UInt64, closeIdle: () -> Bool, start: (consuming OwnedDescriptor, IPAddress?) -> Void
    ) -> Bool {
        guard listeners.indices.contains(index), !isPaused else { return false }
        let listener = listeners[index].descriptor.number
        for _ in 0..<pace.next(turn: turn) {
            guard !limit.isReached || closeIdle() else {
                pause()
                return false
            }
            var address = sockaddr_storage()
            let number = clinux_accept(listener, &address)
            if number >= 0 {
                reported = nil
                start(OwnedDescriptor(taking: number), IPAddress(address))
                continue
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EAGAIN: return false
            // The listener stays readable, so retrying at once would spin.
            case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                if !closeIdle() { pause() }
                return false
            default:
                report(.last("accept"))
                pause()
                return false
            }
        }
        return true
    }

    /// Reports an error that a filter, a security module or the network causes, unless it was the last one.
    private func report(_ error: SystemError) {
        if error != reported { limit.report(.notAccepting(error)) }
        reported = error
    }

    /// Leaves new connections in the backlog until ``resume()``. Until then, every response closes its connection, on all
    /// loops, so that waiting clients get their turn.
    private func pause() {
        isPaused = true
        limit.pause()
        poller.remove(listeners)
    }

    /// Resumes accepting connections if the system has the memory for it.
    func resume() {
        guard isPaused else { return }
        do throws(SystemError) {
            try poller.add(listeners)
            isPaused = false
            limit.resume()
        } catch {
            // Lets the next attempt start from the same state.
            poller.remove(listeners)
        }
    }

    // MARK: - Closing

    /// Whether connections are still accepted.
    var isOpen: Bool { !listeners.isEmpty }

    /// Makes new clients fail to connect, except on inherited sockets. Clients that have begun to connect are accepted until
    /// ``close(_:)``, because closing a listener resets connections that are in its backlog or whose handshake is incomplete.
    func refuseNewClients() {
        resume()
        for listener in listeners { listener.refuseNewClients() }
    }

    /// Whether all clients that have begun to connect were accepted or are in the backlog.
    var isSettled: Bool {
        !isPaused && !listeners.contains { $0.mayHaveHandshakes }
    }

    /// Accepts the connections in the backlog of the process's own sockets and stops listening.
    ///
    /// An inherited socket keeps its backlog for the next process. It still gets new clients, so accepting all of them might
    /// never end.
    ///
    /// - Parameter acceptAll: Accepts all waiting connections of the listener with this index.
    func close(_ acceptAll: (Int) -> Void) {
        guard isOpen else { return }
        resume()
        for index in listeners.indices where listeners[index].isOwn { acceptAll(index) }
        if isPaused { limit.resume() } else { poller.remove(listeners) }
        isPaused = false
        listeners = []
    }
}

/// The number of connections that a loop accepts per turn: one, doubling with each consecutive turn. An accept(2) without a
/// waiting connection makes the kernel create and discard a socket, and the listener reports again while connections wait.
struct AcceptPace {
    static let most = 64

    private var count = 1
    private var lastTurn: UInt64?

    /// - Parameter turn: The number of the turn; consecutive turns have consecutive numbers.
    mutating func next(turn: UInt64) -> Int {
        if let lastTurn, turn &- lastTurn <= 1 { count = min(count * 2, Self.most) } else { count = 1 }
        lastTurn = turn
        return count
    }
}
