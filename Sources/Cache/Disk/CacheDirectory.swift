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
/// **The files are the truth.** `objects/` holds the bytes, `journal` all that is known of them. The index is derived: when it is
/// missing, older than the journal or broken, it is made anew from the journal.
///
/// Why a journal, and not a trailer, attributes or a second file for each rendition: a trailer would make the file differ
/// from what is sent; extended attributes hold 4 KiB at most on ext4 and do not exist on every file system, and an object may
/// have any number of aliases; a second file for each would double inodes and syncs. One journal also puts publishes and purges in one
/// order, which decides every race the same way before and after a restart, and makes any purge durable by one line and one
/// fdatasync, however much it removes.
///
/// Any thread. All names are resolved below open descriptors, so that a directory moved or replaced meanwhile is never mixed with this one.
final class CacheDirectory: Sendable {
    let path: String
    private let root: SharedDescriptor
    private let objects: SharedDescriptor
    private let staging: SharedDescriptor
    private let lock: SharedDescriptor

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
            lock = try Self.open("lock", below: root.number, flags: O_RDWR | O_CREAT)
        } catch {
            throw .directoryUnusable(path: path, cause: error)
        }
        try takeLock()
        emptyStaging()
    }

    // MARK: Objects

    /// Opens a rendition's file for reading.
    func open(_ id: ObjectID, _ fileExtension: String) throws(SystemError) -> SharedDescriptor {
        try Self.open(Self.name(id, fileExtension), below: objects.number, flags: O_RDONLY)
    }

    /// Gives a staged file its name.
    ///
    /// - Parameter replacing: Whether a file of that name is replaced; else it stays and the call fails with `EEXIST`.
    func link(_ staged: StagedFile, as id: ObjectID, _ fileExtension: String, replacing: Bool) throws(SystemError) {
        let name = Self.name(id, fileExtension)
        if mkdirat(objects.number, String(name.prefix(2)), 0o755) != 0, errno != EEXIST {
            throw SystemError.last("mkdir")
        }
        if !replacing {
            if let stagedName = staged.name {
                guard linkat(staging.number, stagedName, objects.number, name, 0) == 0 else { throw .last("linkat") }
            } else {
                guard clinux_link_tmpfile(staged.descriptor.number, objects.number, name) == 0 else { throw .last("linkat") }
            }
            return
        }
        // linkat never replaces: link under a name of its own first, then rename over the old file in one step.
        let temporary = StagedFile.freshName()
        if let stagedName = staged.name {
            guard linkat(staging.number, stagedName, staging.number, temporary, 0) == 0 else { throw .last("linkat") }
        } else {
            guard clinux_link_tmpfile(staged.descriptor.number, staging.number, temporary) == 0 else { throw .last("linkat") }
        }
        guard renameat(staging.number, temporary, objects.number, name) == 0 else {
            let error = SystemError.last("renameat")
            unlinkat(staging.number, temporary, 0)
            throw error
        }
    }

    /// Removes a rendition's file. Those who have it open go on reading it.
    ///
    /// - Returns: False where there was none.
    @discardableResult
    func remove(_ id: ObjectID, _ fileExtension: String) throws(SystemError) -> Bool {
        if unlinkat(objects.number, Self.name(id, fileExtension), 0) == 0 { return true }
        if errno == ENOENT { return false }
        throw SystemError.last("unlink")
    }

    /// A rendition's length on disk; nil where there is no such file.
    func length(_ id: ObjectID, _ fileExtension: String) throws(SystemError) -> Int64? {
        var status = stat()
        if fstatat(objects.number, Self.name(id, fileExtension), &status, AT_SYMLINK_NOFOLLOW) == 0 {
            return Int64(status.st_size)
        }
        if errno == ENOENT { return nil }
        throw .last("fstatat")
    }

    /// Makes the names in a rendition's directory durable.
    func syncNames(beside id: ObjectID) throws(SystemError) {
        let directory = try Self.open(String(id.description.prefix(2)), below: objects.number, flags: O_RDONLY | O_DIRECTORY)
        try retryingOnInterrupt("fsync") { fsync(directory.number) }
    }

    /// The files in one of the 256 directories below `objects/`: those that are named as renditions are, and the rest.
    func list(_ first: UInt8) throws(SystemError) -> (renditions: [(id: ObjectID, fileExtension: String)], others: [String]) {
        let subdirectory = Hex.encode([first])
        var renditions: [(id: ObjectID, fileExtension: String)] = []
        var others: [String] = []
        let names: [String]
        do {
            names = try DirectoryListing.names(in: subdirectory, below: objects.number)
        } catch where error.code == ENOENT {
            return ([], [])
        }
        for name in names {
            let parts = name.split(separator: ".", omittingEmptySubsequences: false)
            if parts.count == 2, let id = ObjectID(hex: subdirectory + parts[0]), ObjectRecord.isExtension(String(parts[1])) {
                renditions.append((id, String(parts[1])))
            } else {
                others.append("\(subdirectory)/\(name)")
            }
        }
        return (renditions, others)
    }

    /// Removes a file that ``list(_:)`` gave among the others.
    func removeOther(_ name: String) throws(SystemError) {
        guard unlinkat(objects.number, name, 0) == 0 || errno == ENOENT else { throw .last("unlink") }
    }

    private static func name(_ id: ObjectID, _ fileExtension: String) -> String {
        let hex = id.description
        return "\(hex.prefix(2))/\(hex.dropFirst(2)).\(fileExtension)"
    }

    // MARK: Staging

    /// A new file to write a rendition into, without a name where the file system can do that.
    func stage() throws(SystemError) -> StagedFile {
        // Through /proc, since O_TMPFILE takes a path, and this directory's path may lead elsewhere by now.
        let number = clinux_open_tmpfile("/proc/self/fd/\(staging.number)", 0o644)
        if number >= 0 { return StagedFile(SharedDescriptor(OwnedDescriptor(taking: number)), in: self, name: nil) }
        guard [EOPNOTSUPP, EISDIR, EINVAL].contains(errno) else { throw .last("open(O_TMPFILE)") }
        let name = StagedFile.freshName()
        let descriptor = try Self.open(name, below: staging.number, flags: O_RDWR | O_CREAT | O_EXCL)
        return StagedFile(descriptor, in: self, name: name)
    }

    /// Removes a staged file's own name, where it has one.
    func discard(stagedName: String) {
        // What cannot be removed now is removed at the next start.
        unlinkat(staging.number, stagedName, 0)
    }

    private func emptyStaging() {
        guard let names = try? DirectoryListing.names(in: ".", below: staging.number) else { return }
        for name in names { unlinkat(staging.number, name, 0) }
    }

    // MARK: The directory as a whole

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
            && isSame(path + "/lock", lock)
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

    private static func open(_ path: String, below directory: Int32, flags: Int32) throws(SystemError) -> SharedDescriptor {
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

    private func takeLock() throws(CacheError) {
        // A server that is just ending, or a child of it, may hold the lock a moment longer.
        for attempt in 0... {
            if clinux_try_lock(lock.number) == 0 { break }
            guard errno == EWOULDBLOCK else { throw .directoryUnusable(path: path, cause: .last("flock")) }
            guard attempt < Self.lockAttempts else { throw .directoryInUse(path: path, holder: holder()) }
            usleep(Self.lockPause)
        }
        let text = Array("process \(getpid())\n".utf8)
        // Only for people to read: a full disk must not keep the server from starting.
        if ftruncate(lock.number, 0) == 0 { _ = pwrite(lock.number, text, text.count, 0) }
    }

    /// Lets another server have the directory; staged files may outlive this. Nothing may be changed in it afterwards.
    func unlock() {
        clinux_unlock(lock.number)
    }

    private func holder() -> String {
        guard let bytes = try? lock.readAll(), !bytes.isEmpty else { return "process unknown" }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }

    private static let lockAttempts = 10
    /// Microseconds.
    private static let lockPause: UInt32 = 50_000
}
