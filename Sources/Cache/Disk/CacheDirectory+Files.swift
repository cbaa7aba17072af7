internal import CLinux
internal import Glibc
internal import SystemIO

/// Renditions' files.
extension CacheDirectory {
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
        } catch  where error.code == ENOENT {
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

    static func name(_ id: ObjectID, _ fileExtension: String) -> String {
        let hex = id.description
        return "\(hex.prefix(2))/\(hex.dropFirst(2)).\(fileExtension)"
    }
}

/// Files that are being written.
extension CacheDirectory {
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

    func emptyStaging() {
        guard let names = try? DirectoryListing.names(in: ".", below: staging.number) else { return }
        for name in names { unlinkat(staging.number, name, 0) }
    }
}

/// The names in a directory.
enum DirectoryListing {
    /// All names but `.` and `..`, in no order.
    static func names(in path: String, below directory: Int32) throws(SystemError) -> [String] {
        let number = clinux_openat(directory, path, O_RDONLY | O_DIRECTORY, 0)
        guard number >= 0 else { throw .last("open") }
        guard let stream = fdopendir(number) else {
            let error = SystemError.last("fdopendir")
            close(number)
            throw error
        }
        // Closes the descriptor too.
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw .last("readdir") }
                return names
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
    }
}
