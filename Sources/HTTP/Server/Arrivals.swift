/// First bytes of requests, of one connection behind those of the other, until they are looked at.
final class Arrivals {
    /// Room that a connection has at least.
    private static let leastRoom = 8 * 1024

    private let buffer: InputBuffer
    private let list = ReusedList<(connection: Connection, range: Range<Int>)>(capacity: 64)
    private var used = 0

    init(capacity: Int) {
        buffer = InputBuffer(capacity: capacity)
    }

    var isEmpty: Bool { list.isEmpty }

    /// Whether there is too little room for another connection.
    var isFull: Bool { buffer.capacity - used < Self.leastRoom }

    /// Where to read to.
    var room: UnsafeMutableRawBufferPointer { buffer.room(after: used) }

    /// Notes that `count` bytes of the connection were read.
    func append(_ connection: Connection, _ count: Int) {
        list.append((connection, used..<used + count))
        used += count
    }

    /// Calls `body` with each connection and its bytes, which are valid during the call, in the order of their arrival.
    func drain(_ body: (Connection, UnsafeRawBufferPointer) -> Void) {
        list.drain { body($0.connection, buffer.bytes($0.range)) }
        used = 0
    }
}
