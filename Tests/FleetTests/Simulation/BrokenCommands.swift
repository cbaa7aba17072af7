@testable import Fleet

/// A step of the protocols that nodes leave out, to show that the tests notice it.
///
/// The nodes are those of production. Most breaks change what they send, or what they are told, on the way to the server.
enum Break: String, CaseIterable, Sendable {
    /// A flight is completed without a comparison of the lease.
    case completesWithoutComparison
    /// A lease replaces that of another node.
    case takesTheLeaseOfAnother
    /// Leases last until they are released.
    case leasesNeverExpire
    /// Records claim to be later than all purges.
    case positionsAreNotCompared
    /// A purge waits for the node that makes it only.
    case purgesWaitForNobody
    /// A node that has started gives out what it has stored before it has applied the purges that it missed.
    case servesBeforeCatchingUp
    /// Where a look at the nodes fails, a purge counts the node that makes it only.
    case countsItselfIfTheLookFails
    /// The cache stores results of work that a purge overtook.
    case cacheIgnoresPurges
    /// A purge of another node is compared with the end of a fetch.
    case fetchesAreTimedByTheirEnd
    /// Purges have no tokens and no times, so that those that are delivered again cover what is newer.
    case purgesHaveNoTimes
    /// A node does not notice that the stream was trimmed, or that it is another one.
    case gapsAreIgnored

    /// The first order to try: shortly before one that notices the missing step. Later orders follow.
    var firstOrder: UInt64 {
        switch self {
        case .countsItselfIfTheLookFails: 6500
        case .purgesWaitForNobody: 365
        case .leasesNeverExpire: 1490
        case .servesBeforeCatchingUp, .gapsAreIgnored: 135
        case .positionsAreNotCompared: 1225
        default: 0
        }
    }
}

/// The connection of a node that leaves a step out.
struct BrokenCommands: RedisCommands {
    let base: any RedisCommands
    let missing: Break?
    /// The node's own name.
    let name: String

    private static let forever: Int64 = 1_000_000_000_000

    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue] {
        guard let missing else { return try await base.replies(to: commands, within: limit) }
        // Each command becomes one or two, whose last reply counts.
        let sent = commands.map { Self.changed($0, missing) }
        var replies: ArraySlice<RedisValue>
        do throws(RedisError) {
            replies = try await base.replies(to: sent.flatMap(\.self), within: limit)[...]
        } catch {
            guard missing == .countsItselfIfTheLookFails, commands.map(\.arguments.first) == [Array("SMEMBERS".utf8)] else {
                throw error
            }
            return [.array([.bytes(Array(name.utf8))])]
        }
        return commands.indices.map { index in
            let reply = replies.prefix(sent[index].count).last ?? .none
            replies = replies.dropFirst(sent[index].count)
            return changed(reply, to: commands[index], missing)
        }
    }

    private static func changed(_ command: RedisCommand, _ missing: Break) -> [RedisCommand] {
        let words = command.arguments
        switch missing {
        case .completesWithoutComparison where command.script == FlightScripts.complete:
            let announcement = RedisCommand(.integer, ["PUBLISH", words[7], words[8]])
            let end =
                words[6] == Array("0".utf8)
                ? RedisCommand(.integer, ["DEL", words[3]])
                : RedisCommand(.statusOrBytes, ["SET", words[3], words[5], "PX", words[6]])
            return [end, announcement]
        case .takesTheLeaseOfAnother where isLease(command):
            return [RedisCommand(.statusOrBytes, ["SET", words[1], words[2], "PX", words[6]])]
        case .leasesNeverExpire where isLease(command):
            return [RedisCommand(command.shape, Array(words.dropLast(2)))]
        case .leasesNeverExpire
        where [FlightScripts.renew, FlightScripts.replace, FlightScripts.await].contains(command.script):
            let arguments = Array(words[4...].dropLast()) + [String(forever).argument]
            guard let script = command.script else { return [command] }
            return [RedisCommand.script(script, keys: [text(words[3])], arguments)]
        case .positionsAreNotCompared where command.script == FlightScripts.complete:
            guard let record = unordered(words[5]) else { return [command] }
            let message = ClusterMessage.flight(key: text(words[3]), value: record)
            return [
                .script(
                    FlightScripts.complete, keys: [text(words[3])], [words[4], record, words[6], words[7], message.bytes])
            ]
        case .positionsAreNotCompared where words[0] == Array("PUBLISH".utf8):
            guard case .failure(let url, let bytes) = ClusterMessage(words[2]), let record = unordered(bytes) else {
                return [command]
            }
            let message = ClusterMessage.failure(sourceURL: url, record: record)
            return [RedisCommand(.integer, ["PUBLISH", words[1], message.bytes])]
        case .purgesHaveNoTimes where words[0] == Array("XADD".utf8) && !words.contains(Array("genesis".utf8)):
            return [RedisCommand(command.shape, words.map { ["t", "i"].map(\.argument).contains($0) ? "x".argument : $0 })]
        default: return [command]
        }
    }

    private func changed(_ reply: RedisValue, to command: RedisCommand, _ missing: Break) -> RedisValue {
        switch missing {
        case .completesWithoutComparison where command.script == FlightScripts.complete: .integer(1)
        case .takesTheLeaseOfAnother where Self.isLease(command): .none
        case .purgesWaitForNobody where command.arguments[0] == Array("SMEMBERS".utf8): .array([.bytes(Array(name.utf8))])
        default: reply
        }
    }

    /// Whether the command takes a lease: `SET key lease NX GET PX time`.
    private static func isLease(_ command: RedisCommand) -> Bool {
        command.arguments.count == 7 && command.arguments[3] == Array("NX".utf8)
    }

    /// A record that is later than all purges.
    private static func unordered(_ bytes: [UInt8]) -> [UInt8]? {
        guard var record = SharedRecord(bytes) else { return nil }
        record.began = 1 << 52
        return record.bytes
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
