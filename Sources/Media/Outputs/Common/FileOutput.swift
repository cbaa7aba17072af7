internal import CMedia
internal import Glibc
internal import SystemIO

/// A file descriptor as the output of libavformat.
///
/// The descriptor is borrowed: writes are positional, and it is never closed. Not thread-safe.
final class FileOutput {
    private static let bufferSize: Int32 = 64 * 1024

    let descriptor: Int32
    private var position: Int64 = 0
    /// One past the last byte written.
    private(set) var length: Int64 = 0

    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Returns a libavio context that writes the file from position 0. The caller frees it with ``free(_:)``.
    func makeWriter() -> UnsafeMutablePointer<AVIOContext>? {
        guard let buffer = av_malloc(Int(Self.bufferSize)) else { return nil }
        let opaque = Unmanaged.passRetained(self)
        let context = gifreel_avio_alloc(
            buffer.assumingMemoryBound(to: UInt8.self), Self.bufferSize, 1, opaque.toOpaque(), nil,
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

    /// Frees a context created by ``makeWriter()``.
    static func free(_ context: UnsafeMutablePointer<AVIOContext>) {
        if let opaque = context.pointee.opaque { Unmanaged<FileOutput>.fromOpaque(opaque).release() }
        av_free(context.pointee.buffer)
        var context: UnsafeMutablePointer<AVIOContext>? = context
        avio_context_free(&context)
    }

    private static func from(_ opaque: UnsafeMutableRawPointer?) -> FileOutput? {
        opaque.map { Unmanaged<FileOutput>.fromOpaque($0).takeUnretainedValue() }
    }

    private func write(_ source: UnsafePointer<UInt8>?, _ count: Int32) -> Int32 {
        do throws(SystemError) {
            let bytes = UnsafeRawBufferPointer(start: source, count: Int(count))
            try DescriptorIO.write(bytes, to: descriptor, at: Int(position))
        } catch {
            return gifreel_averror(error.code)
        }
        position += Int64(count)
        length = max(length, position)
        return count
    }

    /// Reads written bytes, without libavio.
    func read(at start: Int64, into target: UnsafeMutableRawBufferPointer) throws(TranscodeError) {
        let taken = try translating(try DescriptorIO.read(into: target, from: descriptor, at: Int(start))) {
            (error: SystemError) in TranscodeError.library(.mux, code: gifreel_averror(error.code))
        }
        guard taken == target.count else { throw .library(.mux, code: gifreel_averror_eof) }
    }

    /// Writes a file that consists of the bytes.
    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(TranscodeError) {
        try translating(try DescriptorIO.write(bytes, to: descriptor, at: 0), to: TranscodeError.writing)
    }

    /// Shortens the file, by default to nothing.
    static func truncate(_ descriptor: Int32, to length: Int = 0) throws(TranscodeError) {
        guard ftruncate(descriptor, off_t(length)) == 0 else { throw .library(.write, code: gifreel_averror(errno)) }
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

extension TranscodeError {
    /// The error for a failed access to the output.
    static func writing(_ error: SystemError) -> TranscodeError { library(.write, code: gifreel_averror(error.code)) }
}
