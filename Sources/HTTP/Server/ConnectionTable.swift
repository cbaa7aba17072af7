/// A loop's connections, by descriptor. Finding one is an index, and walking over all of them reads one array.
final class ConnectionTable {
    private var slots: [Connection?] = []
    private var lastGeneration: UInt32 = 0
    private(set) var count = 0

    /// The connection a token names, unless that has gone.
    func find(_ token: ConnectionToken) -> Connection? {
        let index = Int(token.descriptor)
        guard slots.indices.contains(index), let connection = slots[index],
            connection.token.generation == token.generation
        else { return nil }
        return connection
    }

    func insert(_ connection: Connection) {
        let index = Int(connection.token.descriptor)
        if index >= slots.count { slots.append(contentsOf: repeatElement(nil, count: index + 1 - slots.count)) }
        slots[index] = connection
        count += 1
    }

    func remove(_ token: ConnectionToken) {
        slots[Int(token.descriptor)] = nil
        count -= 1
    }

    /// A generation for the next connection, never 0.
    func nextGeneration() -> UInt32 {
        lastGeneration &+= 1
        if lastGeneration == 0 { lastGeneration = 1 }
        return lastGeneration
    }

    /// All connections for which `condition` holds, as a list of their own: what is done with them may change the table.
    func filter(_ condition: (Connection) -> Bool) -> [Connection] {
        var found: [Connection] = []
        for slot in slots {
            if let slot, condition(slot) { found.append(slot) }
        }
        return found
    }
}
