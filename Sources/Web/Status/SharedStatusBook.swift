/// The statuses of requests that other nodes of a cluster have. Every function may fail at any time, as if there were no status.
package protocol SharedStatusBook: Sendable {
    /// Shows a status to the other nodes.
    ///
    /// - Parameter lifetime: The time after which it is forgotten, unless it is written again.
    /// - Returns: Whether a client has left the request by way of another node.
    func write(_ id: UInt128, _ document: [UInt8], for lifetime: Duration) async -> Bool

    /// The status that another node has shown; nil if there is none.
    func read(_ id: UInt128) async -> [UInt8]?

    /// Leaves a request of another node, and returns whether there is one.
    func leave(_ id: UInt128) async -> Bool

    /// Removes a status that this node has shown.
    func remove(_ id: UInt128) async
}
