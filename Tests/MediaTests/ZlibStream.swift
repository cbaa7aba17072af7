import CZlib

/// Compresses bytes as encoders of PNGs do.
enum ZlibStream {
    /// `bytes` as a zlib stream (RFC 1950).
    static func compressed(_ bytes: [UInt8]) -> [UInt8] {
        var length = compressBound(UInt(bytes.count))
        var stream = [UInt8](repeating: 0, count: Int(length))
        let status = compress2(&stream, &length, bytes, UInt(bytes.count), 9)
        precondition(status == Z_OK)
        return Array(stream.prefix(Int(length)))
    }
}
