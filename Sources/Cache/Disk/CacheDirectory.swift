internal import CLinux
internal import Glibc
internal import SystemIO

/// The cache's directory on disk, locked for one server.
///
///     <directory>/
///       lock              locked with flock(2) by the server that uses the directory, whose process id it contains
///       journal           what the files in objects/ are, which aliases lead to them, what was purged (see Journal); locked as well
///       index.sqlite      the same, to look things up in; may be deleted at any time the server is down
///       objects/ab/cd….mp4  one rendition a file: exactly its bytes, named by its 64-digit id
///       staging/          renditions being written, where the file system has no O_TMPFILE; emptied at the start
///
/// **The files are the truth.** `objects/` holds the bytes, `journal` all that is known of them. The index is derived: when
/// it is missing, older than the journal or broken, it is made anew from the journal.
///
/// Why a journal, and not a trailer, attributes or a second file for each rendition: a trailer would make the file differ
/// from what is sent; extended attributes hold 4 KiB at most on ext4 and do not exist on every file system, and an object may
/// have any number of aliases; a second file for each would double inodes and syncs. One journal also puts publishes and
/// purges in one order, which decides every race the same way before and after a restart, and makes any purge durable by one
/// line and one fdatasync, however much it removes.
///
/// Any thread. All names are resolved below open descriptors, so that a directory moved or replaced meanwhile is never mixed
/// with this one.
final class CacheDirectory: Sendable {
    let path: String
    let root: SharedDescriptor
    let objects: SharedDescriptor
    let staging: SharedDescriptor
    private let lock: OwnedDescriptor

    /// Makes what is missing, takes the lock, and empties `staging/`.
    init(path: String) throws(CacheError) {
        self.path = path
        do throws(SystemError) {
            try Self.makeDirectories(path)
            root = try Self.open(path, below: AT_FDCWD, flags: O_RDONLY | O_DIRECTORY)
            for name in ["objects", "staging"] where mkdirat(root.number, name, 0o755) != 0 && errno != EEXIST {
                throw SystemError.last("mkdir(\(name))")
            }
            objects = try Self.open("objects", below: root.number, flags: O_RDONLY | O_DIRECTORY)
            staging = try Self.open("staging", below: root.number, flags: O_RDONLY | O_DIRECTORY)
        } catch {
            throw .directoryUnusable(path: path, cause: error)
        }
        lock = try Self.openLocked("lock", below: root, path: path)
        let text = Array("process \(getpid())\n".utf8)
        // A full disk must not keep the server from starting.
        if ftruncate(lock.number, 0) == 0 { _ = pwrite(lock.number, text, text.count, 0) }
        emptyStaging()
    }

    /// Bytes that may still be written to its file system.
    func freeBytes() throws(SystemError) -> Int64 {
        var status = statvfs()
        guard fstatvfs(root.number, &status) == 0 else { throw .last("fstatvfs") }
        return Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(clamping: status.f_frsize)).partialValue
    }

    /// Whether the path still leads to this directory and its parts; not so after someone removed or replaced it.
    var isInPlace: Bool {
        [("", root), ("/objects", objects), ("/staging", staging)].allSatisfy { part, held in
            Self.leads(path + part, below: AT_FDCWD, to: held.number)
        }
    }

    /// Releases the lock on the directory, also if a forked child still has the file open. Nothing in the directory may be
    /// changed afterwards. Staged files may outlive this.
    func unlock() {
        clinux_unlock(lock.number)
    }

    /// Opens a file directly in the directory and locks it, creating it if it is missing.
    ///
    /// - Throws: ``CacheError/directoryInUse(path:holder:)``, ``CacheError/directoryUnusable(path:cause:)``.
    func openLocked(_ name: String) throws(CacheError) -> OwnedDescriptor {
        try Self.openLocked(name, below: root, path: path)
    }

    /// Whether the name of a file directly in the directory leads to this open file.
    func leads(_ name: String, to number: Int32) -> Bool {
        Self.leads(name, below: root.number, to: number)
    }

    /// The path of a file directly in the directory.
    func path(of name: String) -> String { "\(path)/\(name)" }

    /// Opens a file directly in the directory.
    func openFile(_ name: String, flags: Int32) throws(SystemError) -> OwnedDescriptor {
        let number = clinux_openat(root.number, name, flags, 0o644)
        guard number >= 0 else { throw .last("open(\(name))") }
        return OwnedDescriptor(taking: number)
    }

    /// Renames a file directly in the directory over another, durably.
    func replaceFile(_ name: String, with newName: String) throws(SystemError) {
        guard renameat(root.number, newName, root.number, name) == 0 else { throw .last("rename(\(newName))") }
        try retryingOnInterrupt("fsync") { fsync(root.number) }
    }

    /// Removes a file directly in the directory, if it is there.
    func removeFile(_ name: String) throws(SystemError) {
        guard unlinkat(root.number, name, 0) == 0 || errno == ENOENT else { throw .last("unlink(\(name))") }
    }

    // MARK: Locking

    /// Opens a file and locks it with flock(2). The kernel releases the lock when the process ends.
    ///
    /// Waits up to half a second for the lock, since a server that is just ending, or a child process of it, may still hold
    /// it. A file that was replaced between the open and the lock is opened again.
    private static func openLocked(
        _ name: String, below root: SharedDescriptor, path: String
    ) throws(CacheError) -> OwnedDescriptor {
        var attempts = 0
        while true {
            let number = clinux_openat(root.number, name, O_RDWR | O_CREAT, 0o644)
            guard number >= 0 else { throw .directoryUnusable(path: path, cause: .last("open(\(name))")) }
            let file = OwnedDescriptor(taking: number)
            if clinux_try_lock(number) == 0 {
                if leads(name, below: root.number, to: number) { return file }
            } else if errno != EWOULDBLOCK {
                throw .directoryUnusable(path: path, cause: .last("flock(\(name))"))
            }
            guard attempts < 10 else { throw .directoryInUse(path: path, holder: holder(below: root)) }
            attempts += 1
            usleep(50_000)
        }
    }

    /// The process that the lock file names.
    private static func holder(below root: SharedDescriptor) -> String {
        guard let file = try? open("lock", below: root.number, flags: O_RDONLY), let bytes = try? file.readAll(),
            !bytes.isEmpty
        else { return "process unknown" }
        return String(decoding: bytes.prefix(64).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    private static func leads(_ name: String, below directory: Int32, to number: Int32) -> Bool {
        var named = stat()
        var held = stat()
        return fstatat(directory, name, &named, 0) == 0 && fstat(number, &held) == 0 && named.st_ino == held.st_ino
            && named.st_dev == held.st_dev
    }

    // MARK: Helpers

    static func open(_ path: String, below directory: Int32, flags: Int32) throws(SystemError) -> SharedDescriptor {
        let number = clinux_openat(directory, path, flags, 0o644)
        guard number >= 0 else { throw .last("open") }
        return SharedDescriptor(OwnedDescriptor(taking: number))
    }

    private static func makeDirectories(_ path: String) throws(SystemError) {
        var sofar = path.hasPrefix("/") ? "/" : ""
        for part in path.split(separator: "/") {
            sofar += part + "/"
            if mkdir(sofar, 0o755) != 0, errno != EEXIST { throw .last("mkdir(\(sofar))") }
        }
    }
}
