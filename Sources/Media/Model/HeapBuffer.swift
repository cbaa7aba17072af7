internal import Glibc

/// A block of memory whose size depends on the source. The owner frees it.
///
/// A failed allocation throws an error. Swift's `allocate` would end the process.
///
/// The elements are not initialized. Not thread-safe.
struct HeapBuffer<Element: BitwiseCopyable>: ~Copyable {
    /// The first element. Valid as long as the buffer lives.
    let base: UnsafeMutablePointer<Element>
    /// The capacity in elements.
    let count: Int

    /// A cache line, which also suits the widest vectors.
    private static var alignment: Int { 64 }

    /// Allocates memory for `count` elements.
    ///
    /// - Throws: ``TranscodeError/outOfMemory``.
    init(count: Int) throws(TranscodeError) {
        let (bytes, overflow) = max(1, count).multipliedReportingOverflow(by: MemoryLayout<Element>.stride)
        var memory: UnsafeMutableRawPointer?
        guard !overflow, posix_memalign(&memory, Self.alignment, bytes) == 0, let memory else { throw .outOfMemory }
        base = memory.bindMemory(to: Element.self, capacity: max(1, count))
        self.count = count
    }

    /// Allocates memory for `count` elements of one value.
    init(repeating value: Element, count: Int) throws(TranscodeError) {
        try self.init(count: count)
        base.initialize(repeating: value, count: count)
    }

    deinit {
        free(base)
    }
}

extension HeapBuffer<UInt8> {
    /// Checks that an array of this many bytes can be allocated. An array whose allocation fails ends the process.
    ///
    /// - Throws: ``TranscodeError/outOfMemory``.
    static func check(bytes: Int) throws(TranscodeError) {
        _ = try HeapBuffer(count: bytes)
    }
}

extension Array {
    /// Appends an element, for arrays that grow with the frames of a source.
    ///
    /// - Throws: ``TranscodeError/outOfMemory``.
    mutating func grow(by element: Element) throws(TranscodeError) {
        if count == capacity {
            let wanted = Swift.max(64, 2 * count)
            // 64 bytes for the array's header.
            try HeapBuffer.check(bytes: wanted * MemoryLayout<Element>.stride + 64)
            reserveCapacity(wanted)
        }
        append(element)
    }
}
