/// The connections of a loop by descriptor. A lookup is an array access, and an iteration reads one array.
final class ConnectionTable {
    /// No method calls other code while it accesses the array or the count, except ``filter(_:)``, whose condition must not
    /// change the table. The runtime exclusivity checks, a cost per turn of the loop, are therefore disabled.
    @exclusivity(unchecked) private var slots: [Connection?] = []
    private var lastGeneration: UInt32 = 0
    @exclusivity(unchecked) private(set) var count = 0

    /// Returns the connection that a token identifies; nil after it was closed.
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

    /// Returns a generation for the next connection, never 0.
    func nextGeneration() -> UInt32 {
        lastGeneration &+= 1
        if lastGeneration == 0 { lastGeneration = 1 }
        return lastGeneration
    }

    /// Returns the connections that satisfy `condition` as a separate list, so that the caller may change the table meanwhile.
    func filter(_ condition: (Connection) -> Bool) -> [Connection] {
        var found: [Connection] = []
        for slot in slots {
            if let slot, condition(slot) { found.append(slot) }
        }
        return found
    }
}
