internal import CLinux
internal import Glibc
internal import SystemIO

/// The files of renditions in a ``CacheDirectory``: `objects/` with the stored ones, `staging/` with those being written.
///
/// Any thread.
final class ObjectFiles: Sendable {
    private let objects: SharedDescriptor
    private let staging: SharedDescriptor
    /// Whether staged files have no names.
    private let hasUnnamed: Bool

    /// Opens both directories, and creates those that are missing.
    ///
    /// - Parameter root: The descriptor of their parent directory, used only during this call.
    init(below root: Int32) throws(SystemError) {
        for name in ["objects", "staging"] where mkdirat(root, name, 0o755) != 0 && errno != EEXIST {
            throw SystemError.last("mkdir(\(name))")
        }
        objects = SharedDescriptor(try openDescriptor("objects", below: root, flags: O_RDONLY | O_DIRECTORY))
        staging = SharedDescriptor(try openDescriptor("staging", below: root, flags: O_RDONLY | O_DIRECTORY))
        hasUnnamed = Files.canNameLater("/proc/self/fd/\(staging.number)/\(StagedFile.uniqueName())")
    }

    /// Whether both directories still have their names below `path`.
    func areInPlace(in path: String) -> Bool {
        leads("\(path)/objects", below: AT_FDCWD, to: objects.number)
            && leads("\(path)/staging", below: AT_FDCWD, to: staging.number)
    }

    // MARK: Stored files

    func open(_ name: RenditionName) throws(SystemError) -> SharedDescriptor {
        SharedDescriptor(try openDescriptor(Self.path(name), below: objects.number, flags: O_RDONLY))
    }

    /// Links a staged file to its name. Fails with `EEXIST` if the name exists. One call at a time.
    func link(_ staged: StagedFile, as name: RenditionName) throws(SystemError) {
        let path = Self.path(name)
        if mkdirat(objects.number, String(path.prefix(2)), 0o755) == 0 {
            // The directory must be durable before the name of a file in it.
            try syncDirectory(objects.number)
        } else if errno != EEXIST {
            throw SystemError.last("mkdir")
        }
        guard let stagedName = staged.name else {
            guard clinux_link_tmpfile(staged.number, objects.number, path) == 0 else { throw .last("linkat") }
            return
        }
        guard linkat(staging.number, stagedName, objects.number, path, 0) != 0 else { return }
        // exFAT and some network file systems have no hard links, and AppArmor may refuse them. rename(2) would replace a file.
        guard [EPERM, EACCES, ENOSYS, EOPNOTSUPP].contains(errno) else { throw .last("linkat") }
        guard try length(name) == nil else { throw SystemError("rename", code: EEXIST) }
        guard renameat(staging.number, stagedName, objects.number, path) == 0 else { throw .last("rename") }
    }

    /// Makes the names in a rendition's directory durable.
    func syncNames(beside name: RenditionName) throws(SystemError) {
        let path = String(Self.path(name).prefix(2))
        let directory = try openDescriptor(path, below: objects.number, flags: O_RDONLY | O_DIRECTORY)
        try syncDirectory(directory.number)
    }

    /// Returns false if there was no such file. Readers that have it open are not affected.
    @discardableResult
    func remove(_ name: RenditionName) throws(SystemError) -> Bool {
        if unlinkat(objects.number, Self.path(name), 0) == 0 { return true }
        if errno == ENOENT { return false }
        throw SystemError.last("unlink")
    }

    func length(_ name: RenditionName) throws(SystemError) -> Int64? {
        var status = stat()
        if fstatat(objects.number, Self.path(name), &status, AT_SYMLINK_NOFOLLOW) == 0 {
            return Int64(status.st_size)
        }
        if errno == ENOENT { return nil }
        throw .last("fstatat")
    }

    /// Lists one of the 256 directories below `objects/`: the files with rendition names, and the paths of all others.
    func list(_ first: UInt8) throws(SystemError) -> (renditions: Set<RenditionName>, others: [String]) {
        let subdirectory = Hex.encode([first])
        var renditions: Set<RenditionName> = []
        var others: [String] = []
        let names: [String]
        do {
            names = try DirectoryNames.list(subdirectory, below: objects.number)
        } catch  where error.code == ENOENT {
            return ([], [])
        }
        for name in names {
            if let rendition = RenditionName(subdirectory + name) {
                renditions.insert(rendition)
            } else {
                others.append("\(subdirectory)/\(name)")
            }
        }
        return (renditions, others)
    }

    /// Removes one of the other files that ``list(_:)`` returned.
    func removeOther(_ path: String) throws(SystemError) {
        guard unlinkat(objects.number, path, 0) == 0 || errno == ENOENT else { throw .last("unlink") }
    }

    private static func path(_ name: RenditionName) -> String {
        let text = name.description
        return "\(text.prefix(2))/\(text.dropFirst(2))"
    }

    // MARK: Staged files

    /// Creates a file to write a rendition into, without a name if it can get one later.
    func createStaged() throws(SystemError) -> StagedFile {
        if hasUnnamed {
            // Opens it through /proc, since O_TMPFILE requires a path and this directory may have been moved.
            let number = clinux_open_tmpfile("/proc/self/fd/\(staging.number)", 0o644)
            guard number >= 0 else { throw .last("open(O_TMPFILE)") }
            return StagedFile(SharedDescriptor(OwnedDescriptor(taking: number)), in: self)
        }
        let name = StagedFile.uniqueName()
        let descriptor = try openDescriptor(name, below: staging.number, flags: O_RDWR | O_CREAT | O_EXCL)
        return StagedFile(SharedDescriptor(descriptor), in: self, name: name)
    }

    /// Removes the name of a staged file. If that fails, the next start removes it.
    func removeStaged(_ name: String) {
        unlinkat(staging.number, name, 0)
    }

    func emptyStaging() {
        guard let names = try? DirectoryNames.list(".", below: staging.number) else { return }
        for name in names { removeStaged(name) }
    }
}
