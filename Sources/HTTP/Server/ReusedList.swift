/// A list that is filled and emptied again and again: it keeps its storage, and gives its elements away without copying
/// them. It belongs to one thread.
final class ReusedList<Element> {
    private var storage: UnsafeMutableBufferPointer<Element>
    /// What the next round is filled into while this one is drained.
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

    /// Calls `body` with each element, first to last. What it appends stays in the list. It must not drain the list.
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
