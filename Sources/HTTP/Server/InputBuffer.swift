/// What a loop reads into; one a thread, so that an idle connection holds no buffer of its own. Bytes that stay
/// unread when a connection's turn ends move to the connection.
final class InputBuffer {
    private let storage: UnsafeMutableRawBufferPointer

    init(capacity: Int) {
        storage = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        storage.deallocate()
    }

    var capacity: Int { storage.count }

    /// The bytes of `range`, valid until the next read.
    func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: storage[range]) }

    /// Where to read on to after `count` bytes.
    func room(after count: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: storage[count...])
    }

    /// Moves a connection's unread bytes to the start, and returns how many there are.
    func load(_ connection: Connection) -> Int {
        let unread = connection.unread
        guard !unread.isEmpty else { return 0 }
        unread.withUnsafeBytes { storage.copyMemory(from: $0) }
        connection.unread = []
        return unread.count
    }
}
