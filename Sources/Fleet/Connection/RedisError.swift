/// Why a command has no result. The description is safe for logs: it contains no password and no value of a key.
package enum RedisError: Error, Sendable, Equatable, CustomStringConvertible {
    /// No connection, or a connection lost before the reply, with the reason.
    case unavailable(String)
    /// No reply within the deadline. The server may have executed the command.
    case timedOut
    case breakerOpen
    /// The calling task was cancelled. The server may have executed the command.
    case cancelled
    case refused(RedisRefusal)
    /// The server's bytes are not a reply, or not a valid reply to the command.
    case nonsense(String)

    package var description: String {
        switch self {
        case .unavailable(let reason): reason
        case .timedOut: "the server does not reply in time"
        case .breakerOpen: "the circuit breaker is open"
        case .cancelled: "the caller has left"
        case .refused(let refusal): refusal.description
        case .nonsense(let reason): "the server's reply makes no sense: \(reason)"
        }
    }

    /// The label in metrics and state: one of a fixed set of words.
    package var kind: String {
        switch self {
        case .unavailable: "unavailable"
        case .timedOut: "timeout"
        case .breakerOpen: "breaker_open"
        case .cancelled: "cancelled"
        case .refused(let refusal): refusal.kind.rawValue
        case .nonsense: "nonsense"
        }
    }
}

package struct RedisRefusal: Error, Sendable, Equatable, CustomStringConvertible {
    /// The server state named by the first word of an error reply.
    package enum Kind: String, Sendable, CaseIterable {
        /// `maxmemory` is reached, and the eviction policy finds nothing to evict.
        case outOfMemory = "oom"
        /// A replica, or a server that cannot write its data to disk.
        case readOnly = "readonly"
        /// The server is loading its data from disk after a start.
        case loading
        /// The password is missing or wrong, or the user lacks a permission.
        case authentication = "noauth"
        /// A node of a Redis cluster, which holds only a part of the keys.
        case moved
        /// The consumer group does not exist: it has to be created.
        case noGroup = "nogroup"
        case other
    }

    package let kind: Kind
    /// The reply's first word, such as `WRONGTYPE`.
    let word: String
    /// The server's message, reduced to what is safe for logs.
    let text: String

    /// - Parameter text: The error reply without its `-`.
    init(_ text: some Sequence<UInt8>) {
        let letters = text.prefix { (0x41...0x5a).contains($0) }.prefix(32)
        word = String(decoding: letters, as: UTF8.self)
        self.text = Self.safe(text)
        kind =
            switch word {
            case "OOM": .outOfMemory
            case "READONLY", "MISCONF", "NOREPLICAS": .readOnly
            case "LOADING", "MASTERDOWN", "BUSY", "TRYAGAIN": .loading
            case "NOAUTH", "WRONGPASS", "NOPERM": .authentication
            case "MOVED", "ASK", "CLUSTERDOWN", "CROSSSLOT": .moved
            case "NOGROUP": .noGroup
            default: .other
            }
    }

    /// The longest text in a log line.
    private static let maxTextBytes = 200

    /// Returns the printable text of a reply, without the arguments of an unknown command, which may include a password.
    private static func safe(_ text: some Sequence<UInt8>) -> String {
        let bytes = text.prefix(maxTextBytes).map { (0x20...0x7e).contains($0) ? $0 : UInt8(ascii: " ") }
        let whole = String(decoding: bytes, as: UTF8.self)
        return whole.ranges(of: ", with args").first.map { String(whole[..<$0.lowerBound]) } ?? whole
    }

    package var description: String {
        let words = text.isEmpty ? "no text" : text
        return switch kind {
        case .outOfMemory: "the server is out of memory: raise maxmemory, or let it evict volatile keys (\(words))"
        case .readOnly: "the server refuses writes (\(words))"
        case .loading: "the server is not ready (\(words))"
        case .authentication: "the server refuses the user or the password, or a right is missing (\(words))"
        case .moved: "the server is one of several nodes of a Redis cluster, which is not supported (\(words))"
        case .noGroup, .other: "the server replies with an error (\(words))"
        }
    }

    /// Whether the server as a whole is in a state in which further commands fail too.
    var concernsServer: Bool {
        switch kind {
        case .outOfMemory, .readOnly, .loading, .authentication, .moved: true
        case .noGroup, .other: false
        }
    }

    /// Whether a new connection may help, by reaching the new primary or logging in again.
    var isWorthReconnecting: Bool {
        switch kind {
        case .readOnly, .authentication, .moved: true
        case .outOfMemory, .loading, .noGroup, .other: false
        }
    }
}
