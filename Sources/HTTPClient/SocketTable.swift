internal import Glibc
internal import SystemIO

/// The sockets opened for libcurl, which can be looked up by their addresses. Used only by the thread that runs the transfers.
///
/// libcurl closes sockets itself, and the kernel may have reused their descriptors. Each lookup therefore asks the kernel about
/// each descriptor.
final class SocketTable {
    private var numbers: Set<Int32> = []

    func insert(_ number: Int32) {
        numbers.insert(number)
    }

    /// Returns the socket of the connection between `localPort` and `remote`.
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

    static func hasUnreadInput(_ number: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(number, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }

    /// Immediately acknowledges received data. Otherwise a server that writes head and body separately waits 40 ms for the
    /// delayed acknowledgement of the head before its kernel sends the body (Nagle's algorithm, RFC 896 and RFC 1122 §4.2.3.2).
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
