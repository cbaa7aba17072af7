internal import SystemIO

/// The settings of a node's part in a cluster.
package struct ClusterConfiguration: Sendable {
    package let address: RedisAddress
    /// The cluster's name, which namespaces all keys.
    package let name: String
    /// The node's name, which need not be unique.
    package let node: String
    package let timings: ClusterTimings

    /// A setting that cannot be used. The description is a sentence without the setting's name.
    package struct Invalid: Error, Sendable, Equatable, CustomStringConvertible {
        /// The last part of the setting's name: `redis`, `name` or `node`.
        package let setting: String
        package let description: String
    }

    /// - Parameters:
    ///   - address: See ``RedisAddress``.
    ///   - name: 1 to 64 characters of letters, digits, `.`, `_` and `-`.
    ///   - node: The same; nil for the host's name.
    package init(
        address: String, name: String, node: String?, timings: ClusterTimings = ClusterTimings()
    ) throws(Invalid) {
        self.timings = timings
        do throws(RedisAddress.Invalid) {
            self.address = try RedisAddress(address)
        } catch {
            throw Invalid(setting: "redis", description: error.description)
        }
        let node = node ?? NodeName.current
        for (setting, text) in [("name", name), ("node", node)] where !Self.isName(text) {
            throw Invalid(setting: setting, description: "must be 1 to 64 characters of letters, digits, '.', '_' and '-'")
        }
        self.name = name
        self.node = node
    }

    private static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f: true
                default: false
                }
            }
    }
}
