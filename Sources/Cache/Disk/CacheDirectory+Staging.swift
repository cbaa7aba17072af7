internal import CLinux
internal import Glibc
internal import SystemIO

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
