internal import CLinux
internal import Glibc
package import SystemIO

/// Why the server could not start.
package enum HTTPServerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A setting is out of range; `problem` continues a sentence that begins with its name.
    case invalidSetting(name: String, problem: String)
    /// The host is neither an address nor a name that resolves to one.
    case unknownHost(String)
    /// The group of the Unix socket's path is neither a number nor the name of a group.
    case unknownGroup(String)
    /// Something else listens there.
    case addressInUse(String)
    /// The host's address belongs to no interface of this machine.
    case addressNotAvailable(String)
    /// This user may not listen there.
    case permissionDenied(String)
    /// A descriptor that systemd passed is no listening stream socket.
    case notAListeningSocket(Int32)
    /// ``HTTPServer/start()`` was called twice.
    case alreadyStarted
    /// Any other system call that failed.
    case system(SystemError)

    package var description: String {
        switch self {
        case .invalidSetting(let name, let problem): "\(name) \(problem)."
        case .unknownHost(let host): "The host \(host) is unknown."
        case .unknownGroup(let group): "The group \(group) does not exist."
        case .addressInUse(let place): "Something else already listens on \(place)."
        case .addressNotAvailable(let place): "\(place) is no address of this machine."
        case .permissionDenied(let place): "Listening on \(place) is not permitted to this user."
        case .notAListeningSocket(let number): "Descriptor \(number), passed by systemd, is not a listening stream socket."
        case .alreadyStarted: "The server has been started already."
        case .system(let error): "The server could not start: \(error)."
        }
    }

    /// The failure to listen at `place` with the calling thread's `errno`.
    static func listening(at place: String) -> HTTPServerError {
        switch errno {
        case EADDRINUSE: .addressInUse(place)
        case EADDRNOTAVAIL: .addressNotAvailable(place)
        case EACCES, EPERM: .permissionDenied(place)
        default: .system(.last("listen on \(place)"))
        }
    }
}
