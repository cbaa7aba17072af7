@testable import Fleet

/// The subset of a server that the protocols use, as one deterministic step per command.
///
/// The scripts are modelled by their effect. Tests with a real server run their text.
final class SimulatedRedis {
    private struct Expiring<Value> {
        var value: Value
        var end: Duration?
    }

    private var strings: [String: Expiring<[UInt8]>] = [:]
    private var sets: [String: Set<String>] = [:]
    private var hashes: [String: [String: [UInt8]]] = [:]
    private(set) var entries: [(id: StreamID, fields: [[UInt8]])] = []
    /// The keys of records that were written where no lease was.
    private(set) var unledRecords: [String] = []
    /// Messages that were published and not taken.
    var published: [[UInt8]] = []

    /// What differs between the server's clock and that of the world.
    var clock: Duration = .seconds(100_000) {
        didSet { isBehind = isBehind || clock < oldValue }
    }

    /// Whether the clock was ever set back.
    private(set) var isBehind = false

    /// Loses the latest entries and all leases; with all entries, everything.
    func restart(losing count: Int) {
        entries.removeLast(min(count, count == .max ? entries.count : max(0, entries.count - 1)))
        if count == .max { (strings, sets, hashes) = ([:], [:], [:]) }
        strings = strings.filter { $0.value.value.first != UInt8(ascii: "L") }
    }

    /// Removes all but the latest entries.
    func trim(to count: Int) {
        entries.removeFirst(max(0, entries.count - count))
    }

    /// Removes the list of nodes, but not their own keys.
    func forgetNodes() {
        sets = [:]
    }

    /// Whether a blocking read would return entries.
    func hasEntries(after id: StreamID) -> Bool {
        entries.last.map { $0.id > id } ?? false
    }

    func execute(_ command: RedisCommand, now: Duration) -> RedisValue {
        if let script = command.script { return run(script, command, now) }
        let words = command.arguments.map { String(decoding: $0, as: UTF8.self) }
        switch words[0] {
        case "SET": return set(command, words, now)
        case "GET": return string(words[1], now).map { .bytes($0) } ?? .none
        case "TIME":
            let milliseconds = (now + clock).milliseconds
            let parts = [milliseconds / 1000, milliseconds % 1000 * 1000]
            return .array(parts.map { .bytes(Array(String($0).utf8)) })
        case "DEL": return .integer(strings.removeValue(forKey: words[1]) == nil ? 0 : 1)
        case "MGET":
            return .array(words.dropFirst().map { key in string(key, now).map { .bytes($0) } ?? .none })
        case "SADD": return .integer(sets[words[1], default: []].insert(words[2]).inserted ? 1 : 0)
        case "SREM":
            for name in words.dropFirst(2) { sets[words[1]]?.remove(name) }
            return .integer(Int64(words.count - 2))
        case "SMEMBERS": return .array((sets[words[1]] ?? []).sorted().map { .bytes(Array($0.utf8)) })
        case "HSET":
            hashes[words[1], default: [:]][words[2]] = command.arguments[3]
            return .integer(1)
        case "HGETALL":
            let hash = (hashes[words[1]] ?? [:]).sorted { $0.key < $1.key }
            return .array(hash.flatMap { [.bytes(Array($0.key.utf8)), .bytes($0.value)] })
        case "PEXPIRE": return .integer(1)
        case "PUBLISH":
            published.append(command.arguments[2])
            return .integer(1)
        case "XADD": return add(command, words, now)
        case "XRANGE", "XREVRANGE": return range(words)
        case "XREAD":
            let after = StreamID(words.last ?? "") ?? .zero
            let found = entries.filter { $0.id > after }.prefix(100)
            return found.isEmpty
                ? .none : .array([.array([.bytes(Array(words[words.count - 2].utf8)), .array(found.map(Self.value))])])
        default: return .error(RedisRefusal("ERR unknown command".utf8))
        }
    }

    private func string(_ key: String, _ now: Duration) -> [UInt8]? {
        guard let found = strings[key] else { return nil }
        if let end = found.end, end <= now {
            strings[key] = nil
            return nil
        }
        return found.value
    }

    private func set(_ command: RedisCommand, _ words: [String], _ now: Duration) -> RedisValue {
        let key = words[1]
        let present = string(key, now)
        if words.contains("NX"), let present { return .bytes(present) }
        var end: Duration?
        if let index = words.firstIndex(of: "PX"), let time = Int64(words[index + 1]) { end = now + .milliseconds(time) }
        strings[key] = Expiring(value: command.arguments[2], end: end)
        if SharedRecord(command.arguments[2]) != nil, present?.first != UInt8(ascii: "L") { unledRecords.append(key) }
        guard words.contains("GET") else { return .status("OK") }
        return present.map { .bytes($0) } ?? .none
    }

    // MARK: Streams

    private func add(_ command: RedisCommand, _ words: [String], _ now: Duration) -> RedisValue {
        guard let index = words.dropFirst(2).firstIndex(where: { $0 == "*" || $0.hasPrefix("0-") }) else {
            return .error(RedisRefusal("ERR wrong number of arguments".utf8))
        }
        let last = entries.last?.id ?? .zero
        if words.contains("NOMKSTREAM"), entries.isEmpty { return .none }
        let id: StreamID
        if words[index] == "*" {
            let time = UInt64((now + clock).milliseconds)
            id = time > last.milliseconds ? StreamID(time, 0) : StreamID(last.milliseconds, last.sequence + 1)
        } else {
            guard let chosen = StreamID(words[index]), chosen > last else {
                return .error(RedisRefusal("ERR The ID specified in XADD is equal or smaller".utf8))
            }
            id = chosen
        }
        entries.append((id, Array(command.arguments[(index + 1)...])))
        return .bytes(Array(id.description.utf8))
    }

    private func range(_ words: [String]) -> RedisValue {
        let isReverse = words[0] == "XREVRANGE"
        let (from, to) = isReverse ? (words[3], words[2]) : (words[2], words[3])
        let after = from.hasPrefix("(") ? StreamID(String(from.dropFirst())) : nil
        let (first, last) = (StreamID(from), StreamID(to))
        var found = entries.filter { entry in
            entry.id > after ?? .zero && entry.id >= first ?? .zero && entry.id <= last ?? StreamID(.max, .max)
        }
        if isReverse { found.reverse() }
        return .array(found.prefix(Int(words[5]) ?? 0).map(Self.value))
    }

    private static func value(_ entry: (id: StreamID, fields: [[UInt8]])) -> RedisValue {
        .array([.bytes(Array(entry.id.description.utf8)), .array(entry.fields.map { .bytes($0) })])
    }

    // MARK: Scripts

    private func run(_ script: RedisScript, _ command: RedisCommand, _ now: Duration) -> RedisValue {
        let key = String(decoding: command.arguments[3], as: UTF8.self)
        let arguments = Array(command.arguments.dropFirst(4))
        let value = string(key, now)
        switch script {
        case FlightScripts.await:
            guard let value else { return .none }
            if value.first == UInt8(ascii: "L") {
                if value.last != UInt8(ascii: "w") {
                    strings[key]?.value = value + [UInt8(ascii: "w")]
                } else if strings[key]?.end == nil {
                    strings[key]?.end = end(arguments[0], now)
                }
            }
            return .bytes(value)
        case FlightScripts.replace:
            guard value == arguments[0] else { return .integer(0) }
            strings[key] = Expiring(value: arguments[1], end: end(arguments[2], now))
            return .integer(1)
        case FlightScripts.renew:
            guard isLease(value, arguments[0]) else { return .integer(0) }
            strings[key]?.end = end(arguments[1], now)
            return .integer(1)
        case FlightScripts.complete:
            guard isLease(value, arguments[0]) else { return .integer(0) }
            let lifetime = end(arguments[2], now)
            if lifetime == now {
                strings[key] = nil
            } else {
                strings[key] = Expiring(value: arguments[1], end: lifetime)
            }
            if value != arguments[0] { published.append(arguments[4]) }
            return .integer(1)
        case ClusterTime.script:
            let correction = value.flatMap { Int64(String(decoding: $0, as: UTF8.self)) } ?? 0
            let time = (now + clock).milliseconds + correction
            guard let earliest = Int64(String(decoding: arguments[0], as: UTF8.self)),
                let latest = Int64(String(decoding: arguments[1], as: UTF8.self))
            else { return .integer(time) }
            let kept = min(max(time, earliest), latest)
            if kept != time { strings[key] = Expiring(value: Array(String(correction + kept - time).utf8), end: nil) }
            return .integer(kept)
        case NodeRegistry.forget: return forgetNodes(command, now)
        default: return .error(RedisRefusal("ERR unknown script".utf8))
        }
    }

    private func forgetNodes(_ command: RedisCommand, _ now: Duration) -> RedisValue {
        let words = command.arguments.dropFirst(3).map { String(decoding: $0, as: UTF8.self) }
        // The list, the key of each node, and their names.
        let count = words.count / 2
        let dead = zip(words[1...count], words[(count + 1)...]).filter { key, _ in string(key, now) == nil }.map(\.1)
        for name in dead { sets[words[0]]?.remove(name) }
        return .integer(Int64(dead.count))
    }

    private func isLease(_ value: [UInt8]?, _ lease: [UInt8]) -> Bool {
        value == lease || value == lease + [UInt8(ascii: "w")]
    }

    private func end(_ milliseconds: [UInt8], _ now: Duration) -> Duration {
        now + .milliseconds(Int64(String(decoding: milliseconds, as: UTF8.self)) ?? 0)
    }
}

extension RedisCommand {
    private static let scripts = Dictionary(
        uniqueKeysWithValues: [
            FlightScripts.await, FlightScripts.replace, FlightScripts.renew, FlightScripts.complete, ClusterTime.script,
            NodeRegistry.forget,
        ].map { ($0.text.argument, $0) })

    /// The script that the command runs; nil for another command.
    var script: RedisScript? { arguments[0] == "EVAL".argument ? Self.scripts[arguments[1]] : nil }
}
