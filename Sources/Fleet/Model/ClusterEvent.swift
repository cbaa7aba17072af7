/// A change that an operator should know; its description is a line for the log.
package enum ClusterEvent: Sendable, Equatable, CustomStringConvertible {
    case shared(server: String)
    case alone(server: String, RedisError)
    /// The server refuses the subscription to messages of other nodes.
    case deaf(server: String, RedisError)
    /// Purges may have been missed while the node was away, so every alias is revalidated.
    case revalidating
    /// The node has worked alone for this long, so it may have missed purges.
    case doubting(after: Duration)

    package var description: String {
        switch self {
        case .shared(let server): "the node takes part in the cluster at \(server)"
        case .alone(let server, let error): "the node works without the cluster at \(server): \(error)"
        case .deaf(let server, let error):
            "messages of other nodes do not arrive, which delays requests that wait for them; the user needs +subscribe: \(server): \(error)"
        case .revalidating:
            "the purge stream does not reach back to the last purge that was applied here: the origin is asked again for everything"
        case .doubting(let time):
            """
            the node has worked without the cluster for \(time.components.seconds) s and may have missed purges: the origin is asked again \
            where it answers
            """
        }
    }

    package var isProblem: Bool {
        switch self {
        case .shared: false
        case .alone, .deaf, .revalidating, .doubting: true
        }
    }
}
