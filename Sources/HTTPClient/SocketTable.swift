internal import Glibc
internal import SystemIO

/// The sockets that were opened for libcurl, to find one by its addresses. Only the transfer loop's thread uses it.
///
/// libcurl closes sockets itself, and the kernel may have reused a descriptor for something else. The kernel is therefore asked
/// about each descriptor when it is looked up.
final class SocketTable {
    private var numbers: Set<Int32> = []

    func insert(_ number: Int32) {
        numbers.insert(number)
    }

    /// The socket of the connection between `localPort` and `remote`.
    func number(localPort: Int, remote: IPAddress, remotePort: Int) -> Int32? {
        for number in numbers {
            guard let local = Self.endpoint(of: number, getsockname) else {
                numbers.remove(number)
                continue
            }
            guard local.port == localPort, let peer = Self.endpoint(of: number, getpeername), peer == (remote, remotePort)
            else {
                continue
            }
            return number
        }
        return nil
    }

    /// Whether unread bytes have arrived on a socket.
    static func hasUnreadInput(_ number: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(number, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }

    /// Acknowledges now what has arrived on a socket. A server that writes head and body of a response apart otherwise waits for the
    /// delayed acknowledgement of the head, 40 ms, before its kernel sends the body (Nagle's algorithm, RFC 896 and RFC 1122 §4.2.3.2).
    static func acknowledge(_ number: Int32) {
        var on: Int32 = 1
        setsockopt(number, Int32(IPPROTO_TCP), TCP_QUICKACK, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    private typealias Query = (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32

    private static func endpoint(of number: Int32, _ query: Query) -> (address: IPAddress, port: Int)? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard query(number, address, &length) == 0 else { return nil }
                return IPAddress(address, length: Int(length)).map { ($0, IPAddress.port(address)) }
            }
        }
    }
}
