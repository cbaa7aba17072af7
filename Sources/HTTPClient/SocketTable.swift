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

    /// Whether unread bytes have arrived on the connection between `localPort` and `remote`.
    func hasUnreadInput(localPort: Int, remote: IPAddress, remotePort: Int) -> Bool {
        for number in numbers {
            guard let local = Self.endpoint(of: number, getsockname) else {
                numbers.remove(number)
                continue
            }
            guard local.port == localPort, let peer = Self.endpoint(of: number, getpeername), peer == (remote, remotePort)
            else {
                continue
            }
            var byte: UInt8 = 0
            return recv(number, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
        }
        return false
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
