/// The connections of a loop by descriptor. Finding one is an array access, and iterating over all of them reads one array.
final class ConnectionTable {
    /// No method calls other code while it accesses the array or the count, except ``filter(_:)``, whose condition must not change
    /// the table. So the checks at run time, which each turn of the loop would pay for, are off.
    @exclusivity(unchecked) private var slots: [Connection?] = []
    private var lastGeneration: UInt32 = 0
    @exclusivity(unchecked) private(set) var count = 0

    /// The connection that a token names; nil after it was closed.
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

    /// The connections for which `condition` holds, as a separate list: the caller may change the table while it uses them.
    func filter(_ condition: (Connection) -> Bool) -> [Connection] {
        var found: [Connection] = []
        for slot in slots {
            if let slot, condition(slot) { found.append(slot) }
        }
        return found
    }
}
