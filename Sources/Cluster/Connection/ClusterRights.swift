/// The rights that a node needs in the server, and how they are tried: each command runs on a key that nodes do not use.
package struct ClusterRights: Sendable {
    /// The commands, in the order of their replies.
    let commands: [RedisCommand]
    /// The name of the right that each command needs, as `ACL SETUSER` takes it.
    let names: [String]
    /// The pattern of keys and channels.
    private let pattern: String

    package init(_ keys: ClusterKeys) {
        let key = RedisArgument(keys.probe)
        let trials: [(name: String, words: [RedisArgument])] = [
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
            ("xgroup|create", ["XGROUP", "CREATE", key, "1", "0"]), ("xack", ["XACK", key, "1", "0-1"]),
            ("xreadgroup", ["XREADGROUP", "GROUP", "1", "1", "COUNT", "1", "STREAMS", key, ">"]),
            ("xautoclaim", ["XAUTOCLAIM", key, "1", "1", "1000", "0-0"]), ("xclaim", ["XCLAIM", key, "1", "1", "1000", "0-1"]),
            ("eval", ["EVAL", "return 0", "1", key]),
            // A script that does not exist.
            ("evalsha", ["EVALSHA", "0000000000000000000000000000000000000000", "1", key]),
            // Nobody waits for this entry.
            ("publish", ["PUBLISH", RedisArgument(keys.channel), RedisArgument(ClusterMessage.acknowledged(.zero).bytes)]),
        ]
        commands = trials.map { RedisCommand(.array, $0.words) }
        names = trials.map(\.name)
        pattern = keys.pattern
    }

    /// The rights that are missing, as `ACL SETUSER` takes them. Other errors are of no interest here.
    func missing(in replies: [RedisValue]) -> [String] {
        var missing: [String] = []
        for (name, reply) in zip(names, replies) {
            guard case .error(let refusal) = reply, refusal.word == "NOPERM" else { continue }
            let text = refusal.text.lowercased()
            let right = text.contains("channel") ? "&\(pattern)" : text.contains(" key") ? "~\(pattern)" : "+\(name)"
            if !missing.contains(right) { missing.append(right) }
        }
        return missing
    }
}
