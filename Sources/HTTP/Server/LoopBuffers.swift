/// The buffer that a loop reads into. Each thread has one, so that idle connections hold no buffers. Bytes that are unread at
/// the end of a connection's turn move to the connection.
final class InputBuffer {
    private let storage: UnsafeMutableRawBufferPointer

    init(capacity: Int) {
        storage = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        storage.deallocate()
    }

    var capacity: Int { storage.count }

    /// Returns the bytes in `range`, valid until the next read.
    func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: storage[range]) }

    /// Returns the space after the first `count` bytes.
    func freeSpace(after count: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: storage[count...])
    }

    /// Moves bytes within the buffer to the same or an earlier position.
    func move(_ range: Range<Int>, to start: Int) {
        guard range.lowerBound != start, let base = storage.baseAddress else { return }
        (base + start).copyMemory(from: base + range.lowerBound, byteCount: range.count)
    }

    /// Moves a connection's unread bytes to the start of the buffer. Returns their number.
    func load(_ connection: Connection) -> Int {
        let unread = connection.unread
        guard !unread.isEmpty else { return 0 }
        unread.withUnsafeBytes { storage.copyMemory(from: $0) }
        connection.unread = []
        return unread.count
    }
}

/// The first bytes of requests of several connections, stored contiguously until they are served.
final class Arrivals {
    /// The minimum space for a connection.
    private static let leastSpace = 8 * 1024

    private let buffer: InputBuffer
    private let list = ReusedList<(connection: Connection, range: Range<Int>)>(capacity: 64)
    private var used = 0

    init(capacity: Int) {
        buffer = InputBuffer(capacity: capacity)
    }

    var isEmpty: Bool { list.isEmpty }

    /// Whether there is too little space for another connection.
    var isFull: Bool { buffer.capacity - used < Self.leastSpace }

    var freeSpace: UnsafeMutableRawBufferPointer { buffer.freeSpace(after: used) }

    /// Records that `count` bytes of the connection were read.
    func append(_ connection: Connection, _ count: Int) {
        list.append((connection, used..<used + count))
        used += count
    }

    /// Calls `body` with each connection and its bytes, in order of arrival. The bytes are valid only during the call.
    func drain(_ body: (Connection, UnsafeRawBufferPointer) -> Void) {
        list.drain { body($0.connection, buffer.bytes($0.range)) }
        used = 0
    }
}

/// A list that is filled and drained repeatedly, keeping its storage and moving its elements out. Used by one thread.
final class ReusedList<Element> {
    private var storage: UnsafeMutableBufferPointer<Element>
    /// Receives new elements while the other buffer is drained.
    private var spare: UnsafeMutableBufferPointer<Element>
    private(set) var count = 0

    init(capacity: Int) {
        storage = .allocate(capacity: capacity)
        spare = .allocate(capacity: capacity)
    }

    deinit {
        storage[0..<count].deinitialize()
        storage.deallocate()
        spare.deallocate()
    }

    var isEmpty: Bool { count == 0 }

    func append(_ element: consuming Element) {
        if count == storage.count { grow() }
        storage.initializeElement(at: count, to: element)
        count += 1
    }

    /// Calls `body` with each element, in order. Elements that `body` appends stay in the list. `body` must not drain the list.
    func drain(_ body: (consuming Element) -> Void) {
        let (full, filled) = (storage, count)
        storage = spare
        count = 0
        for index in 0..<filled { body(full.moveElement(from: index)) }
        spare = full
    }

    @inline(never)
    private func grow() {
        let larger = UnsafeMutableBufferPointer<Element>.allocate(capacity: max(8, storage.count * 2))
        _ = larger.moveInitialize(fromContentsOf: storage[0..<count])
        storage.deallocate()
        storage = larger
    }
}
