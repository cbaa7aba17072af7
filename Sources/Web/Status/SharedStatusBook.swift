/// The statuses of requests that other nodes of a cluster have. Every function may fail at any time.
package protocol SharedStatusBook: Sendable {
    /// Shows a status to the other nodes.
    ///
    /// - Parameter lifetime: The time after which it is forgotten, unless it is written again.
    /// - Returns: Whether a client has cancelled the request by way of another node.
    /// - Throws: If the status may not have been written.
    func write(_ id: UInt128, _ document: [UInt8], for lifetime: Duration) async throws(SharedStatusesUnavailable) -> Bool

    /// The status that another node has shown; nil if there is none.
    func read(_ id: UInt128) async throws(SharedStatusesUnavailable) -> [UInt8]?

    /// Cancels a request of another node, and returns whether there is one; false if that is not known.
    func cancel(_ id: UInt128) async -> Bool

    /// Removes a status that this node has shown. If that fails, the status is forgotten after its lifetime.
    func remove(_ id: UInt128) async
}

/// The error for statuses that cannot be written or read for the moment.
package struct SharedStatusesUnavailable: Error {
    package init() {}
}
