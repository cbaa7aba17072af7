/// What a loop reads into; one a thread, so that an idle connection holds no buffer of its own. Bytes that stay
/// unread when a connection's turn ends move to the connection.
struct InputBuffer: ~Copyable {
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
    func load(_ unread: inout [UInt8]) -> Int {
        let count = unread.count
        guard count > 0 else { return 0 }
        unread.withUnsafeBytes { storage.copyMemory(from: $0) }
        unread = []
        return count
    }
}
