/// A dictionary of bounded size that lets go of what has not been asked for: SIEVE (Zhang et al., NSDI 2024).
///
/// New entries go to the front of a queue. A hit only sets the entry's bit. When room is needed a hand moves from the back to
/// the front, clears the bits it meets, and removes the first entry without one. Not synchronised.
struct SieveTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Node {
        let key: Key
        /// Nil in a place that is free: a node that is itself optional would be looked at through its type's metadata.
        var value: Value?
        var visited = false
        /// Neighbours: towards the front (newer) and towards the back (older); -1 for none.
        var newer: Int
        var older: Int
    }

    private var places: [Key: Int] = [:]
    private var nodes: [Node] = []
    private var free: [Int] = []
    private var front = -1
    private var back = -1
    private var hand = -1
    private let limit: Int

    /// - Parameter limit: Entries at most, at least 1.
    init(limit: Int) {
        self.limit = max(1, limit)
    }

    var count: Int { places.count }

    /// The value, marking it as used.
    @inline(__always)
    mutating func use(_ key: Key) -> Value? {
        guard let place = places[key] else { return nil }
        if !nodes[place].visited { nodes[place].visited = true }
        return nodes[place].value
    }

    /// The value, leaving no mark.
    func peek(_ key: Key) -> Value? {
        places[key].flatMap { nodes[$0].value }
    }

    /// Puts `value` in, in the place of an older one under the same key, else at the front.
    ///
    /// - Returns: What had to go: the older value or the one that made room. Let go of it outside any lock: its end may
    ///   close a file.
    mutating func insert(_ value: Value, for key: Key) -> Value? {
        if let place = places[key], let old = nodes[place].value {
            nodes[place].value = value
            return old
        }
        let removed = places.count >= limit ? evict() : nil
        let node = Node(key: key, value: value, newer: -1, older: front)
        let place: Int
        if let reused = free.popLast() {
            nodes[reused] = node
            place = reused
        } else {
            place = nodes.count
            nodes.append(node)
        }
        if front >= 0 { nodes[front].newer = place } else { back = place }
        front = place
        places[key] = place
        return removed
    }

    /// Takes one entry out.
    mutating func remove(_ key: Key) -> Value? {
        places[key].flatMap { remove(at: $0) }
    }

    /// Takes out all entries that `condition` holds for.
    mutating func removeAll(where condition: (Key, Value) -> Bool) -> [Value] {
        let doomed = nodes.indices.filter { place in nodes[place].value.map { condition(nodes[place].key, $0) } ?? false }
        return doomed.compactMap { remove(at: $0) }
    }

    private mutating func evict() -> Value? {
        var place = hand >= 0 ? hand : back
        // Ends within two rounds: the first clears every bit at worst.
        while place >= 0, nodes[place].visited {
            nodes[place].visited = false
            let newer = nodes[place].newer
            place = newer >= 0 ? newer : back
        }
        guard place >= 0 else { return nil }
        hand = place
        return remove(at: place)
    }

    private mutating func remove(at place: Int) -> Value? {
        let node = nodes[place]
        guard node.value != nil else { return nil }
        if hand == place { hand = node.newer }
        if node.newer >= 0 { nodes[node.newer].older = node.older } else { front = node.older }
        if node.older >= 0 { nodes[node.older].newer = node.newer } else { back = node.newer }
        places[node.key] = nil
        nodes[place].value = nil
        nodes[place].visited = false
        free.append(place)
        return node.value
    }
}
