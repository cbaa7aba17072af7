internal import CSystem

/// Decompresses lists in gzip (RFC 1952), such as sitemaps. The members of a file are joined (section 2.2).
enum GzipReader {
    private static let damaged = PrewarmList.Malformed("The list is damaged: its gzip data cannot be decompressed.")

    static func isGzip(_ bytes: [UInt8]) -> Bool {
        bytes.starts(with: [0x1F, 0x8B])
    }

    /// Decompresses the bytes.
    ///
    /// - Parameter limit: The size limit of the result, in bytes.
    /// - Throws: ``PrewarmList/Malformed`` for data that cannot be decompressed.
    static func decompress(_ bytes: [UInt8], limit: Int) throws(PrewarmList.Malformed) -> [UInt8] {
        var stream = z_stream()
        guard gifreel_inflate(&stream, 16 + MAX_WBITS) == Z_OK else { throw damaged }
        defer { inflateEnd(&stream) }
        var result: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 18)
        var offset = 0
        while true {
            let (status, read, written) = inflate(&stream, bytes[offset...], into: &piece)
            offset += read
            guard result.count + written <= limit else {
                throw PrewarmList.Malformed("The list has more than \(limit >> 20) MiB when it is decompressed.")
            }
            result += piece[..<written]
            switch status {
            case Z_OK: break
            // Another member may follow. Other bytes, such as the padding of tapes, are ignored, as by gzip.
            case Z_STREAM_END:
                guard bytes[offset...].starts(with: [0x1F, 0x8B]) else { return result }
                inflateReset(&stream)
            case Z_BUF_ERROR: throw PrewarmList.Malformed("The list is incomplete: its gzip data ends early.")
            default: throw damaged
            }
        }
    }

    /// Decompresses as much as fits into `output`. Returns zlib's status and the numbers of bytes that were read and written.
    private static func inflate(
        _ stream: inout z_stream, _ input: ArraySlice<UInt8>, into output: inout [UInt8]
    ) -> (status: Int32, read: Int, written: Int) {
        input.withUnsafeBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                let available = min(input.count, Int(CInt.max))
                // zlib does not write to its input.
                stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
                stream.avail_in = UInt32(available)
                stream.next_out = output.baseAddress
                stream.avail_out = UInt32(output.count)
                let status = CSystem.inflate(&stream, Z_NO_FLUSH)
                return (status, available - Int(stream.avail_in), output.count - Int(stream.avail_out))
            }
        }
    }
}
