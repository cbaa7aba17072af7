internal import CAV
internal import Glibc

/// Lets libavformat write into a file descriptor and read back, which it does to move the index to the front.
///
/// The descriptor is borrowed: it is written by position and never closed. Not thread-safe.
final class FileOutput {
    private static let bufferSize: Int32 = 64 * 1024

    private let descriptor: Int32
    private var position: Int64 = 0
    /// One past the last byte written.
    private(set) var length: Int64 = 0

    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// A libavio context that writes the file from position 0. To be freed with ``free(_:)``.
    func makeWriter() -> UnsafeMutablePointer<AVIOContext>? {
        makeContext(writes: true)
    }

    /// A libavio context that reads the file from position 0, apart from the writer's. To be freed with ``free(_:)``.
    func makeReader() -> UnsafeMutablePointer<AVIOContext>? {
        FileOutput(descriptor: descriptor).makeContext(writes: false)
    }

    private func makeContext(writes: Bool) -> UnsafeMutablePointer<AVIOContext>? {
        guard let buffer = av_malloc(Int(Self.bufferSize)) else { return nil }
        let opaque = Unmanaged.passRetained(self)
        let context = gifreel_avio_alloc(
            buffer.assumingMemoryBound(to: UInt8.self), Self.bufferSize, writes ? 1 : 0, opaque.toOpaque(),
            { FileOutput.from($0)?.read($1, $2) ?? gifreel_averror(EINVAL) },
            { FileOutput.from($0)?.write($1, $2) ?? gifreel_averror(EINVAL) },
            { FileOutput.from($0)?.seek($1, $2) ?? Int64(gifreel_averror(EINVAL)) })
        guard let context else {
            opaque.release()
            av_free(buffer)
            return nil
        }
        context.pointee.seekable = AVIO_SEEKABLE_NORMAL
        return context
    }

    /// Frees a context made by ``makeWriter()`` or ``makeReader()``.
    static func free(_ context: UnsafeMutablePointer<AVIOContext>) {
        if let opaque = context.pointee.opaque { Unmanaged<FileOutput>.fromOpaque(opaque).release() }
        av_free(context.pointee.buffer)
        var context: UnsafeMutablePointer<AVIOContext>? = context
        avio_context_free(&context)
    }

    private static func from(_ opaque: UnsafeMutableRawPointer?) -> FileOutput? {
        opaque.map { Unmanaged<FileOutput>.fromOpaque($0).takeUnretainedValue() }
    }

    private func read(_ target: UnsafeMutablePointer<UInt8>?, _ count: Int32) -> Int32 {
        while true {
            let taken = pread(descriptor, target, Int(count), off_t(position))
            if taken < 0 && errno == EINTR { continue }
            if taken < 0 { return gifreel_averror(errno) }
            position += Int64(taken)
            return taken == 0 ? gifreel_averror_eof : Int32(taken)
        }
    }

    private func write(_ source: UnsafePointer<UInt8>?, _ count: Int32) -> Int32 {
        guard let source else { return 0 }
        var done = 0
        while done < Int(count) {
            let written = pwrite(descriptor, source + done, Int(count) - done, off_t(position))
            if written < 0 && errno == EINTR { continue }
            if written < 0 { return gifreel_averror(errno) }
            done += written
            position += Int64(written)
        }
        length = max(length, position)
        return count
    }

    /// Reads back what was written, without libavio.
    func read(at start: Int64, into target: UnsafeMutableRawBufferPointer) throws(TranscodeError) {
        var done = 0
        while done < target.count {
            let taken = pread(descriptor, target.baseAddress.map { $0 + done }, target.count - done, off_t(start) + done)
            if taken < 0 && errno == EINTR { continue }
            guard taken > 0 else { throw .library(.mux, code: taken == 0 ? gifreel_averror_eof : gifreel_averror(errno)) }
            done += taken
        }
    }

    /// Writes the bytes as a whole file.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(TranscodeError) {
        var done = 0
        while done < bytes.count {
            let written = pwrite(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done, off_t(done))
            if written < 0 && errno == EINTR { continue }
            guard written >= 0 else { throw .library(.write, code: gifreel_averror(errno)) }
            done += written
        }
    }

    private func seek(_ offset: Int64, _ whence: Int32) -> Int64 {
        switch whence & ~AVSEEK_FORCE {
        case SEEK_SET: position = offset
        case SEEK_CUR: position += offset
        case SEEK_END: position = length + offset
        case AVSEEK_SIZE: return length
        default: return Int64(gifreel_averror(EINVAL))
        }
        return position
    }
}
