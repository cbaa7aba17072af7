internal import SystemIO

/// Accepted connections of clients at their limits, which are served once other connections of the same client have ended. Used
/// by one loop thread.
///
/// Connections wait per client in order of arrival, so that the work per turn depends only on the number of clients.
struct HeldConnections {
    private struct Entry {
        let connection: Connection
        /// When the client is refused, in nanoseconds of the loop's clock.
        let end: UInt64
    }

    private var entries: [ClientNetwork: [Entry]] = [:]
    private(set) var count = 0

    /// The maximum time for which a connection is held, in nanoseconds. A burst of short requests takes less.
    private static let patience: UInt64 = 5_000_000_000
    /// The maximum number of connections that a loop holds.
    private static let most = 256

    var isEmpty: Bool { count == 0 }

    var clients: [ClientNetwork] { Array(entries.keys) }

    func contains(_ client: ClientNetwork) -> Bool { entries[client] != nil }

    /// Holds a connection. Returns false if the maximum number is held already.
    mutating func hold(_ connection: Connection, of client: ClientNetwork, at now: UInt64) -> Bool {
        guard count < Self.most else { return false }
        entries[client, default: []].append(Entry(connection: connection, end: now + Self.patience))
        count += 1
        return true
    }

    /// Removes and returns the longest waiting connection of a client.
    mutating func next(of client: ClientNetwork) -> Connection? { remove(1, of: client).first }

    /// Removes and returns the connections that have waited too long.
    mutating func expired(at now: UInt64) -> [Connection] {
        clients.flatMap { client in remove((entries[client] ?? []).prefix { $0.end <= now }.count, of: client) }
    }

    mutating func removeAll() -> [Connection] {
        clients.flatMap { client in remove(.max, of: client) }
    }

    private mutating func remove(_ wanted: Int, of client: ClientNetwork) -> [Connection] {
        guard wanted > 0, var waiting = entries[client] else { return [] }
        let removed = waiting.prefix(wanted).map(\.connection)
        waiting.removeFirst(removed.count)
        count -= removed.count
        entries[client] = waiting.isEmpty ? nil : waiting
        return removed
    }
}
