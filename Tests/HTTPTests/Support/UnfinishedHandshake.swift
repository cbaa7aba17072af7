import Glibc
import SystemIO

/// A TCP client whose handshake has begun and does not proceed: a socket filter (socket(7)) discards what the server sends.
final class UnfinishedHandshake: Sendable {
    private let socket: SharedDescriptor

    /// Sends the first packet of a handshake to a loopback port.
    init(port: Int) throws {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let number = Glibc.socket(AF_INET, type, 0)
        guard number >= 0 else { throw SystemError.last("socket") }
        socket = SharedDescriptor(OwnedDescriptor(taking: number))
        // The instruction `ret #0`, which accepts no byte of a packet.
        var discardAll: UInt64 = 0x06
        let isFiltered = withUnsafePointer(to: &discardAll) { program in
            // sock_fprog: the number of instructions and their address.
            var filter: (count: UInt64, program: UnsafePointer<UInt64>) = (1, program)
            return setsockopt(number, SOL_SOCKET, SO_ATTACH_FILTER, &filter, socklen_t(MemoryLayout.size(ofValue: filter))) == 0
        }
        guard isFiltered else { throw SystemError.last("setsockopt(SO_ATTACH_FILTER)") }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = withUnsafeBytes(of: &address) { bytes in
            connect(number, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        guard connected != 0, errno == EINPROGRESS else { throw SystemError.last("connect") }
    }

    /// Lets the handshake proceed. Returns the client when it is connected, which takes until the next packet of the kernel's.
    func finish() throws -> RawClient {
        var unused: Int32 = 0
        setsockopt(socket.number, SOL_SOCKET, SO_DETACH_FILTER, &unused, socklen_t(MemoryLayout.size(ofValue: unused)))
        var wanted = pollfd(fd: socket.number, events: Int16(POLLOUT), revents: 0)
        guard poll(&wanted, 1, 10_000) == 1 else { throw RawClient.Failure(description: "The handshake took over 10 s.") }
        let copy = fcntl(socket.number, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0, fcntl(copy, F_SETFL, 0) == 0 else { throw SystemError.last("fcntl") }
        return RawClient(connected: OwnedDescriptor(taking: copy))
    }
}
