internal import Glibc
internal import SystemIO

/// A small file that is on disk when ``write(_:)`` or ``append(_:)`` returns. Blocks.
struct DurableFile: Sendable {
    let path: String

    /// The largest file that is read, in bytes; a larger one counts as damaged.
    private static let maxCount: off_t = 64 << 20

    /// The content; nil if the file does not exist.
    func read() throws(FileError) -> [UInt8]? {
        guard Files.exists(path) else { return nil }
        var status = stat()
        guard stat(path, &status) == 0, status.st_size <= Self.maxCount else { return nil }
        return try Files.read(path)
    }

    /// Replaces the file. After a crash it has the old content or the new one.
    func write(_ bytes: [UInt8]) throws(SystemError) {
        let partial = path + ".part"
        let number = try retryingOnInterrupt("open") { open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600) }
        let descriptor = OwnedDescriptor(taking: number)
        do throws(SystemError) {
            try DescriptorIO.write(bytes, to: descriptor.number)
            try retryingOnInterrupt("fdatasync") { fdatasync(descriptor.number) }
            try retryingOnInterrupt("rename") { rename(partial, path) }
        } catch {
            unlink(partial)
            throw error
        }
        let directory = OwnedDescriptor(
            taking: try retryingOnInterrupt("open") { open(Files.directory(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
        try retryingOnInterrupt("fsync") { fsync(directory.number) }
    }

    /// Appends to the file, which has to exist. After a crash or an error the file may have a part of the bytes at its end.
    func append(_ bytes: [UInt8]) throws(SystemError) {
        let descriptor = OwnedDescriptor(
            taking: try retryingOnInterrupt("open") { open(path, O_WRONLY | O_APPEND | O_CLOEXEC) })
        try DescriptorIO.write(bytes, to: descriptor.number)
        try retryingOnInterrupt("fdatasync") { fdatasync(descriptor.number) }
    }
}
