/// The LZW variant of GIF with codes of growing length (GIF89a Appendix F).
package enum LZWEncoder {
    /// The code stream of `indices`, each below 2^`minimumCodeSize`.
    package static func encode(_ indices: [UInt8], minimumCodeSize: Int, usesEndCode: Bool = true) -> [UInt8] {
        var writer = BitWriter()
        let clear = 1 << minimumCodeSize
        var size = minimumCodeSize + 1
        var next = clear + 2
        // The codes of strings, by the code of the prefix and the last index.
        var table: [Int: Int] = [:]
        var current: Int?

        writer.write(clear, size)
        for index in indices {
            guard let code = current else {
                current = Int(index)
                continue
            }
            let longer = code << 8 | Int(index)
            if let known = table[longer] {
                current = known
                continue
            }
            writer.write(code, size)
            if next < 4096 {
                table[longer] = next
                // The decoder learns an entry one code later than the encoder.
                if next >= 1 << size { size += 1 }
                next += 1
            } else {
                writer.write(clear, size)
                table.removeAll(keepingCapacity: true)
                size = minimumCodeSize + 1
                next = clear + 2
            }
            current = Int(index)
        }
        if let current { writer.write(current, size) }
        if next >= 1 << size && size < 12 && current != nil { size += 1 }
        if usesEndCode { writer.write(clear + 1, size) }
        return writer.finish()
    }

    /// The code stream of `count` zeros in the fewest bytes: each code stands for a string one longer than the last.
    package static func zeros(_ count: Int, minimumCodeSize: Int = 2) -> [UInt8] {
        var writer = BitWriter()
        let clear = 1 << minimumCodeSize
        var (size, next) = (minimumCodeSize + 1, clear + 2)
        var (left, length) = (count, 0)
        writer.write(clear, size)
        while left > 0 {
            if length == 0 {
                writer.write(0, size)
                (left, length) = (left - 1, 1)
                continue
            }
            length += 1
            writer.write(next, size)
            left -= length
            next += 1
            if next == 1 << size && size < 12 { size += 1 }
            if next >= 4095 {
                writer.write(clear, size)
                (size, next, length) = (minimumCodeSize + 1, clear + 2, 0)
            }
        }
        writer.write(clear + 1, size)
        return writer.finish()
    }
}
