internal import Glibc

/// A connection of a ``FaultProxy``: the sockets of both sides and the bytes in between. Used on the proxy's thread only.
final class ProxyConnection {
    private let client: Int32
    private let server: Int32
    private var requests: ProxyStream
    private var responses: ProxyStream
    private(set) var isEnded = false

    init(client: Int32, server: Int32) {
        self.client = client
        self.server = server
        requests = ProxyStream(from: client, to: server)
        responses = ProxyStream(from: server, to: client)
    }

    /// The events to poll for.
    func interests(_ now: ContinuousClock.Instant) -> [pollfd] {
        func events(reading: ProxyStream, writing: ProxyStream) -> Int16 {
            (reading.takesBytes ? Int16(POLLIN) : 0) | (writing.hasDueItem(now) ? Int16(POLLOUT) : 0)
        }
        // A negative descriptor is ignored: poll would report the end of a socket without interests each time.
        func interest(_ number: Int32, _ events: Int16) -> pollfd {
            pollfd(fd: events == 0 ? -1 : number, events: events, revents: 0)
        }
        return [
            interest(client, events(reading: requests, writing: responses)),
            interest(server, events(reading: responses, writing: requests)),
        ]
    }

    /// The time at which delayed bytes are to be forwarded; nil if none wait.
    func nextDue(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        [requests.firstDue, responses.firstDue].compactMap { $0 }.filter { $0 > now }.min()
    }

    /// Reads, fails and forwards as far as possible without waiting.
    ///
    /// - Parameter countFailure: Called before a failure; the failure is not triggered if this returns false.
    func move(_ state: FaultProxy.State, countFailure: () -> Bool) {
        let now = ContinuousClock.now
        for ending in [
            requests.move(now, state.faults.requests, state.generation, countFailure),
            responses.move(now, state.faults.responses, state.generation, countFailure),
        ] {
            if let ending, !isEnded { end(withReset: ending == .reset) }
        }
        if !isEnded, requests.isFinished, responses.isFinished { end(withReset: false) }
    }

    /// Closes both sockets.
    func end(withReset: Bool) {
        guard !isEnded else { return }
        isEnded = true
        for socket in [client, server] {
            if withReset { ProxySocket.reset(socket) } else { close(socket) }
        }
    }
}

/// One direction of a connection.
private struct ProxyStream {
    enum Ending { case close, reset }

    private enum Action {
        case send([UInt8])
        /// Forwards the end of the stream.
        case finish
        case end(Ending)
    }

    private let source: Int32
    private let target: Int32
    private var queue: [(due: ContinuousClock.Instant, action: Action)] = []
    private var passed = 0
    private var generation = -1
    private var isSourceOpen = true
    private var isStalled = false
    private(set) var isFinished = false

    /// Reading pauses while this many pieces are queued.
    private static let queueLimit = 256

    init(from source: Int32, to target: Int32) {
        self.source = source
        self.target = target
    }

    var takesBytes: Bool { isSourceOpen && queue.count < Self.queueLimit }
    var firstDue: ContinuousClock.Instant? { queue.first?.due }

    func hasDueItem(_ now: ContinuousClock.Instant) -> Bool { firstDue.map { $0 <= now } ?? false }

    mutating func move(
        _ now: ContinuousClock.Instant, _ faults: FaultProxy.Stream, _ generation: Int, _ countFailure: () -> Bool
    ) -> Ending? {
        if self.generation != generation {
            self.generation = generation
            passed = 0
        }
        if let ending = receive(now, faults, countFailure) { return ending }
        return forward(now)
    }

    /// Reads the bytes that have arrived, and queues them with the event that follows them.
    private mutating func receive(
        _ now: ContinuousClock.Instant, _ faults: FaultProxy.Stream, _ countFailure: () -> Bool
    ) -> Ending? {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while takesBytes {
            let count = recv(source, &buffer, buffer.count, 0)
            if count < 0 {
                if errno == EAGAIN { return nil }
                if errno == EINTR { continue }
                return .reset
            }
            if count == 0 {
                isSourceOpen = false
                if isStalled { isFinished = true } else { queue.append((now + faults.delay, .finish)) }
                return nil
            }
            if isStalled { continue }
            let bytes = Array(buffer[..<count])
            let rest = faults.bytesBeforeFailure - passed
            passed += count
            guard let failure = faults.failure, count >= rest, countFailure() else {
                queue.append((now + faults.delay, .send(bytes)))
                continue
            }
            queue.append((now + faults.delay, .send(Array(bytes.prefix(max(0, rest))))))
            switch failure {
            case .close: queue.append((now + faults.delay, .end(.close)))
            case .reset: queue.append((now + faults.delay, .end(.reset)))
            case .stall: isStalled = true
            case .garbage(let garbage):
                queue.append((now + faults.delay, .send(garbage)))
                queue.append((now + faults.delay, .end(.close)))
            }
            // Bytes after the failure are read and dropped.
            isStalled = true
        }
        return nil
    }

    /// Writes the bytes that are due.
    private mutating func forward(_ now: ContinuousClock.Instant) -> Ending? {
        while let (due, action) = queue.first, due <= now {
            switch action {
            case .send(let bytes) where bytes.isEmpty: break
            case .send(let bytes):
                let count = send(target, bytes, bytes.count, Int32(MSG_NOSIGNAL))
                if count < 0 {
                    if errno == EAGAIN { return nil }
                    if errno == EINTR { continue }
                    return .reset
                }
                if count < bytes.count {
                    queue[0].action = .send(Array(bytes[count...]))
                    continue
                }
            case .finish:
                shutdown(target, Int32(SHUT_WR))
                isFinished = true
            case .end(let ending): return ending
            }
            queue.removeFirst()
        }
        return nil
    }
}

/// Sockets on 127.0.0.1.
enum ProxySocket {
    /// A socket that is bound to `port`, or to a free port for 0. Several sockets may be bound to one port while none of them
    /// listens.
    static func bound(to port: Int) throws -> (socket: Int32, port: Int) {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard number >= 0 else { throw LoopbackFailure(operation: "socket", code: errno) }
        var isOn: Int32 = 1
        setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size))
        var address = loopback(port)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(number, address, length) == 0 && getsockname(number, address, &length) == 0
            }
        }
        guard isBound else {
            let code = errno
            close(number)
            throw LoopbackFailure(operation: "bind", code: code)
        }
        return (number, Int(UInt16(bigEndian: address.sin_port)))
    }

    /// A non-blocking socket that listens on `port`.
    static func listening(on port: Int) throws -> Int32 {
        let (number, _) = try bound(to: port)
        guard listen(number, 256) == 0 else {
            let code = errno
            close(number)
            throw LoopbackFailure(operation: "listen", code: code)
        }
        return number
    }

    /// A non-blocking connection to `port`; nil if the connection is refused.
    static func connected(to port: Int) -> Int32? {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { return nil }
        var address = loopback(port)
        // On loopback this does not wait for the other process.
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0, fcntl(number, F_SETFL, O_NONBLOCK) == 0 else {
            close(number)
            return nil
        }
        sendAtOnce(number)
        return number
    }

    /// Sends small pieces without delay (TCP_NODELAY).
    static func sendAtOnce(_ number: Int32) {
        var isOn: Int32 = 1
        setsockopt(number, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Closes a socket with RST.
    static func reset(_ number: Int32) {
        var lingering = linger(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &lingering, socklen_t(MemoryLayout<linger>.size))
        close(number)
    }

    private static func loopback(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }
}
