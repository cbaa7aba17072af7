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

    /// Writes a file until there is no room left.
    func fill(leaving bytes: Int = 0) throws {
        let file = open(path + "/filler", O_RDWR | O_CREAT, 0o600)
        let block = [UInt8](repeating: 1, count: 4096)
        while write(file, block, block.count) > 0 {}
        var status = stat()
        if fstat(file, &status) == 0, bytes > 0 { ftruncate(file, max(0, status.st_size - bytes)) }
        close(file)
    }

    func empty() {
        unlink(path + "/filler")
    }
}
