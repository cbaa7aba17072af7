/// Rights in the server, and how they are tried: each by a command.
struct ServerRights: Sendable {
    /// The commands, in the order of their replies.
    let commands: [RedisCommand]
    /// The name of the right that each command needs, as `ACL SETUSER` takes it.
    let names: [String]
    /// The pattern of keys and channels.
    private let pattern: String

    init(_ trials: [(name: String, words: [any RedisArgument])], pattern: String) {
        commands = trials.map { RedisCommand(.array, $0.words) }
        names = trials.map(\.name)
        self.pattern = pattern
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
