internal import Glibc

/// The capacity and free space of a file system (statvfs).
package struct DiskSpace: Sendable {
    /// The bytes available to this user.
    package let freeBytes: Int64
    /// The total size in bytes.
    package let allBytes: Int64
    /// The number of files that can still be created; nil if the file system does not limit it.
    package let freeFiles: Int64?
    /// The maximum number of files; 0 if the file system does not limit it.
    package let allFiles: Int64

    /// Queries the file system of an open file or directory. May block on a network file system.
    package init(of descriptor: CInt) throws(SystemError) {
        var status = statvfs()
        guard fstatvfs(descriptor, &status) == 0 else { throw .last("fstatvfs") }
        self.init(status)
    }

    /// Queries the file system of `path`. May block on a network file system.
    package init(at path: String) throws(SystemError) {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { throw .last("statvfs") }
        self.init(status)
    }

    private init(_ status: statvfs) {
        freeBytes = Self.bytes(blocks: UInt64(status.f_bavail), ofSize: UInt64(status.f_frsize))
        allBytes = Self.bytes(blocks: UInt64(status.f_blocks), ofSize: UInt64(status.f_frsize))
        allFiles = Int64(clamping: status.f_files)
        // Some file systems, such as btrfs, report no inodes at all.
        freeFiles = allFiles > 0 ? Int64(clamping: status.f_favail) : nil
    }

    /// Returns `blocks` × `size`, saturated: some network file systems report more blocks than `Int64` has bytes.
    static func bytes(blocks: UInt64, ofSize size: UInt64) -> Int64 {
        let (bytes, isOverflow) = blocks.multipliedReportingOverflow(by: size)
        return isOverflow ? .max : Int64(clamping: bytes)
    }
}
