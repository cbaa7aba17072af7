internal import CLinux
internal import Glibc
internal import SystemIO

/// The renditions of the puts in the outbox, as files named by the sequences of their entries. Every function blocks.
///
/// A file is added before its entry and removed after it. A crash leaves a file without an entry, which the next start removes,
/// or, after a power loss, an entry without its file, which is dropped.
///
/// A file is a hard link to the cache's file. The link takes no space while the cache has the file, and keeps the bytes after
/// eviction.
struct OutboxFiles: Sendable {
    private let root: SharedDescriptor

    /// Opens the directory, which is created if it does not exist.
    init(path: String) throws(SystemError) {
        do throws(FileError) { try Files.createDirectory(path) } catch { throw SystemError("mkdir", code: error.code) }
        root = SharedDescriptor(try openDescriptor(path, below: AT_FDCWD, flags: O_RDONLY | O_DIRECTORY))
    }

    /// Links a file, or copies it if it is on another file system or has no name any more.
    func add(_ file: SharedDescriptor, _ sequence: Int64) throws(SystemError) {
        if clinux_link_tmpfile(file.number, root.number, "\(sequence)") == 0 { return }
        let copy = try openDescriptor("\(sequence)", below: root.number, flags: O_WRONLY | O_CREAT | O_TRUNC)
        do throws(SystemError) {
            try copyBytes(of: file, try file.size(), to: copy.number)
            try retryingOnInterrupt("fdatasync") { fdatasync(copy.number) }
        } catch {
            remove(sequence)
            throw error
        }
    }

    func open(_ sequence: Int64) throws(SystemError) -> SharedDescriptor {
        SharedDescriptor(try openDescriptor("\(sequence)", below: root.number, flags: O_RDONLY))
    }

    func remove(_ sequence: Int64) {
        unlinkat(root.number, "\(sequence)", 0)
    }

    func removeAll(except sequences: Set<Int64>) throws(SystemError) {
        for name in try DirectoryNames.list(".", below: root.number) {
            guard let sequence = Int64(name), !sequences.contains(sequence) else { continue }
            remove(sequence)
        }
    }
}
