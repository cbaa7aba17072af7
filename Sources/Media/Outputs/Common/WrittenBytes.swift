/// Bytes of an ISO base media file (ISO/IEC 14496-12 §4.2).
extension [UInt8] {
    static func box(_ kind: String, _ contents: [UInt8]...) -> [UInt8] {
        let contents = contents.flatMap { $0 }
        return number(contents.count + 8, 4) + text(kind) + contents
    }

    static func fullBox(_ kind: String, version: UInt8 = 0, flags: Int = 0, _ contents: [UInt8]...) -> [UInt8] {
        box(kind, [version] + number(flags, 3) + contents.flatMap { $0 })
    }

    /// Returns a big-endian number of the given size in bytes.
    static func number(_ value: Int, _ count: Int) -> [UInt8] { littleEndian(value, count).reversed() }

    /// Returns a little-endian number of the given size in bytes.
    static func littleEndian(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    static func zeros(_ count: Int) -> [UInt8] { Array(repeating: 0, count: count) }

    static func text(_ value: String) -> [UInt8] { Array(value.utf8) }

    /// The identity matrix (§6.2.2).
    static let unityMatrix: [UInt8] = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000].flatMap { number($0, 4) }
}
