internal import CLinux
internal import Glibc
internal import Synchronization
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

/// The limits of open connections, in total and per client, which all loops of a server share. Any thread; a lock is held for one
/// dictionary access.
final class ConnectionLimit: Sendable {
    private let limit: Int
    private let perClient: Int
    /// A proxy's connections are those of many clients.
    private let proxies: TrustedProxies
    private let open = Atomic(0)
    private let accepted = Atomic(0)
    private let refused = Atomic(0)
    private let pausedLoops = Atomic(0)
    private let clients = Mutex<[ClientNetwork: Int]>([:])

    init(_ limit: Int, perClient: Int = .max, proxies: TrustedProxies = TrustedProxies()) {
        self.limit = limit
        self.perClient = perClient
        self.proxies = proxies
    }

    /// Connections open now.
    var count: Int { open.load(ordering: .relaxed) }

    /// Whether no more connections may be accepted. Loops that ask at the same time may exceed the limit by one each.
    var isReached: Bool { count >= limit }

    /// Whether clients wait at any loop for a connection to end.
    var isContended: Bool { pausedLoops.load(ordering: .relaxed) > 0 }

    /// Connections accepted since the start.
    var acceptedCount: Int { accepted.load(ordering: .relaxed) }

    /// Connections that were refused since the start, because their client had as many as it may.
    var refusedCount: Int { refused.load(ordering: .relaxed) }

    /// The client that a connection counts for; nil for a trusted proxy and for a Unix socket.
    func client(of peer: IPAddress?) -> ClientNetwork? {
        guard let peer, !proxies.contains(peer) else { return nil }
        return ClientNetwork(peer)
    }

    /// Whether a client has as many connections as it may. Loops that ask at the same time may exceed the limit by one each.
    func isReached(by client: ClientNetwork) -> Bool {
        clients.withLock { $0[client] ?? 0 } >= perClient
    }

    /// Counts a connection that was accepted.
    ///
    /// - Parameter peer: The address of its other end.
    func enter(_ peer: IPAddress?) {
        open.wrappingAdd(1, ordering: .relaxed)
        accepted.wrappingAdd(1, ordering: .relaxed)
        if let client = client(of: peer) { clients.withLock { $0[client, default: 0] += 1 } }
    }

    /// Counts the end of a connection.
    func leave(_ peer: IPAddress?) {
        open.wrappingSubtract(1, ordering: .relaxed)
        guard let client = client(of: peer) else { return }
        clients.withLock { clients in
            let count = clients[client] ?? 0
            clients[client] = count > 1 ? count - 1 : nil
        }
    }

    func refuse() { refused.wrappingAdd(1, ordering: .relaxed) }

    func pause() { pausedLoops.wrappingAdd(1, ordering: .relaxed) }
    func resume() { pausedLoops.wrappingSubtract(1, ordering: .relaxed) }
}
