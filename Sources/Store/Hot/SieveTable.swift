/// A dictionary of bounded size that evicts entries which were not used: SIEVE (Zhang et al., NSDI 2024).
///
/// New entries go to the front of a queue. A hit only sets the entry's bit. When the table is full, a hand moves from the back
/// to the front, clears the bits it meets, and removes the first entry without one. Not synchronised.
package struct SieveTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Node {
        let key: Key
        /// Nil in a free node. With optional nodes instead, accesses would go through the type's metadata.
        var value: Value?
        var visited = false
        /// The neighbours' indices: towards the front (newer) and towards the back (older); -1 for none.
        var newer: Int
        var older: Int
    }

    private var indices: [Key: Int] = [:]
    private var nodes: [Node] = []
    private var free: [Int] = []
    private var front = -1
    private var back = -1
    private var hand = -1
    private let limit: Int

    /// - Parameter limit: The largest number of entries; at least 1.
    package init(limit: Int) {
        self.limit = max(1, limit)
    }

    package var count: Int { indices.count }

    /// Returns the value and marks it as used.
    @inline(__always)
    package mutating func use(_ key: Key) -> Value? {
        guard let index = indices[key] else { return nil }
        if !nodes[index].visited { nodes[index].visited = true }
        return nodes[index].value
    }

    /// Returns the value without marking it.
    func peek(_ key: Key) -> Value? {
        indices[key].flatMap { nodes[$0].value }
    }

    /// Returns the entries for which `condition` returns true, without marking them.
    package func filter(_ condition: (Key, Value) -> Bool) -> [(Key, Value)] {
        nodes.compactMap { node in node.value.flatMap { condition(node.key, $0) ? (node.key, $0) : nil } }
    }

    /// Replaces the value under `key`, or inserts it at the front.
    ///
    /// - Returns: The replaced or evicted value. The caller releases it outside any lock, since that may close a file.
    package mutating func insert(_ value: Value, for key: Key) -> Value? {
        if let index = indices[key], let old = nodes[index].value {
            nodes[index].value = value
            return old
        }
        let removed = indices.count >= limit ? evict() : nil
        let node = Node(key: key, value: value, newer: -1, older: front)
        let index: Int
        if let reused = free.popLast() {
            nodes[reused] = node
            index = reused
        } else {
            index = nodes.count
            nodes.append(node)
        }
        if front >= 0 { nodes[front].newer = index } else { back = index }
        front = index
        indices[key] = index
        return removed
    }

    package mutating func remove(_ key: Key) -> Value? {
        indices[key].flatMap { remove(at: $0) }
    }

    /// Removes all entries for which `condition` returns true, and returns their values.
    package mutating func removeAll(where condition: (Key, Value) -> Bool) -> [Value] {
        let matching = nodes.indices.filter { index in nodes[index].value.map { condition(nodes[index].key, $0) } ?? false }
        return matching.compactMap { remove(at: $0) }
    }

    /// Evicts up to `count` entries, and returns their values.
    mutating func evict(_ count: Int) -> [Value] {
        (0..<max(0, count)).compactMap { _ in evict() }
    }

    private mutating func evict() -> Value? {
        var index = hand >= 0 ? hand : back
        // Ends within two rounds: the first clears every bit at worst.
        while index >= 0, nodes[index].visited {
            nodes[index].visited = false
            let newer = nodes[index].newer
            index = newer >= 0 ? newer : back
        }
        guard index >= 0 else { return nil }
        hand = index
        return remove(at: index)
    }

    private mutating func remove(at index: Int) -> Value? {
        let node = nodes[index]
        guard node.value != nil else { return nil }
        if hand == index { hand = node.newer }
        if node.newer >= 0 { nodes[node.newer].older = node.older } else { front = node.older }
        if node.older >= 0 { nodes[node.older].newer = node.newer } else { back = node.newer }
        indices[node.key] = nil
        nodes[index].value = nil
        nodes[index].visited = false
        free.append(index)
        return node.value
    }
}
