internal import HTTP
internal import Sandbox
internal import Store

/// The division of the process's file descriptors among connections, open renditions and conversions. A pure value.
struct DescriptorBudget: Equatable {
    /// The connections that may be open at the same time.
    let connections: Int
    /// The entries of each of the cache's two tables of open renditions.
    let openRenditions: Int
    /// The limit of the process.
    let limit: Int
    /// The number of descriptors that the settings need.
    let needed: Int

    /// Descriptors of logs, libraries, listeners, event loops and databases.
    private static let fixed = 64
    /// Descriptors of a conversion: the source, the rendition, the connection to the origin, and two to the worker.
    private static let perConversion = 5
    /// The smallest part that connections and each table get.
    private static let least = 15

    /// - Parameters:
    ///   - connections: `server.max_connections`.
    ///   - openRenditions: The entries of each table if there are enough descriptors.
    init(limit: Int, connections: Int, openRenditions: Int, conversions: Int) {
        self.limit = limit
        needed = connections + 2 * openRenditions + Self.perConversion * conversions + Self.fixed
        if limit >= needed {
            self.connections = connections
            self.openRenditions = openRenditions
        } else {
            self.connections = min(connections, max(Self.least, limit / 2))
            self.openRenditions = min(openRenditions, max(Self.least, limit / 8))
        }
    }

    /// A line for the log if the limit is too low for the settings.
    var warning: String? {
        guard limit < needed else { return nil }
        return """
            the limit of \(limit) open files is below the \(needed) that the settings need: at most \(connections) connections and \
            \(2 * openRenditions) renditions are open at the same time; raise LimitNOFILE or ulimit -n, or lower \
            server.max_connections
            """
    }
}

extension ServiceConfiguration {
    /// Adapts the configuration to the limit of open files.
    ///
    /// - Returns: A warning for the log if the limit is too low.
    mutating func fit(descriptorLimit limit: Int) -> String? {
        let budget = DescriptorBudget(
            limit: limit, connections: http.maxConnections, openRenditions: cache.hotEntries,
            conversions: pool.workers + pool.queue)
        http.maxConnections = budget.connections
        cache.hotEntries = budget.openRenditions
        return budget.warning
    }
}
