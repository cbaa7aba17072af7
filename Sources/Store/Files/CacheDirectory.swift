internal import CLinux
internal import Glibc
internal import SystemIO

/// The cache's directory on disk, locked for one server.
///
///     <directory>/
///       lock              locked with flock(2) by the server that uses the directory, whose process id it contains
///       ledger.sqlite     everything that is known about the objects, and other owners' tables, with SQLite's log beside it
///       objects/ab/cd….mp4  one rendition per file: exactly its bytes, named by its 64-digit id
///       staging/          renditions being written, where files cannot be named later; emptied at the start
///       reserve           space that a purge on a full disk gives up
///
/// Why a database, and not a trailer, attributes or a second file per rendition: a trailer would make the file differ from what
/// is sent. Extended attributes hold 4 KiB at most on ext4 and do not exist on every file system, and an object may have any
/// number of aliases. A second file per rendition would double inodes and syncs. One database also puts publishes and purges in
/// one order, which decides every race the same way before and after a restart, and makes any purge durable with one
/// transaction, however much it removes.
///
/// Any thread. All names are resolved below open descriptors, so that a directory that is moved or replaced meanwhile is never
/// mixed up with this one.
final class CacheDirectory: Sendable {
    let path: String
    let objects: ObjectFiles
    private let root: SharedDescriptor
    private let lock: OwnedDescriptor

    /// Creates missing directories, takes the lock, and empties `staging/`.
    init(path: String) throws(CacheError) {
        self.path = path
        do throws(SystemError) {
            try Self.createDirectories(path)
            root = SharedDescriptor(try openDescriptor(path, below: AT_FDCWD, flags: O_RDONLY | O_DIRECTORY))
            objects = try ObjectFiles(below: root.number)
        } catch {
            throw .directoryUnusable(path: path, cause: error)
        }
        lock = try Self.openLocked("lock", below: root.number, path: path)
        // Keeps other servers out even if the lock file was deleted. Some network file systems cannot lock directories.
        if flock(root.number, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
            throw .directoryInUse(path: path, holder: Self.holder(below: root.number))
        }
        let text = Array("process \(getpid())\n".utf8)
        // A full disk must not keep the server from starting.
        if ftruncate(lock.number, 0) == 0 { _ = pwrite(lock.number, text, text.count, 0) }
        objects.emptyStaging()
    }

    func space() throws(SystemError) -> DiskSpace { try DiskSpace(of: root.number) }

    /// Whether the path still leads to this directory and its parts. False after they were removed or replaced.
    var isInPlace: Bool {
        leads(path, below: AT_FDCWD, to: root.number) && objects.areInPlace(in: path)
    }

    /// Releases the lock on the directory, even if a forked child still has the file open. Nothing in the directory may be
    /// changed afterwards. Staged files may outlive this.
    func unlock() {
        flock(root.number, LOCK_UN)
        flock(lock.number, LOCK_UN)
    }

    // MARK: Files directly in the directory

    func path(of name: String) -> String { "\(path)/\(name)" }

    /// Makes the names of the files directly in the directory durable.
    func syncNames() throws(SystemError) {
        try syncDirectory(root.number)
    }

    /// Reserves space that ``giveUpReserve()`` frees, if enough stays free. On failure, there is no reserve until the next
    /// call.
    func keepReserve(leaving bytes: Int64) {
        var status = stat()
        if fstatat(root.number, Self.reserve, &status, 0) == 0, status.st_size == Self.reserveSize { return }
        guard let free = try? space().freeBytes, free - Int64(2 * Self.reserveSize) >= bytes else { return }
        guard let file = try? openDescriptor(Self.reserve, below: root.number, flags: O_WRONLY | O_CREAT) else { return }
        if posix_fallocate(file.number, 0, off_t(Self.reserveSize)) != 0 { giveUpReserve() }
    }

    /// Frees space for a purge on a full disk.
    func giveUpReserve() {
        unlinkat(root.number, Self.reserve, 0)
    }

    private static let reserve = "reserve"
    private static let reserveSize = 4 << 20

    // MARK: Locking

    /// Opens a file and locks it with flock(2). The kernel releases the lock when the process ends.
    ///
    /// Waits up to half a second for the lock: a server that is shutting down, or its child process, may still hold it. A file
    /// that was replaced between the open and the lock is opened again.
    private static func openLocked(
        _ name: String, below root: Int32, path: String
    ) throws(CacheError) -> OwnedDescriptor {
        var attempts = 0
        while true {
            let file: OwnedDescriptor
            do throws(SystemError) {
                file = try openDescriptor(name, below: root, flags: O_RDWR | O_CREAT)
            } catch {
                throw .directoryUnusable(path: path, cause: error)
            }
            if flock(file.number, LOCK_EX | LOCK_NB) == 0 {
                if leads(name, below: root, to: file.number) { return file }
            } else if errno != EWOULDBLOCK {
                throw .directoryUnusable(path: path, cause: .last("flock(\(name))"))
            }
            guard attempts < 10 else { throw .directoryInUse(path: path, holder: holder(below: root)) }
            attempts += 1
            usleep(50_000)
        }
    }

    private static func holder(below root: Int32) -> String {
        guard let file = try? openDescriptor("lock", below: root, flags: O_RDONLY),
            let bytes = try? SharedDescriptor(file).readAll(), !bytes.isEmpty
        else { return "process unknown" }
        return String(decoding: bytes.prefix(64).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    private static func createDirectories(_ path: String) throws(SystemError) {
        var sofar = path.hasPrefix("/") ? "/" : ""
        for part in path.split(separator: "/") {
            sofar += part + "/"
            if mkdir(sofar, 0o755) != 0, errno != EEXIST { throw .last("mkdir(\(sofar))") }
        }
    }
}

// MARK: - Names below open directories

func openDescriptor(_ name: String, below directory: Int32, flags: Int32) throws(SystemError) -> OwnedDescriptor {
    let number = clinux_openat(directory, name, flags, 0o644)
    guard number >= 0 else { throw .last("open(\(name))") }
    return OwnedDescriptor(taking: number)
}

/// Makes the names in an open directory durable, unless its file system cannot, as old CIFS and vboxsf.
func syncDirectory(_ number: Int32) throws(SystemError) {
    do throws(SystemError) {
        try retryingOnInterrupt("fsync") { fsync(number) }
    } catch {
        guard [EINVAL, ENOSYS, EOPNOTSUPP].contains(error.code) else { throw error }
    }
}

func copyBytes(of file: SharedDescriptor, _ count: Int, to target: Int32) throws(SystemError) {
    var offset: Int64 = 0
    while offset < count {
        let sent = try retryingOnInterrupt("sendfile") { clinux_sendfile(target, file.number, &offset, count - Int(offset)) }
        guard sent > 0 else { throw SystemError("sendfile", code: EIO) }
    }
}

/// Whether a name below an open directory leads to an open file or directory, as far as the disk answers: a network file system
/// without its server may answer again.
func leads(_ name: String, below directory: Int32, to number: Int32) -> Bool {
    var named = stat()
    var held = stat()
    guard fstatat(directory, name, &named, 0) == 0 else { return ![ENOENT, ENOTDIR, ELOOP, ESTALE].contains(errno) }
    return fstat(number, &held) == 0 && named.st_ino == held.st_ino && named.st_dev == held.st_dev
}
