internal import SystemIO

/// Bytes that are put together one after the other, such as an answer's head or the lines of a log; reused for the next.
final class OutputBuffer {
    private var storage: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(capacity: Int) {
        storage = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        storage.deallocate()
    }

    /// What was put in, valid until the next change.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: storage[0..<count]) }

    func removeAll() { count = 0 }

    func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        reserve(bytes.count).copyMemory(from: source, byteCount: bytes.count)
        count += bytes.count
    }

    func append(byte: UInt8) {
        reserve(1).storeBytes(of: byte, as: UInt8.self)
        count += 1
    }

    func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { append($0) }
    }

    func append(_ literal: StaticString) { append(literal.bytes) }

    /// A number of at least 0 in decimal.
    func append(decimal number: Int) {
        let target = reserve(20)
        var digits = 1
        var rest = number / 10
        while rest > 0 {
            digits += 1
            rest /= 10
        }
        rest = number
        for index in (0..<digits).reversed() {
            target.storeBytes(of: UInt8(truncatingIfNeeded: rest % 10) + 0x30, toByteOffset: index, as: UInt8.self)
            rest /= 10
        }
        count += digits
    }

    func append(_ address: IPAddress) {
        let target = UnsafeMutableRawBufferPointer(start: reserve(IPAddress.longestText), count: IPAddress.longestText)
        count += address.write(to: target)
    }

    func append(requestID number: UInt64) {
        RequestID.write(number, to: reserve(RequestID.length))
        count += RequestID.length
    }

    /// Room for `more` bytes after the last one; an answer with uncommonly many fields makes the buffer grow.
    @inline(__always)
    private func reserve(_ more: Int) -> UnsafeMutableRawPointer {
        if storage.count - count < more { grow(by: more) }
        // Allocated with at least one byte, so there is a base.
        return storage.baseAddress.unsafelyUnwrapped + count
    }

    @inline(never)
    private func grow(by more: Int) {
        let capacity = max(storage.count * 2, count + more)
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[0..<count]))
        storage.deallocate()
        storage = larger
    }
}
