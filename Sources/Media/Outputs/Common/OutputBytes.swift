internal import SystemIO

/// Reads parts of a file with bounds checks.
struct OutputBytes {
    private let file: SharedDescriptor
    let count: Int

    init(_ file: SharedDescriptor) throws(OutputFlaw) {
        self.file = file
        count = try translating(try file.size()) { (_: SystemError) in OutputFlaw.unreadable }
    }

    /// Reads a part into memory. Callers must bound its length.
    func read(_ range: Range<Int>) throws(OutputFlaw) -> ByteReader {
        guard range.lowerBound >= 0, range.upperBound <= count else { throw .malformed }
        var bytes = [UInt8](repeating: 0, count: range.count)
        let read = bytes.withUnsafeMutableBytes { try? file.read(into: $0, at: range.lowerBound) }
        guard read == range.count else { throw .unreadable }
        return ByteReader(bytes[...])
    }
}

/// Reads numbers and slices from the front of bytes, never past their end.
struct ByteReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
    }

    var isAtEnd: Bool { rest.isEmpty }
    var count: Int { rest.count }

    /// The next `count` bytes.
    mutating func take(_ count: Int) throws(OutputFlaw) -> ArraySlice<UInt8> {
        guard count >= 0, count <= rest.count else { throw .malformed }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    mutating func skip(_ count: Int) throws(OutputFlaw) {
        _ = try take(count)
    }

    /// The next `count` bytes, at most 7, as a big-endian unsigned number.
    mutating func number(_ count: Int) throws(OutputFlaw) -> Int {
        try take(count).reduce(0) { $0 << 8 | Int($1) }
    }

    /// The next `count` bytes, at most 7, as a little-endian unsigned number.
    mutating func littleEndian(_ count: Int) throws(OutputFlaw) -> Int {
        try take(count).reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    /// Returns whether `text` comes next, and skips it if so.
    mutating func skip(_ text: String) -> Bool {
        guard rest.starts(with: text.utf8) else { return false }
        rest = rest.dropFirst(text.utf8.count)
        return true
    }
}
