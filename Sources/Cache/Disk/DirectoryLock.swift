internal import CLinux
internal import Glibc
internal import SystemIO

/// Keeps two servers from using one directory: flock(2) on a file in it, which also holds the server's process id for people
/// to read.
///
/// The kernel gives the lock back when the process ends, however it ends.
struct DirectoryLock: Sendable {
    let file: SharedDescriptor

    /// Takes the lock, waiting half a second at most: a server that is just ending, or a child of it, may hold it a moment
    /// longer.
    ///
    /// - Throws: ``CacheError/directoryInUse(path:holder:)``, ``CacheError/directoryUnusable(path:cause:)``.
    func take(directory path: String) throws(CacheError) {
        var attempts = 0
        while clinux_try_lock(file.number) != 0 {
            guard errno == EWOULDBLOCK else { throw .directoryUnusable(path: path, cause: .last("flock")) }
            guard attempts < 10 else { throw .directoryInUse(path: path, holder: holder()) }
            attempts += 1
            usleep(50_000)
        }
        let text = Array("process \(getpid())\n".utf8)
        // A full disk must not keep the server from starting.
        if ftruncate(file.number, 0) == 0 { _ = pwrite(file.number, text, text.count, 0) }
    }

    /// Gives it back, also where a forked child still has the file open.
    func release() {
        clinux_unlock(file.number)
    }

    private func holder() -> String {
        guard let bytes = try? file.readAll(), !bytes.isEmpty else { return "process unknown" }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }
}
