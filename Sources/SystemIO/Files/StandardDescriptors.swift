internal import CLinux
internal import Glibc

/// The process's standard input, output and error, which a parent process may have closed.
package enum StandardDescriptors {
    /// Opens substitutes for the closed descriptors, so that no file opened later gets their numbers and receives their data.
    /// Each is opened in the wrong direction, so that using it still fails with `EBADF`.
    ///
    /// Call this before the process opens anything else. Child processes inherit the descriptors.
    package static func fillClosed() {
        // Opening a path such as /dev/stdout reopens the device: /dev/null yields no input, and /dev/full fails every write.
        let substitutes = [
            (STDIN_FILENO, "/dev/null", O_WRONLY), (STDOUT_FILENO, "/dev/full", O_RDONLY),
            (STDERR_FILENO, "/dev/full", O_RDONLY),
        ]
        for (number, device, mode) in substitutes where fcntl(number, F_GETFD) < 0 {
            // The lowest free number is this one, because all lower numbers are open.
            _ = open(device, mode)
        }
    }

    /// Whether a descriptor is open for writing.
    static func isWritable(_ number: Int32) -> Bool {
        let flags = fcntl(number, F_GETFL)
        return flags >= 0 && flags & O_ACCMODE != O_RDONLY
    }
}

/// Standard output of a command. Every function blocks.
package enum StandardOutput {
    package static func write(_ text: String) throws(FileError) {
        try translating(try DescriptorIO.write(Array(text.utf8), to: STDOUT_FILENO)) { (error: SystemError) in
            failure(error.code)
        }
    }

    /// Flushes the output buffered by `print`. Unlike the flush at exit, reports errors.
    ///
    /// - Throws: ``FileError``, even for earlier failed writes.
    package static func flush() throws(FileError) {
        if clinux_flush_output() != 0 { throw failure(errno) }
    }

    private static func failure(_ code: Int32) -> FileError {
        FileError(path: "Standard output", action: "written", code: code)
    }
}
