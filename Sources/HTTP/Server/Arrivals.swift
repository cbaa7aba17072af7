/// First bytes of requests, of one connection behind those of the other, until they are looked at.
struct Arrivals {
    /// Room that a connection has at least.
    static let leastRoom = 8 * 1024

    private let buffer: InputBuffer
    private var used = 0
    private(set) var connections: [Connection] = []
    private var ranges: [Range<Int>] = []

    init(capacity: Int) {
        buffer = InputBuffer(capacity: capacity)
    }

    var isEmpty: Bool { connections.isEmpty }

    /// Whether there is too little room for another connection.
    var isFull: Bool { buffer.capacity - used < Self.leastRoom }

    /// Where to read to.
    var room: UnsafeMutableRawBufferPointer { buffer.room(after: used) }

    /// Notes that `count` bytes of the connection were read.
    mutating func append(_ connection: Connection, _ count: Int) {
        connections.append(connection)
        ranges.append(used..<used + count)
        used += count
    }

    /// The bytes of one of the connections, valid until the next read.
    func bytes(_ index: Int) -> UnsafeRawBufferPointer { buffer.bytes(ranges[index]) }

    /// Forgets all, and keeps the storage.
    mutating func removeAll() {
        connections.removeAll(keepingCapacity: true)
        ranges.removeAll(keepingCapacity: true)
        used = 0
    }
}
