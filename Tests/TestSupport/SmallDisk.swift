internal import Glibc

/// A file system of a few megabytes, mounted on a directory. It needs the right to mount.
package final class SmallDisk: Sendable {
    private let path: String

    /// Whether this process may mount one.
    package static let isPossible: Bool = {
        var template = Array("/tmp/gifreel-disk-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { return false }
        let path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        defer { rmdir(path) }
        guard let disk = SmallDisk(on: path, bytes: 1 << 20) else { return false }
        disk.unmount()
        return true
    }()

    /// - Parameter inodes: The largest number of files and directories.
    package init?(on path: String, bytes: Int, inodes: Int? = nil) {
        self.path = path
        let options = "size=\(bytes)" + (inodes.map { ",nr_inodes=\($0)" } ?? "")
        guard mount("gifreel-test", path, "tmpfs", 0, options) == 0 else { return nil }
    }

    deinit {
        unmount()
    }

    package func unmount() {
        umount2(path, Int32(MNT_DETACH))
    }

    /// Forbids all changes from now on.
    package func makeReadOnly() -> Bool {
        // MS_RDONLY and MS_REMOUNT.
        mount("gifreel-test", path, "tmpfs", 1 | 32, nil) == 0
    }

    /// Bytes that are free.
    package var free: Int {
        var status = statvfs()
        return statvfs(path, &status) == 0 ? Int(status.f_bavail * status.f_frsize) : -1
    }

    /// Files that can still be created.
    package var freeInodes: Int {
        var status = statvfs()
        return statvfs(path, &status) == 0 ? Int(status.f_favail) : -1
    }

    /// Creates a file that takes all free space except a number of bytes.
    package func fill(leaving bytes: Int = 0) {
        let file = open(path + "/filler", O_RDWR | O_CREAT, 0o600)
        // Others may take some of the space meanwhile.
        for _ in 0..<100 where posix_fallocate(file, 0, off_t(size(of: file) + free - bytes)) == 0 && free <= bytes { break }
        close(file)
    }

    private func size(of file: Int32) -> Int {
        var status = stat()
        return fstat(file, &status) == 0 ? Int(status.st_blocks) * 512 : 0
    }

    package func empty() {
        unlink(path + "/filler")
    }
}
