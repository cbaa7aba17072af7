/// The names of a cluster's keys in the server, and of its channel.
///
/// The names begin with the cluster's name and the version of the format, so that clusters, and nodes of two versions during an
/// upgrade, can share a server. The cluster's name is a hash tag: a server with Redis Cluster keeps all names in one slot, so
/// that commands may name several.
struct ClusterKeys: Sendable {
    /// Changes whenever nodes of two versions could misread one another.
    static let formatVersion = 1

    private let prefix: String
    /// The pattern of all names and the channel, as used in ACL rules.
    private let pattern: String
    /// See ``ClusterMessage``. Channels are shared by all databases of a server.
    let channel: String

    init(name: String, database: Int = 0) {
        prefix = "{\(name)}:v\(Self.formatVersion):"
        pattern = "{\(name)}:*"
        channel = prefix + (database == 0 ? "events" : "events:\(database)")
    }

    /// A flight's lease, later its record.
    ///
    /// - Parameter cover: The latest purge that covers the source. Work from before and after a purge has distinct keys.
    func flight(_ alias: String, cover: Int64) -> String { "\(prefix)flight:\(alias):\(cover)" }
    var purges: String { prefix + "purges" }
    func acknowledgements(_ id: StreamID) -> String { "\(prefix)acks:\(id)" }
    /// The correction of the server's clock; see ``ClusterTime``.
    var clock: String { prefix + "clock" }
    /// The set of the names of all nodes.
    var nodes: String { prefix + "nodes" }
    /// Exists while the node is live.
    func node(_ name: String) -> String { "\(prefix)node:\(name)" }
    var prewarm: String { prefix + "prewarm" }
    var prewarmGroup: String { "nodes" }
    /// The stream of the lists' ids, in the order of their arrival.
    var prewarmLists: String { prefix + "prewarm:lists" }
    /// The state of the request with an idempotency key.
    func prewarmRequest(_ key: String) -> String { "\(prefix)prewarm:request:\(key)" }
    func prewarmList(_ id: String) -> String { "\(prefix)prewarm:\(id)" }
    func status(_ id: String) -> String { "\(prefix)status:\(id)" }
    /// Exists if a client has cancelled the request.
    func statusMark(_ id: String) -> String { "\(prefix)status:\(id):left" }
    func prewarmErrors(_ id: String) -> String { "\(prefix)prewarm:\(id):errors" }
    func prewarmResults(_ id: String) -> String { "\(prefix)prewarm:\(id):results" }
}

extension ClusterKeys {
    /// The rights that a node needs. They are tested on a key that nodes do not use.
    var rights: ServerRights {
        let key = prefix + "probe"
        let trials: [(name: String, words: [any RedisArgument])] = [
            ("get", ["GET", key]), ("mget", ["MGET", key]), ("set", ["SET", key, "1", "PX", "1000"]),
            ("exists", ["EXISTS", key]),
            ("pexpire", ["PEXPIRE", key, "1000"]), ("del", ["DEL", key]),
            ("sadd", ["SADD", key, "1"]), ("smembers", ["SMEMBERS", key]), ("srem", ["SREM", key, "1"]),
            ("hset", ["HSET", key, "1", "1"]), ("hincrby", ["HINCRBY", key, "1", "1"]), ("hgetall", ["HGETALL", key]),
            ("del", ["DEL", key]),
            ("rpush", ["RPUSH", key, "1"]), ("lrange", ["LRANGE", key, "0", "0"]), ("llen", ["LLEN", key]),
            ("del", ["DEL", key]),
            ("xadd", ["XADD", key, "NOMKSTREAM", "*", "1", "1"]), ("xlen", ["XLEN", key]),
            ("xrange", ["XRANGE", key, "-", "+", "COUNT", "1"]), ("xrevrange", ["XREVRANGE", key, "+", "-", "COUNT", "1"]),
            ("xread", ["XREAD", "COUNT", "1", "STREAMS", key, "0"]), ("xdel", ["XDEL", key, "0-1"]),
            // Without the key, there is no group.
            ("xgroup|create", ["XGROUP", "CREATE", key, "1", "0"]),
            ("xgroup|delconsumer", ["XGROUP", "DELCONSUMER", key, "1", "1"]),
            ("xinfo|consumers", ["XINFO", "CONSUMERS", key, "1"]), ("xack", ["XACK", key, "1", "0-1"]),
            ("xreadgroup", ["XREADGROUP", "GROUP", "1", "1", "COUNT", "1", "STREAMS", key, ">"]),
            ("xautoclaim", ["XAUTOCLAIM", key, "1", "1", "1000", "0-0"]), ("xclaim", ["XCLAIM", key, "1", "1", "1000", "0-1"]),
            ("time", ["TIME"]),
            ("eval", ["EVAL", "return 0", "1", key]),
            // No node waits for this entry.
            ("publish", ["PUBLISH", channel, ClusterMessage.acknowledged(.zero).bytes]),
        ]
        return ServerRights(trials: trials, pattern: pattern)
    }
}
