internal import Glibc
internal import Synchronization
internal import SystemIO

/// The endpoints on which this process listens. A fetch from one of them would be a request to itself.
///
/// Thread-safe. Set after the server starts to listen, because the port is unknown before.
final class OwnEndpoints: Sendable {
    private let endpoints = Mutex<[(address: IPAddress, port: Int)]>([])

    func set(_ new: [(address: IPAddress, port: Int)]) {
        endpoints.withLock { $0 = new }
    }

    /// Whether a connection to `address` and `port` would arrive at this process.
    func contains(_ address: IPAddress, port: Int) -> Bool {
        let known = endpoints.withLock { $0.filter { $0.port == port }.map(\.address) }
        if known.isEmpty { return false }
        let address = address.unmapped
        // A connection to the unspecified address goes to this machine.
        return known.contains { $0 == address || address.isUnspecified || $0.isUnspecified && Self.isLocal(address) }
    }

    /// Whether `address` belongs to this machine, that is, whether a socket can be bound to it.
    private static func isLocal(_ address: IPAddress) -> Bool {
        var isBound = false
        address.withSocketAddress { pointer, length in
            let probe = socket(Int32(pointer.pointee.sa_family), Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            if probe >= 0 {
                isBound = bind(probe, pointer, length) == 0
                close(probe)
            }
        }
        return isBound
    }
}

extension IPAddress {
    /// `0.0.0.0` or `::`.
    var isUnspecified: Bool { self == .v4(0) || self == .v6(high: 0, low: 0) }

    /// Calls `body` with the address as a socket address with port 0.
    func withSocketAddress(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Void) {
        switch self {
        case .v4(let value):
            var four = sockaddr_in()
            four.sin_family = sa_family_t(AF_INET)
            four.sin_addr.s_addr = value.bigEndian
            withUnsafePointer(to: &four) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
            }
        case .v6(let high, let low):
            var six = sockaddr_in6()
            six.sin6_family = sa_family_t(AF_INET6)
            withUnsafeMutableBytes(of: &six.sin6_addr) {
                $0.storeBytes(of: high.bigEndian, as: UInt64.self)
                $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            withUnsafePointer(to: &six) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in6>.size)) }
            }
        }
    }
}
