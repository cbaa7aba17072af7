internal import CLinux
internal import Glibc
internal import SystemIO

/// The cache's directory on disk, locked for one server.
///
///     <directory>/
///       lock              held with flock(2) while a server uses the directory; holds its process id
///       journal           what the files in objects/ are, which aliases lead to them, what was purged (see Journal)
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
    private let lock: DirectoryLock

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
            lock = DirectoryLock(file: try Self.open("lock", below: root.number, flags: O_RDWR | O_CREAT))
        } catch {
            throw .directoryUnusable(path: path, cause: error)
        }
        try lock.take(directory: path)
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
        func isSame(_ path: String, _ held: SharedDescriptor) -> Bool {
            var there = stat()
            var here = stat()
            return fstatat(AT_FDCWD, path, &there, 0) == 0 && fstat(held.number, &here) == 0
                && there.st_ino == here.st_ino && there.st_dev == here.st_dev
        }
        return isSame(path, root) && isSame(path + "/objects", objects) && isSame(path + "/staging", staging)
            && isSame(path + "/lock", lock.file)
    }

    /// Lets another server have the directory; staged files may outlive this. Nothing may be changed in it afterwards.
    func unlock() {
        lock.release()
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
