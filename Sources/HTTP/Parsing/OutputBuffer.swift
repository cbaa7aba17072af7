internal import SystemIO

/// A reusable buffer for sequentially encoded bytes, such as a response head or log lines.
final class OutputBuffer {
    private var storage: UnsafeMutableRawBufferPointer
    /// The start of the current piece, which follows the kept pieces, and its end.
    private var start = 0
    private var end = 0

    init(capacity: Int) {
        storage = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        storage.deallocate()
    }

    /// The number of bytes in the current piece.
    var count: Int { end - start }

    /// The current piece, valid until the next modification.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: storage[start..<end]) }

    /// Discards the current piece.
    func restart() { end = start }

    /// Keeps the current piece and starts the next. Returns the range of the kept piece.
    func keep() -> Range<Int> {
        defer { start = end }
        return start..<end
    }

    /// The number of bytes in kept pieces.
    var keptCount: Int { start }

    /// Returns a kept piece, valid until the next modification.
    func kept(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: storage[range]) }

    func removeAll() {
        start = 0
        end = 0
    }

    func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        reserve(bytes.count).copyMemory(from: source, byteCount: bytes.count)
        end += bytes.count
    }

    @inline(__always)
    func append(byte: UInt8) {
        reserve(1).storeBytes(of: byte, as: UInt8.self)
        end += 1
    }

    func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { append($0) }
    }

    func append(_ headers: HTTPHeaders) {
        guard let position = headers.numberPosition else { return append(headers.encoded) }
        headers.encoded.withUnsafeBytes { bytes in
            append(UnsafeRawBufferPointer(rebasing: bytes[..<position]))
            append(decimal: headers.number)
            append(UnsafeRawBufferPointer(rebasing: bytes[position...]))
        }
    }

    @inline(__always)
    func append(_ literal: StaticString) {
        let count = literal.utf8CodeUnitCount
        reserve(count).copyMemory(from: literal.utf8Start, byteCount: count)
        end += count
    }

    /// Appends a nonnegative number in decimal.
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
        end += digits
    }

    func append(_ address: IPAddress) {
        let target = UnsafeMutableRawBufferPointer(start: reserve(IPAddress.longestText), count: IPAddress.longestText)
        end += address.write(to: target)
    }

    func append(requestID number: UInt64) {
        RequestID.write(number, to: reserve(RequestID.length))
        end += RequestID.length
    }

    /// Returns space for `more` bytes after the last one. The buffer grows for responses with unusually many fields.
    @inline(__always)
    private func reserve(_ more: Int) -> UnsafeMutableRawPointer {
        if storage.count - end < more { grow(by: more) }
        // The buffer has at least one byte, so it has a base address.
        return storage.baseAddress.unsafelyUnwrapped + end
    }

    @inline(never)
    private func grow(by more: Int) {
        let capacity = max(storage.count * 2, end + more)
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[0..<end]))
        storage.deallocate()
        storage = larger
    }
}
