/// A first-in first-out queue of times in a ring that only grows to the most it ever held at once.
struct TimeQueue {
    private var ring: [Int64] = Array(repeating: 0, count: 64)
    private var head = 0
    private var count = 0

    mutating func append(_ time: Int64) {
        if count == ring.count {
            ring = (0..<count).map { ring[(head + $0) % ring.count] } + Array(repeating: 0, count: count)
            head = 0
        }
        ring[(head + count) % ring.count] = time
        count += 1
    }

    /// Takes the oldest time. There must be one: every packet was a frame first.
    mutating func popFirst() -> Int64 {
        precondition(count > 0, "a packet without a frame")
        let time = ring[head]
        head = (head + 1) % ring.count
        count -= 1
        return time
    }
}
