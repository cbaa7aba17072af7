internal import Glibc

/// What a file system can still take (statvfs).
package struct DiskSpace: Sendable {
    /// Free bytes for this user.
    package let freeBytes: Int64
    /// The bytes that it can hold in all.
    package let allBytes: Int64
    /// The files that it can still take; nil if their number is not limited.
    package let freeFiles: Int64?
    /// The files that it can hold in all; 0 if their number is not limited.
    package let allFiles: Int64

    /// The file system of an open file or directory. May wait for a network file system.
    package init(of descriptor: CInt) throws(SystemError) {
        var status = statvfs()
        guard fstatvfs(descriptor, &status) == 0 else { throw .last("fstatvfs") }
        self.init(status)
    }

    /// The file system of a path. May wait for a network file system.
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

    /// Some network file systems report more blocks than have a number of bytes.
    static func bytes(blocks: UInt64, ofSize size: UInt64) -> Int64 {
        let (bytes, isOverflow) = blocks.multipliedReportingOverflow(by: size)
        return isOverflow ? .max : Int64(clamping: bytes)
    }
}
