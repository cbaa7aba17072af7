internal import Glibc
package import SystemIO

/// A reason why the server could not start.
package enum HTTPServerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The host is neither an address nor a name that resolves to an address.
    case unknownHost(String)
    /// The group of the Unix socket's path is neither a number nor the name of a group.
    case unknownGroup(String)
    /// Another process listens on this endpoint.
    case addressInUse(String)
    /// The Unix socket's path names another kind of file, which is not replaced.
    case notASocket(String)
    /// No interface of this machine has the host's address.
    case addressNotAvailable(String)
    /// The user lacks permission to listen on this endpoint.
    case permissionDenied(String)
    /// A descriptor that systemd passed is not a listening stream socket.
    case notAListeningSocket(Int32)
    /// ``HTTPServer/start()`` was called twice.
    case alreadyStarted
    /// Another system call failed.
    case system(SystemError)

    package var description: String {
        switch self {
        case .unknownHost(let host): "The host \(host) cannot be resolved to an address."
        case .unknownGroup(let group): "The group \(group) does not exist."
        case .addressInUse(let endpoint): "Another process already listens on \(endpoint)."
        case .notASocket(let path): "\(path) exists and is not a socket."
        case .addressNotAvailable(let endpoint): "\(endpoint): this machine does not have the address."
        case .permissionDenied(let endpoint): "The user lacks the permission to listen on \(endpoint)."
        case .notAListeningSocket(let number): "Descriptor \(number), passed by systemd, is not a listening stream socket."
        case .alreadyStarted: "The server has been started already."
        case .system(let error): "The server could not start: \(error)."
        }
    }

    /// Returns the error for a failure to listen on `endpoint`, from the calling thread's `errno`.
    static func listening(at endpoint: String) -> HTTPServerError {
        switch errno {
        case EADDRINUSE: .addressInUse(endpoint)
        case EADDRNOTAVAIL: .addressNotAvailable(endpoint)
        case EACCES, EPERM: .permissionDenied(endpoint)
        default: .system(.last("listen on \(endpoint)"))
        }
    }
}

/// An endpoint on which the server listens.
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
