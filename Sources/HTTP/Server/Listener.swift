internal import CLinux
internal import Glibc
internal import SystemIO

/// A listening socket. Closed, and its Unix path removed, when the last loop lets go.
final class Listener: Sendable {
    let descriptor: SharedDescriptor
    let endpoint: HTTPEndpoint
    /// Whether several loops accept from it, so that one connection should wake only one of them.
    let isShared: Bool
    /// Whether the path in ``endpoint`` is this process's to remove.
    private let ownsPath: Bool

    /// The longest queue of connections not yet accepted; the kernel caps it at `net.core.somaxconn`.
    private static let backlog: Int32 = 4096

    private init(_ number: Int32, _ endpoint: HTTPEndpoint, isShared: Bool, ownsPath: Bool = false) {
        descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
        self.endpoint = endpoint
        self.isShared = isShared
        self.ownsPath = ownsPath
    }

    deinit {
        if ownsPath, case .unix(let path) = endpoint { unlink(path) }
    }

    /// One socket a loop, all on the same port, among which the kernel spreads the connections (SO_REUSEPORT). For port 0
    /// the first finds a free one and the others bind to that.
    static func tcp(host: String, port: Int, count: Int) throws(HTTPServerError) -> [Listener] {
        var address = clinux_address()
        guard clinux_resolve(host, &address) == 0 else { throw .unknownHost(host) }
        address.port = UInt16(port)
        if port != 0 { try refuseTakenPort(address, place: "\(host):\(port)") }
        var listeners: [Listener] = []
        for _ in 0..<count {
            let number = clinux_listen_inet(&address, backlog, 1)
            guard number >= 0 else { throw .listening(at: "\(host):\(port)") }
            let endpoint = Self.endpoint(of: number)
            listeners.append(Listener(number, endpoint, isShared: false))
            if case .tcp(_, let bound) = endpoint { address.port = UInt16(bound) }
        }
        return listeners
    }

    /// SO_REUSEPORT lets any process of the same user join a port, so a second server would silently take half of the
    /// first one's connections. Binding without it first tells.
    private static func refuseTakenPort(_ address: clinux_address, place: String) throws(HTTPServerError) {
        var address = address
        let probe = clinux_listen_inet(&address, 0, 0)
        guard probe >= 0 else { throw .listening(at: place) }
        close(probe)
    }

    /// A socket at `path`, shared by all loops. A socket left behind by a server that has ended is replaced.
    ///
    /// - Parameters:
    ///   - mode: Permission bits of the path; nil leaves those of the umask.
    ///   - group: Name or number of the path's group; nil leaves that of the process.
    static func unix(path: String, mode: UInt32?, group: String?) throws(HTTPServerError) -> Listener {
        var groupNumber: Int64 = -1
        if let group {
            groupNumber = clinux_group(group)
            guard groupNumber >= 0 else { throw .unknownGroup(group) }
        }
        let modeBits = mode.map { Int32($0) } ?? -1
        var number = clinux_listen_unix(path, backlog, modeBits, groupNumber)
        if number < 0, errno == EADDRINUSE, isLeftover(path) {
            unlink(path)
            number = clinux_listen_unix(path, backlog, modeBits, groupNumber)
        }
        guard number >= 0 else { throw .listening(at: "unix:\(path)") }
        return Listener(number, .unix(path: path), isShared: true, ownsPath: true)
    }

    private static func isLeftover(_ path: String) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return false }
        return clinux_unix_is_alive(path) == 0
    }

    /// The sockets systemd passed, shared by all loops; empty without any.
    static func inherited(_ activation: SocketActivation) throws(HTTPServerError) -> [Listener] {
        var listeners: [Listener] = []
        for number in activation.descriptors {
            guard clinux_is_listening(number) != 0 else { throw .notAListeningSocket(number) }
            guard clinux_adopt(number) == 0 else { throw .system(.last("fcntl")) }
            listeners.append(Listener(number, endpoint(of: number), isShared: true))
        }
        return listeners
    }

    private static func endpoint(of number: Int32) -> HTTPEndpoint {
        var local = clinux_address()
        guard clinux_local_address(number, &local) == 0, let address = IPAddress(local) else {
            return .unix(path: "(inherited)")
        }
        return .tcp(address: address, port: Int(local.port))
    }
}
