internal import Glibc
internal import Synchronization

/// Prevents the creation of files in a directory, or writes to a file, by the mode and, because root ignores the mode, by marking it
/// immutable. Only the latter concerns a file that is open.
package final class WriteProtection: Sendable {
    private let file: Int32
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
        file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0, Self.set(file, isProtected: true) else {
            close(file)
            return nil
        }
    }

    /// Ends the protection, also of a directory or file that was renamed.
    package func end() {
        guard !isEnded.exchange(true, ordering: .relaxed) else { return }
        _ = Self.set(file, isProtected: false)
    }

    deinit {
        end()
        close(file)
    }

    private static func set(_ file: Int32, isProtected: Bool) -> Bool {
        guard geteuid() == 0 else { return fchmod(file, isProtected ? 0o555 : 0o755) == 0 }
        // FS_IOC_GETFLAGS, FS_IOC_SETFLAGS and FS_IMMUTABLE_FL of <linux/fs.h>, whose macros Swift does not import.
        var flags = 0
        guard ioctl(file, 0x8008_6601, &flags) == 0 else { return false }
        flags = isProtected ? flags | 0x10 : flags & ~0x10
        return ioctl(file, 0x4008_6602, &flags) == 0
    }
}
