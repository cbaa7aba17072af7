import Glibc
import SystemIO

@testable import HTTP

/// A connection of the engine without a loop, and the other end of its socket. Neither end blocks.
final class SocketPair {
    let connection: Connection
    private let peer: OwnedDescriptor

    /// - Parameter sendBuffer: Bytes that the connection's socket holds, which the kernel rounds up; nil for its default.
    init(sendBuffer: Int32? = nil) throws {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw SystemError.last("socketpair") }
        if var sendBuffer {
            setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &sendBuffer, socklen_t(MemoryLayout<Int32>.size))
        }
        connection = Connection(socket: OwnedDescriptor(taking: ends[0]), generation: 1, peer: nil)
        connection.budget = Connection.turnBudget
        peer = OwnedDescriptor(taking: ends[1])
    }

    /// Sends bytes to the connection, which fit into the socket, and reports them as the poller would.
    func send(_ bytes: some Collection<UInt8>) throws {
        let bytes = Array(bytes)
        guard Glibc.send(peer.number, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw SystemError.last("send")
        }
        connection.isReadable = true
    }

    /// Closes the sending half of the other end.
    func finishSending() {
        shutdown(peer.number, Int32(SHUT_WR))
        connection.isReadable = true
    }

    /// Reads up to `count` bytes that the connection has sent, and reports the free space as the poller would.
    func read(upTo count: Int) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        let read = recv(peer.number, &buffer, count, 0)
        if read > 0 { connection.isWritable = true }
        return Array(buffer.prefix(max(0, read)))
    }

    /// Reads everything that the connection has sent.
    func readAll() -> [UInt8] {
        var all: [UInt8] = []
        while true {
            let piece = read(upTo: 65_536)
            if piece.isEmpty { return all }
            all += piece
        }
    }
}

/// The settings of a loop without a server.
func loopSettings(
    handler: any HTTPHandler = StubHandler(), _ change: (inout HTTPServerConfiguration) -> Void = { _ in }
) -> LoopSettings {
    var configuration = HTTPServerConfiguration()
    configuration.port = 0
    change(&configuration)
    return LoopSettings(configuration, handler: handler)
}
