internal import Glibc
internal import Synchronization

/// Prevents the creation of files in a directory by its mode and, because root ignores the mode, by marking it immutable.
package final class WriteProtection: Sendable {
    private let path: String
    private let isEnded = Atomic(false)

    package static let isPossible: Bool = {
        var template = Array("/tmp/gifreel-protected-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { return false }
        let path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        let protection = WriteProtection(of: path)
        protection?.end()
        rmdir(path)
        return protection != nil
    }()

    package init?(of path: String) {
        self.path = path
        guard Self.set(path, isProtected: true) else { return nil }
    }

    package func end() {
        guard !isEnded.exchange(true, ordering: .relaxed) else { return }
        _ = Self.set(path, isProtected: false)
    }

    deinit {
        end()
    }

    private static func set(_ path: String, isProtected: Bool) -> Bool {
        guard geteuid() == 0 else { return chmod(path, isProtected ? 0o555 : 0o755) == 0 }
        let file = open(path, O_RDONLY | O_DIRECTORY)
        defer { close(file) }
        // FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_IMMUTABLE_FL of <linux/fs.h>, whose macros Swift does not import.
        var flags = 0
        guard ioctl(file, 0x8008_6601, &flags) == 0 else { return false }
        flags = isProtected ? flags | 0x10 : flags & ~0x10
        return ioctl(file, 0x4008_6602, &flags) == 0
    }
}
