internal import CLinux
internal import Glibc
internal import SystemIO

/// A connected, non-blocking byte stream to a server: TCP, TLS over TCP, or a Unix socket. Not thread-safe.
final class RedisTransport {
    private let socket: OwnedSocket
    private let tls: TLSSession?
    /// Whether a write waits until the socket accepts more data.
    private(set) var wantsWrite = false

    /// Owns the socket, which ``TLSSession`` uses by its number.
    private final class OwnedSocket {
        let descriptor: OwnedDescriptor

        init(_ descriptor: consuming OwnedDescriptor) { self.descriptor = descriptor }
    }

    /// Connects. Blocks for at most `limit`, not counting name resolution.
    init(_ address: RedisAddress, within limit: Duration) throws(RedisError) {
        let end = ContinuousClock.now + limit
        switch address.endpoint {
        case .unix(let path):
            socket = OwnedSocket(try Self.connect(unix: path, until: end))
            tls = nil
        case .tcp(let host, let port):
            socket = OwnedSocket(try Self.connect(host, port, until: end))
            tls =
                try address.usesTLS
                ? TLSSession(socket: socket.descriptor.number, host: host, caFile: address.caFile) : nil
        }
        while let tls {
            let events: Int16
            switch try tls.connect() {
            case .done: return
            case .wantsWrite: events = Int16(POLLOUT)
            case .wantsRead, .closed: events = Int16(POLLIN)
            }
            guard Self.wait(socket.descriptor.number, events, until: end) else {
                throw .unavailable("the TLS handshake takes too long")
            }
        }
    }

    var descriptor: Int32 { socket.descriptor.number }

    /// Reads the bytes that have arrived, and returns their number, which may be 0. Throws at the end of the stream.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(RedisError) -> Int {
        if let tls {
            switch tls.read(into: buffer) {
            case .done(let count): return count
            case .wantsRead, .wantsWrite: return 0
            case .closed: throw .unavailable("the server has closed the connection")
            }
        }
        while true {
            let count = clinux_recv(descriptor, buffer.baseAddress, buffer.count)
            if count > 0 { return count }
            if count == 0 { throw .unavailable("the server has closed the connection") }
            switch errno {
            case EINTR: continue
            case EAGAIN: return 0
            default: throw .unavailable("the connection is lost: \(String(cString: strerror(errno)))")
            }
        }
    }

    /// Writes as much as the connection accepts, and removes it from `bytes`.
    func write(_ bytes: inout [UInt8]) throws(RedisError) {
        var written = 0
        wantsWrite = false
        while written < bytes.count, !wantsWrite {
            let step = bytes[written...].withUnsafeBytes { send($0) }
            switch step {
            case .done(let count): written += count
            case .wantsRead, .wantsWrite: wantsWrite = true
            case .closed: throw .unavailable("the connection is lost")
            }
        }
        bytes.removeFirst(written)
    }

    private func send(_ bytes: UnsafeRawBufferPointer) -> TLSSession.Step {
        if let tls { return tls.write(bytes) }
        while true {
            let count = clinux_send(descriptor, bytes.baseAddress, bytes.count, 0)
            if count >= 0 { return .done(count) }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .wantsWrite
            default: return .closed
            }
        }
    }

    // MARK: Connecting

    private static func connect(unix path: String, until end: ContinuousClock.Instant) throws(RedisError) -> OwnedDescriptor {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        return try withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                Result { () throws(RedisError) in
                    try connect(AF_UNIX, address, socklen_t(MemoryLayout<sockaddr_un>.size), until: end)
                }
            }
        }.get()
    }

    private static func connect(
        _ host: String, _ port: UInt16, until end: ContinuousClock.Instant
    ) throws(RedisError) -> OwnedDescriptor {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &list)
        guard code == 0, let list else {
            throw .unavailable("\(host) cannot be resolved: \(String(cString: gai_strerror(code)))")
        }
        defer { freeaddrinfo(list) }
        var failure = RedisError.unavailable("\(host) has no address")
        let entries = Array(sequence(first: list, next: { $0.pointee.ai_next }))
        for (index, entry) in entries.enumerated() {
            let share = attemptEnd(at: .now, until: end, addresses: entries.count - index)
            guard let address = entry.pointee.ai_addr else { continue }
            do throws(RedisError) {
                return try connect(entry.pointee.ai_family, address, entry.pointee.ai_addrlen, until: share)
            } catch {
                failure = error
            }
        }
        throw failure
    }

    /// The shortest time allowed for a connection attempt: a round trip around the world.
    private static let leastAttempt: Duration = .milliseconds(300)

    /// Returns the deadline for connecting to the next address: its share of the remaining time, but at least ``leastAttempt``.
    /// Otherwise an address that drops packets would use up all the time.
    static func attemptEnd(
        at now: ContinuousClock.Instant, until end: ContinuousClock.Instant, addresses: Int
    ) -> ContinuousClock.Instant {
        min(end, now + max(leastAttempt, (end - now) / max(1, addresses)))
    }

    private static func connect(
        _ family: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t, until end: ContinuousClock.Instant
    ) throws(RedisError) -> OwnedDescriptor {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let number = Glibc.socket(family, type, 0)
        guard number >= 0 else { throw failure(errno) }
        let descriptor = OwnedDescriptor(taking: number)
        if family != AF_UNIX {
            var on: Int32 = 1
            setsockopt(number, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
            setsockopt(number, SOL_SOCKET, SO_KEEPALIVE, &on, socklen_t(MemoryLayout<Int32>.size))
        }
        guard Glibc.connect(number, address, length) != 0 else { return descriptor }
        guard errno == EINPROGRESS || errno == EINTR else { throw failure(errno) }
        guard wait(number, Int16(POLLOUT), until: end) else { throw failure(ETIMEDOUT) }
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(number, SOL_SOCKET, SO_ERROR, &code, &size) == 0, code == 0 else { throw failure(code) }
        return descriptor
    }

    private static func failure(_ code: Int32) -> RedisError {
        .unavailable("no connection: \(String(cString: strerror(code)))")
    }

    /// Waits until the socket is ready. Returns false on a timeout or an error.
    private static func wait(_ descriptor: Int32, _ events: Int16, until end: ContinuousClock.Instant) -> Bool {
        while true {
            let left = (end - ContinuousClock.now).milliseconds
            if left <= 0 { return false }
            var interest = pollfd(fd: descriptor, events: events, revents: 0)
            let count = poll(&interest, 1, Int32(clamping: left))
            if count > 0 { return true }
            if count < 0 && errno != EINTR { return false }
        }
    }
}
