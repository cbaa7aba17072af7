internal import CLinux
internal import Glibc
internal import SystemIO

/// The part of a loop that accepts connections, at a pace that follows their arrival and within the server's limit.
final class Acceptor {
    private let poller: Poller
    private let limit: ConnectionLimit
    private var listeners: [Listener]
    private var pace = AcceptPace()
    /// Whether new connections wait in the kernel's backlog, because the limit is reached or the system lacks descriptors.
    private(set) var isPaused = false

    init(_ listeners: [Listener], poller: Poller, limit: ConnectionLimit) {
        self.listeners = listeners
        self.poller = poller
        self.limit = limit
    }

    /// Accepts as many connections of a listener as the pace allows. The listener reports again while more wait.
    ///
    /// - Parameters:
    ///   - turn: The number of the loop's turn.
    ///   - closeIdle: Closes idle connections; returns false if there is none.
    ///   - start: Takes over a connection.
    /// - Returns: Whether more connections may wait.
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
            var address = clinux_address()
            let number = clinux_accept(listener, &address)
            if number >= 0 {
                start(OwnedDescriptor(taking: number), IPAddress(address))
                continue
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                // The listener stays readable, so trying again at once would spin.
                if !closeIdle() { pause() }
                return false
            default: return false
            }
        }
        return true
    }

    /// Leaves new connections in the backlog until ``resume()``. Meanwhile the responses of all loops end their connections, so
    /// that waiting clients get their turn.
    private func pause() {
        isPaused = true
        limit.pause()
        poller.remove(listeners)
    }

    /// Accepts connections again, if the system has the memory for it.
    func resume() {
        guard isPaused else { return }
        do throws(SystemError) {
            try poller.add(listeners)
            isPaused = false
            limit.resume()
        } catch {
            // The next attempt starts from the same state.
            poller.remove(listeners)
        }
    }

    // MARK: - The end

    /// Whether connections are still accepted.
    var isOpen: Bool { !listeners.isEmpty }

    /// Makes new clients fail to connect, except those of inherited sockets. Those that have begun to connect are accepted until
    /// ``close(_:)``: closing a listener resets the connections in its backlog, and those whose handshake is not complete.
    func refuseNewClients() {
        resume()
        for listener in listeners { listener.refuseNewClients() }
    }

    /// Whether all clients that have begun to connect were accepted or wait in the backlog.
    var isSettled: Bool {
        !isPaused && !listeners.contains { $0.mayHaveHandshakes }
    }

    /// Accepts what is in the backlog of the process's own sockets and stops listening.
    ///
    /// An inherited socket keeps its backlog for the next process. It still gets new clients, so accepting all of them might not
    /// end.
    ///
    /// - Parameter acceptAll: Accepts what waits at the listener with this index.
    func close(_ acceptAll: (Int) -> Void) {
        guard isOpen else { return }
        resume()
        for index in listeners.indices where listeners[index].isOwn { acceptAll(index) }
        if isPaused { limit.resume() } else { poller.remove(listeners) }
        isPaused = false
        listeners = []
    }
}

/// The number of connections that a loop accepts in a turn: one, and twice as many in each consecutive turn. An accept(2) that
/// finds none makes the kernel create a socket and discard it, and the listener reports again while connections wait.
struct AcceptPace {
    static let most = 64

    private var count = 1
    private var lastTurn: UInt64?

    /// - Parameter turn: Consecutive turns have consecutive numbers.
    mutating func next(turn: UInt64) -> Int {
        if let lastTurn, turn &- lastTurn <= 1 { count = min(count * 2, Self.most) } else { count = 1 }
        lastTurn = turn
        return count
    }
}
