internal import CMedia

/// An opened GIF in memory: giflib's handle and its read cursor.
///
/// Not thread-safe. The bytes must stay valid for the lifetime of the source.
struct GIFSource: ~Copyable {
    /// The position of giflib's read callback in the file.
    private struct Cursor {
        let start: UnsafeRawPointer
        var rest: UnsafeRawBufferPointer
        /// The bytes of the last read.
        var read = UnsafeRawBufferPointer(start: nil, count: 0)
    }

    let handle: UnsafeMutablePointer<GifFileType>
    private let cursor: HeapBuffer<Cursor>

    /// Reads signature, screen descriptor and global palette (GIF89a §17–19).
    ///
    /// - Throws: ``TranscodeError/notAnAnimation``, `incomplete`, `corrupt` or `outOfMemory`.
    init(_ bytes: UnsafeRawBufferPointer) throws(TranscodeError) {
        guard GIFReader.recognizes(bytes), let start = bytes.baseAddress else { throw .notAnAnimation }
        let cursor = try HeapBuffer<Cursor>(count: 1)
        cursor.base.initialize(to: Cursor(start: start, rest: bytes))
        var code: Int32 = 0
        let opened = DGifOpen(
            cursor.base,
            { gif, target, count in
                guard let target, count > 0, let cursor = gif?.pointee.UserData?.assumingMemoryBound(to: Cursor.self)
                else { return 0 }
                let taken = min(Int(count), cursor.pointee.rest.count)
                if let base = cursor.pointee.rest.baseAddress {
                    UnsafeMutableRawPointer(target).copyMemory(from: base, byteCount: taken)
                }
                let rest = cursor.pointee.rest
                cursor.pointee.read = UnsafeRawBufferPointer(rebasing: rest.prefix(taken))
                cursor.pointee.rest = UnsafeRawBufferPointer(
                    start: rest.baseAddress.map { $0 + taken }, count: rest.count - taken)
                return Int32(taken)
            }, &code)
        guard let opened else {
            let atEnd = cursor.base.pointee.rest.isEmpty
            throw code == D_GIF_ERR_NOT_ENOUGH_MEM ? .outOfMemory : atEnd ? .incomplete(.gif) : .corrupt(.gif, .header)
        }
        handle = opened
        self.cursor = consume cursor
    }

    deinit {
        var code: Int32 = 0
        DGifCloseFile(handle, &code)
    }

    /// Whether giflib has read all bytes.
    var isAtEnd: Bool { cursor.base.pointee.rest.isEmpty }

    /// The bytes of giflib's last read. If the file ends within a data sub-block, these are the bytes before the end.
    var lastRead: UnsafeRawBufferPointer { cursor.base.pointee.read }

    /// Whether the last failure was a failed allocation.
    var isOutOfMemory: Bool { handle.pointee.Error == D_GIF_ERR_NOT_ENOUGH_MEM }

    /// The byte that giflib read last; nil before the first.
    var lastByte: UInt8? {
        guard let base = cursor.base.pointee.rest.baseAddress, base > cursor.base.pointee.start else { return nil }
        return (base - 1).load(as: UInt8.self)
    }
}
