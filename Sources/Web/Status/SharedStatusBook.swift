/// The statuses of requests that other nodes of a cluster have, by the ids of the requests in hexadecimal. Every function may throw at any
/// time, while the statuses cannot be read or written.
package protocol SharedStatusBook: Sendable {
    /// Shows a status to the other nodes.
    ///
    /// - Parameter lifetime: The time after which it is forgotten, unless it is written again.
    /// - Returns: Whether a client has cancelled the request by way of another node.
    /// - Throws: If the status may not have been written.
    func write(_ id: String, _ document: [UInt8], for lifetime: Duration) async throws -> Bool

    /// The status that another node has shown; nil if there is none.
    func read(_ id: String) async throws -> [UInt8]?

    /// Cancels a request of another node, and returns whether there is one.
    func cancel(_ id: String) async throws -> Bool

    /// Removes a status that this node has shown. If that fails, the status is forgotten after its lifetime.
    func remove(_ id: String) async throws
}
