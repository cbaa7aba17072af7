/// A request method (RFC 9110 section 9). Methods are case-sensitive: `get` is not `GET`.
package enum HTTPMethod: Sendable, Hashable, CustomStringConvertible {
    case get, head, post, delete, options, connect
    /// The method that removes a resource from a cache. No RFC defines it, but Squid, Varnish and their clients use it.
    case purge
    /// Any other method, spelled as the client sent it.
    case other(String)

    /// The method as it appears in a request line.
    package var description: String {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .delete: "DELETE"
        case .options: "OPTIONS"
        case .connect: "CONNECT"
        case .purge: "PURGE"
        case .other(let name): name
        }
    }

    /// Creates the method of a request line. `token` must contain only token characters.
    init(_ token: UnsafeRawBufferPointer) {
        if token.count == 3, token.equals("GET") {
            self = .get
            return
        }
        self =
            switch String(decoding: token, as: UTF8.self) {
            case "HEAD": .head
            case "POST": .post
            case "DELETE": .delete
            case "OPTIONS": .options
            case "CONNECT": .connect
            case "PURGE": .purge
            case let name: .other(name)
            }
    }
}
