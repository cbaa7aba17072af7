internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemIO

/// A listening socket. Releasing the last reference closes it and removes its Unix path.
final class Listener: Sendable {
    let descriptor: SharedDescriptor
    let endpoint: HTTPEndpoint
    /// Whether several loops accept from it, so that a connection should wake only one of them.
    let isShared: Bool
    /// Whether this process opened the socket, so that no other process accepts from it.
    let isOwn: Bool
    /// Whether the path in ``endpoint`` remains to be removed.
    private let ownsPath: Atomic<Bool>

    /// The maximum length of the accept queue, which the kernel caps at `net.core.somaxconn`.
    private static let backlog: Int32 = 4096

    private init(_ number: Int32, _ endpoint: HTTPEndpoint, isShared: Bool, isOwn: Bool = true) {
        descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
        self.endpoint = endpoint
        self.isShared = isShared
        self.isOwn = isOwn
        ownsPath = Atomic(isOwn)
    }

    deinit {
        removePath()
    }

    /// Makes new clients fail to connect. Clients that have begun to connect can still be accepted.
    ///
    /// Does not affect an inherited socket: systemd also holds it, and its clients wait for the next process.
    func refuseNewClients() {
        guard isOwn else { return }
        switch endpoint {
        // If the kernel refuses the filter, new clients connect until the socket is closed.
        case .tcp: _ = clinux_refuse_handshakes(descriptor.number)
        case .unix: removePath()
        }
    }

    /// Whether clients may have begun to connect but cannot be accepted yet.
    var mayHaveHandshakes: Bool {
        isOwn && clinux_has_handshakes(descriptor.number) != 0
    }

    /// Removes the path of a Unix socket once, because a later file with that name belongs to another server.
    private func removePath() {
        guard case .unix(let path) = endpoint, ownsPath.exchange(false, ordering: .relaxed) else { return }
        unlink(path)
    }

    /// Opens one socket per loop on the same port; the kernel distributes connections over them (SO_REUSEPORT). For port 0, the
    /// first socket selects a free port, which the others share.
    static func tcp(host: String, port: Int, count: Int) throws(HTTPServerError) -> [Listener] {
        var address = sockaddr_storage()
        guard clinux_resolve(host, &address) == 0 else { throw .unknownHost(host) }
        if port != 0 {
            // SO_REUSEPORT lets any process of the same user join a port, so a second server would silently receive half of the
            // first one's connections; a bind without it fails.
            let probe = clinux_listen_inet(&address, UInt16(port), 0, 0)
            guard probe >= 0 else { throw .listening(at: "\(host):\(port)") }
            close(probe)
        }
        var listeners: [Listener] = []
        var sharedPort = UInt16(port)
        for _ in 0..<count {
            let number = clinux_listen_inet(&address, sharedPort, backlog, 1)
            guard number >= 0 else { throw .listening(at: "\(host):\(port)") }
            let endpoint = Self.endpoint(of: number)
            listeners.append(Listener(number, endpoint, isShared: false))
            if case .tcp(_, let bound) = endpoint { sharedPort = UInt16(bound) }
        }
        return listeners
    }

    /// Opens a socket at `path`, shared by all loops. Replaces a socket left behind by a server that has ended.
    ///
    /// - Parameters:
    ///   - mode: The permission bits of the path; nil applies the umask.
    ///   - group: The name or number of the path's group; nil keeps the group of the process.
    static func unix(path: String, mode: UInt32?, group: String?) throws(HTTPServerError) -> Listener {
        let groupNumber = try identifier(ofGroup: group)
        let modeBits = mode.map { Int32($0) } ?? -1
        var number = clinux_listen_unix(path, backlog, modeBits, groupNumber)
        if number < 0, errno == EADDRINUSE {
            if Files.isSocket(path) == false { throw .notASocket(path) }
            guard isLeftover(path) else { throw .addressInUse("unix:\(path)") }
            unlink(path)
            number = clinux_listen_unix(path, backlog, modeBits, groupNumber)
        }
        guard number >= 0 else { throw .listening(at: "unix:\(path)") }
        return Listener(number, .unix(path: path), isShared: true)
    }

    /// The identifier of a group, by its name or number; -1 for none.
    static func identifier(ofGroup group: String?) throws(HTTPServerError) -> Int64 {
        guard let group else { return -1 }
        let identifier = clinux_group(group)
        guard identifier >= 0 else { throw .unknownGroup(group) }
        return identifier
    }

    private static func isLeftover(_ path: String) -> Bool {
        Files.isSocket(path) == true && clinux_unix_is_alive(path) == 0
    }

    /// Adopts the sockets that systemd passed with these descriptors, shared by all loops; empty if there are none.
    static func inherited(_ descriptors: Range<Int32>) throws(HTTPServerError) -> [Listener] {
        var listeners: [Listener] = []
        for number in descriptors {
            guard clinux_is_listening(number) != 0 else { throw .notAListeningSocket(number) }
            guard clinux_adopt(number) == 0 else { throw .system(.last("fcntl")) }
            listeners.append(Listener(number, endpoint(of: number), isShared: true, isOwn: false))
        }
        return listeners
    }

    private static func endpoint(of number: Int32) -> HTTPEndpoint {
        var local = sockaddr_storage()
        guard clinux_local_address(number, &local) == 0, let address = IPAddress(local) else {
            return .unix(path: "(inherited)")
        }
        return .tcp(address: address, port: local.withSocketAddress { IPAddress.port($0) })
    }
}

/// The listening sockets that systemd opened for this process (sd_listen_fds(3)).
struct SocketActivation {
    /// The passed descriptors, starting at 3.
    let descriptors: Range<Int32>

    /// Reads the environment. `LISTEN_FDS` applies only if `LISTEN_PID` is this process.
    init(environment: (String) -> String? = SocketActivation.variable, process: Int32 = getpid()) {
        let first: Int32 = 3
        guard let pid = environment("LISTEN_PID").flatMap({ Int32($0) }), pid == process,
            let count = environment("LISTEN_FDS").flatMap({ Int32($0) }), (1...64).contains(count)
        else {
            descriptors = first..<first
            return
        }
        descriptors = first..<first + count
    }

    private static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }
}

extension IPAddress {
    /// Creates the address of a socket endpoint; nil for a Unix socket. A mapped IPv4 address becomes an IPv4 address, so that
    /// a client is the same on a dual-stack socket.
    init?(_ address: sockaddr_storage) {
        let size = MemoryLayout<sockaddr_storage>.size
        guard let found = address.withSocketAddress({ IPAddress($0, length: size) }) else { return nil }
        self = found.unmapped
    }
}

extension sockaddr_storage {
    fileprivate func withSocketAddress<Value>(_ body: (UnsafePointer<sockaddr>) -> Value) -> Value {
        withUnsafePointer(to: self) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body) }
    }
}
