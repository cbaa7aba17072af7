internal import Glibc
internal import Synchronization
internal import SystemIO

/// A small file that is on disk when ``write(_:)`` or ``append(_:)`` returns. Blocks.
final class DurableFile: Sendable {
    /// Tells a file of this object from another one that came to the path, and from one that others changed.
    private struct Identity: Equatable {
        let device: dev_t
        let inode: ino_t
        let count: off_t

        init(_ status: stat) {
            (device, inode, count) = (status.st_dev, status.st_ino, status.st_size)
        }
    }

    private let path: String
    /// The file after the latest write or addition; nil if that failed.
    private let written = Mutex<Identity?>(nil)

    /// The largest file that is read, in bytes; a larger one counts as damaged.
    private static let maxCount: off_t = 64 << 20

    init(path: String) {
        self.path = path
    }

    /// Whether the file at the path is the one that was written or appended to last, unchanged.
    var isCurrent: Bool {
        var status = stat()
        return stat(path, &status) == 0 && written.withLock { $0 == Identity(status) }
    }

    /// The content; nil if the file does not exist or is too large.
    func read() throws(FileError) -> [UInt8]? {
        var status = stat()
        if stat(path, &status) == 0, status.st_size > Self.maxCount { return nil }
        do throws(FileError) {
            return try Files.read(path)
        } catch {
            if error.code == ENOENT { return nil }
            throw error
        }
    }

    /// Replaces the file. After a crash it has the old content or the new one.
    func write(_ bytes: [UInt8]) throws(SystemError) {
        written.withLock { $0 = nil }
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
        try noteIdentity(of: descriptor.number)
    }

    /// Appends to the file, which has to be the one that was written or appended to last. After a crash or an error the file may have a
    /// part of the bytes at its end.
    func append(_ bytes: [UInt8]) throws(SystemError) {
        let descriptor = OwnedDescriptor(
            taking: try retryingOnInterrupt("open") { open(path, O_WRONLY | O_APPEND | O_CLOEXEC) })
        let found = try Self.identity(of: descriptor.number)
        // A directory that is mounted again at its path may have a file from before.
        guard written.withLock({ $0.take() == found }) else { throw SystemError("append", code: ESTALE) }
        try DescriptorIO.write(bytes, to: descriptor.number)
        try retryingOnInterrupt("fdatasync") { fdatasync(descriptor.number) }
        try noteIdentity(of: descriptor.number)
    }

    private func noteIdentity(of descriptor: Int32) throws(SystemError) {
        let identity = try Self.identity(of: descriptor)
        written.withLock { $0 = identity }
    }

    private static func identity(of descriptor: Int32) throws(SystemError) -> Identity {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .last("fstat") }
        return Identity(status)
    }
}
