/// GIF's LZW in its textbook form: a table of prefixes and last pixels, strings unrolled backwards (GIF89a Appendix F).
/// Easy to see through; the decoder proper is held against it.
enum PlainLZW {
    /// The pixels of a code stream, at most `pixels` of them. It ends at the end code, at the data's end, and at a code
    /// that cannot be.
    static func decode(_ codes: [UInt8], minimumCodeSize: Int, pixels: Int) -> [UInt8] {
        let clear = 1 << minimumCodeSize
        var table: [(prefix: Int, last: UInt8)] = []
        var size = minimumCodeSize + 1
        var previous: Int?
        var position = 0
        var bits = 0
        var waiting = 0
        var output: [UInt8] = []

        /// Writes the string of a code, and returns its first pixel.
        func write(_ code: Int) -> UInt8 {
            let start = output.count
            var code = code
            while code > clear {
                output.append(table[code - clear - 2].last)
                code = table[code - clear - 2].prefix
            }
            output.append(UInt8(truncatingIfNeeded: code))
            output[start...].reverse()
            return output[start]
        }

        while output.count < pixels {
            while waiting < size && position < codes.count {
                bits |= Int(codes[position]) << waiting
                waiting += 8
                position += 1
            }
            if waiting < size { break }
            let code = bits & (1 << size - 1)
            bits >>= size
            waiting -= size
            if code == clear {
                table.removeAll(keepingCapacity: true)
                (size, previous) = (minimumCodeSize + 1, nil)
                continue
            }
            let next = clear + 2 + table.count
            let isKnown = code < clear || (code > clear + 1 && code < next && previous != nil)
            let isBeingDefined = code == next && next < 4096
            let first: UInt8
            if isKnown {
                first = write(code)
            } else if isBeingDefined, let previous {
                first = write(previous)
                output.append(first)
            } else {
                break
            }
            if let previous, next < 4096 { table.append((previous, first)) }
            if clear + 2 + table.count >= 1 << size && size < 12 { size += 1 }
            previous = code
        }
        return Array(output.prefix(pixels))
    }
}
