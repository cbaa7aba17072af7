internal import Glibc

/// Memory whose size a GIF decides, and which may therefore not be there: `malloc`'s, with an error where Swift's own
/// `allocate` ends the process. Freed with its owner.
///
/// The elements are not initialized. Not thread-safe.
struct HeapBuffer<Element: BitwiseCopyable>: ~Copyable {
    /// The first element. Valid as long as the buffer lives.
    let base: UnsafeMutablePointer<Element>
    /// How many elements there is room for.
    let count: Int

    /// A cache line, and the widest vectors.
    private static var alignment: Int { 64 }

    /// Room for `count` elements.
    ///
    /// - Throws: ``TranscodeError/outOfMemory``.
    init(count: Int) throws(TranscodeError) {
        let (bytes, overflow) = max(1, count).multipliedReportingOverflow(by: MemoryLayout<Element>.stride)
        var memory: UnsafeMutableRawPointer?
        guard !overflow, posix_memalign(&memory, Self.alignment, bytes) == 0, let memory else { throw .outOfMemory }
        base = memory.bindMemory(to: Element.self, capacity: max(1, count))
        self.count = count
    }

    deinit {
        free(base)
    }
}
