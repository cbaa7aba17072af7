/// Packs codes of a given number of bits, the lowest bit of each first, as GIF and VP8L do.
package struct BitWriter: Sendable {
    private var bytes: [UInt8] = []
    private var accumulator = 0
    private var count = 0

    package init() {}

    /// Appends the lowest `size` bits of a code.
    package mutating func write(_ code: Int, _ size: Int) {
        accumulator |= code << count
        count += size
        while count >= 8 {
            bytes.append(UInt8(accumulator & 255))
            accumulator >>= 8
            count -= 8
        }
    }

    /// The bytes, the last one filled up with zeros.
    package func finish() -> [UInt8] { count > 0 ? bytes + [UInt8(accumulator & 255)] : bytes }
}
