internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemIO

/// Taking connections in and letting them go.
extension EventLoop {
    /// How long a connection must have been idle to be closed in favour of a new one.
    private static let expendableAfter: UInt64 = 1_000_000_000

    /// Takes in those who wait at a listener, as many as the pace has it; the listener reports again while more wait. Returns
    /// whether there may be more.
    @discardableResult
    func accept(from index: Int) -> Bool {
        guard listeners.indices.contains(index), !isAcceptingPaused else { return false }
        let listener = listeners[index].descriptor.number
        for _ in 0..<acceptPace.next(turn: turn) {
            guard !settings.admission.isFull || makeRoom() else {
                pauseAccepting()
                return false
            }
            var address = clinux_address()
            let number = clinux_accept(listener, &address)
            if number >= 0 {
                open(OwnedDescriptor(taking: number), IPAddress(address))
                continue
            }
            switch errno {
            case EINTR, ECONNABORTED: continue
            case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                // Trying again at once would spin: the listener stays readable.
                if !makeRoom() { pauseAccepting() }
                return false
            default: return false
            }
        }
        return true
    }

    private func open(_ socket: consuming OwnedDescriptor, _ peer: IPAddress?) {
        let connection = Connection(socket: socket, generation: connections.nextGeneration(), peer: peer)
        connection.deadline = clock.now + settings.headTimeout
        connection.idleSince = clock.now
        connections.insert(connection)
        settings.admission.enter()
        counters.accepted.wrappingAdd(1, ordering: .relaxed)
        // Most clients send their request at once, so that it is there already: a connection that ends with its first answer
        // is over before the poller would hear of it.
        connection.isReadable = true
        serve(connection)
        guard connection.phase != .closed else { return }
        if !poller.addConnection(connection.token.descriptor, token: connection.token.encoded) { close(connection) }
    }

    /// Ends a connection, whatever is under way on it. Its descriptor is closed when the last reference goes.
    func close(_ connection: Connection) {
        guard connection.phase != .closed else { return }
        if connection.exchange.started != 0 { record(connection, isComplete: false) }
        connection.phase = .closed
        connection.task?.cancel()
        connection.task = nil
        connection.stream?.continuation?.resume(returning: false)
        connection.stream = nil
        connection.reception?.sink.abort()
        connection.reception = nil
        connection.outgoing = []
        connections.remove(connection.token)
        settings.admission.leave()
        counters.closed.wrappingAdd(1, ordering: .relaxed)
        if isAcceptingPaused, drain == nil { resumeAccepting() }
    }

    /// Closes the connections that have been idle longest. Returns false where none has been for long.
    @discardableResult
    func makeRoom() -> Bool {
        let limit = clock.now - min(clock.now, Self.expendableAfter)
        let idle = connections.filter { $0.isIdle && $0.idleSince <= limit }.sorted { $0.idleSince < $1.idleSince }
        for connection in idle.prefix(max(1, idle.count / 8)) { close(connection) }
        return !idle.isEmpty
    }

    /// Lets new connections wait in the kernel until one has ended or some time has passed. Meanwhile answers of all loops
    /// end their connections, so that places go round.
    private func pauseAccepting() {
        isAcceptingPaused = true
        settings.admission.pause()
        sweepSoon()
        poller.remove(listeners)
    }

    func resumeAccepting() {
        do throws(SystemError) {
            try poller.add(listeners)
            isAcceptingPaused = false
            settings.admission.resume()
        } catch {
            // Still no memory for it: the next sweep tries again, from a clean start.
            poller.remove(listeners)
        }
    }
}
