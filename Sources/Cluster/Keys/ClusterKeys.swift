/// The names of everything that a cluster stores in the server, and of its channel.
///
/// The names begin with the cluster's name and the version of the format, so that clusters, and nodes of two versions during an
/// upgrade, can share a server. The cluster's name is a hash tag: a server with Redis Cluster keeps all names in one slot, so that
/// commands may name several.
package struct ClusterKeys: Sendable {
    /// Changes whenever nodes of two versions could misread one another.
    package static let formatVersion = 1

    private let prefix: String

    /// - Parameter name: The cluster's name.
    package init(name: String) {
        prefix = "{\(name)}:v\(Self.formatVersion):"
        pattern = "{\(name)}:*"
    }

    /// The pattern of all names and of the channel, as rights name it.
    let pattern: String
    /// A name that nodes do not use, on which rights are tried.
    var probe: String { prefix + "probe" }

    /// A flight's lease, later its record.
    ///
    /// - Parameter cover: The latest purge that covers the source. Work from before a purge and work from after it have distinct
    ///   keys.
    func flight(_ alias: String, cover: StreamID) -> String { "\(prefix)flight:\(alias):\(cover)" }
    /// Completed flights, acknowledged purges, and new prewarm lists.
    package var channel: String { prefix + "events" }
    var purges: String { prefix + "purges" }
    func acknowledgements(_ id: StreamID) -> String { "\(prefix)acks:\(id)" }
    /// The set of the names of all nodes.
    var nodes: String { prefix + "nodes" }
    /// Exists while the node is live.
    func node(_ name: String) -> String { "\(prefix)node:\(name)" }
    var prewarm: String { prefix + "prewarm" }
    /// The consumer group of the prewarm stream.
    var prewarmGroup: String { "nodes" }
    func prewarmList(_ id: String) -> String { "\(prefix)prewarm:\(id)" }
    /// The status of a request that is in progress on one node.
    func status(_ id: String) -> String { "\(prefix)status:\(id)" }
    /// Exists if a client has left that request.
    func statusMark(_ id: String) -> String { "\(prefix)status:\(id):left" }
    func prewarmErrors(_ id: String) -> String { "\(prefix)prewarm:\(id):errors" }
    func prewarmResults(_ id: String) -> String { "\(prefix)prewarm:\(id):results" }
}
