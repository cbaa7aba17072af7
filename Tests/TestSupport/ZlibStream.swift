internal import CSystem

/// Compresses bytes as encoders of PNGs do.
package enum ZlibStream {
    /// `bytes` as a zlib stream (RFC 1950).
    package static func compressed(_ bytes: [UInt8]) -> [UInt8] {
        var length = compressBound(UInt(bytes.count))
        var stream = [UInt8](repeating: 0, count: Int(length))
        let status = compress2(&stream, &length, bytes, UInt(bytes.count), 9)
        precondition(status == Z_OK)
        return Array(stream.prefix(Int(length)))
    }

    /// `count` zeros as a zlib stream, for which they are never all in memory.
    package static func zeros(_ count: Int) -> [UInt8] {
        var stream = z_stream()
        precondition(deflateInit_(&stream, 9, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK)
        defer { deflateEnd(&stream) }
        var piece = [UInt8](repeating: 0, count: 1 << 20)
        // Zeros take less than a hundredth of their number, and a few bytes for the ends.
        var output = [UInt8](repeating: 0, count: count / 100 + 64)
        let capacity = output.count
        return piece.withUnsafeMutableBufferPointer { piece in
            output.withUnsafeMutableBufferPointer { output in
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(capacity)
                var left = count
                repeat {
                    let part = min(left, piece.count)
                    left -= part
                    stream.next_in = piece.baseAddress
                    stream.avail_in = UInt32(part)
                    let status = deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH)
                    precondition(status == (left == 0 ? Z_STREAM_END : Z_OK) && stream.avail_in == 0)
                } while left > 0
                return Array(output.prefix(capacity - Int(stream.avail_out)))
            }
        }
    }
}
