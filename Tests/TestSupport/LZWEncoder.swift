/// The LZW variant of GIF with codes of growing length (GIF89a Appendix F).
package enum LZWEncoder {
    /// The code stream of `indices`, each below 2^`minimumCodeSize`.
    package static func encode(_ indices: [UInt8], minimumCodeSize: Int, usesEndCode: Bool = true) -> [UInt8] {
        var writer = BitWriter()
        let clear = 1 << minimumCodeSize
        var size = minimumCodeSize + 1
        var next = clear + 2
        var table: [[UInt8]: Int] = [:]
        var current: [UInt8] = []

        func code(_ string: [UInt8]) -> Int { string.count == 1 ? Int(string[0]) : table[string] ?? clear }

        writer.write(clear, size)
        for index in indices {
            let longer = current + [index]
            if longer.count == 1 || table[longer] != nil {
                current = longer
                continue
            }
            writer.write(code(current), size)
            if next < 4096 {
                table[longer] = next
                // The decoder learns an entry one code later than the encoder.
                if next >= 1 << size { size += 1 }
                next += 1
            } else {
                writer.write(clear, size)
                table.removeAll()
                size = minimumCodeSize + 1
                next = clear + 2
            }
            current = [index]
        }
        if !current.isEmpty { writer.write(code(current), size) }
        if next >= 1 << size && size < 12 && !current.isEmpty { size += 1 }
        if usesEndCode { writer.write(clear + 1, size) }
        return writer.finish()
    }

    private struct BitWriter {
        private var bytes: [UInt8] = []
        private var accumulator = 0
        private var count = 0

        mutating func write(_ code: Int, _ size: Int) {
            accumulator |= code << count
            count += size
            while count >= 8 {
                bytes.append(UInt8(accumulator & 255))
                accumulator >>= 8
                count -= 8
            }
        }

        func finish() -> [UInt8] { count > 0 ? bytes + [UInt8(accumulator & 255)] : bytes }
    }
}
