/// GIF's LZW as the books have it: a table of prefixes and last pixels, strings unrolled backwards (GIF89a Appendix F).
/// Slow and easy to see through; the decoder proper is held against it.
enum PlainLZW {
    /// The pixels of a code stream, at most `pixels` of them. It ends at the end code, at the data's end, and at a code
    /// that cannot be.
    static func decode(_ codes: [UInt8], minimumCodeSize: Int, pixels: Int) -> [UInt8] {
        let clear = 1 << minimumCodeSize
        var table: [(prefix: Int, last: UInt8)] = []
        var size = minimumCodeSize + 1
        var previous: Int?
        var bit = 0
        var output: [UInt8] = []

        func string(_ code: Int) -> [UInt8] {
            var code = code
            var reversed: [UInt8] = []
            while code > clear {
                reversed.append(table[code - clear - 2].last)
                code = table[code - clear - 2].prefix
            }
            reversed.append(UInt8(truncatingIfNeeded: code))
            return reversed.reversed()
        }

        while output.count < pixels, bit + size <= codes.count * 8 {
            // A code lies in at most three bytes.
            let bytes = (0..<3).map { bit / 8 + $0 < codes.count ? Int(codes[bit / 8 + $0]) << (8 * $0) : 0 }
            let code = (bytes[0] | bytes[1] | bytes[2]) >> (bit % 8) & (1 << size - 1)
            bit += size
            if code == clear {
                (table, size, previous) = ([], minimumCodeSize + 1, nil)
                continue
            }
            let next = clear + 2 + table.count
            let isLiteral = code < clear
            let isKnown = code > clear + 1 && code < next && previous != nil
            let isBeingDefined = code == next && next < 4096 && previous != nil
            guard isLiteral || isKnown || isBeingDefined else { break }
            var found = string(isBeingDefined ? previous ?? 0 : code)
            if isBeingDefined { found.append(found[0]) }
            if let previous, next < 4096 {
                table.append((previous, found[0]))
                if next + 1 == 1 << size && size < 12 { size += 1 }
            }
            output += found
            previous = code
        }
        return Array(output.prefix(pixels))
    }
}
