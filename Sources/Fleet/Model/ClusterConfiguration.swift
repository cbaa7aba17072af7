internal import SystemIO

/// The settings of a node's part in a cluster.
package struct ClusterConfiguration: Sendable {
    package let address: RedisAddress
    /// The cluster's name, which namespaces all keys.
    package let name: String
    /// The node's name, which need not be unique.
    package let node: String
    package let timings: ClusterTimings

    /// - Parameters:
    ///   - address: See ``RedisAddress``.
    ///   - name: 1 to 64 characters of letters, digits, `.`, `_` and `-`.
    ///   - node: The same; nil for the host's name.
    package init(
        address: String, name: String, node: String?, timings: ClusterTimings = ClusterTimings()
    ) throws(ClusterSettingError) {
        self.timings = timings
        self.address = try RedisAddress(address)
        let node = node ?? NodeName.current
        for (setting, text) in [("name", name), ("node", node)] where !Self.isName(text) {
            throw ClusterSettingError(
                setting: setting, description: "must be 1 to 64 characters of letters, digits, '.', '_' and '-'")
        }
        self.name = name
        self.node = node
    }

    var keys: ClusterKeys { ClusterKeys(name: name, database: address.database) }

    private static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isLetterOrDigit || "._-".utf8.contains($0) }
    }
}
