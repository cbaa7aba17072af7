package import SystemIO

/// A place where the server listens.
package enum HTTPEndpoint: Sendable, Hashable, CustomStringConvertible {
    case tcp(address: IPAddress, port: Int)
    case unix(path: String)

    package var description: String {
        switch self {
        case .tcp(let address, let port): address.isIPv4 ? "\(address):\(port)" : "[\(address)]:\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}
