import Glibc

/// A file system of its own and of a few megabytes, mounted on a directory; needs the right to mount.
final class SmallDisk: Sendable {
    let path: String

    /// Whether this process may mount one.
    static let isPossible: Bool = {
        guard let directory = try? TemporaryDirectory(), let disk = SmallDisk(on: directory, bytes: 1 << 20) else { return false }
        return disk.path == directory.path
    }()

    init?(on directory: TemporaryDirectory, bytes: Int) {
        path = directory.path
        guard mount("gifreel-test", path, "tmpfs", 0, "size=\(bytes)") == 0 else { return nil }
    }

    deinit {
        umount2(path, Int32(MNT_DETACH))
    }

    /// Bytes that may still be written.
    var free: Int {
        var status = statvfs()
        return statvfs(path, &status) == 0 ? Int(status.f_bavail * status.f_frsize) : -1
    }

    /// Makes a file of all that is free but so many bytes.
    func fill(leaving bytes: Int = 0) {
        let file = open(path + "/filler", O_RDWR | O_CREAT, 0o600)
        posix_fallocate(file, 0, off_t(free - bytes))
        close(file)
    }

    func empty() {
        unlink(path + "/filler")
    }
}
