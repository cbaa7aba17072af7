internal import CLinux
internal import Glibc

/// Standard input, output and error of the process, which a parent process may have closed.
package enum StandardDescriptors {
    /// Opens the closed ones, so that no file opened later takes their numbers and receives their data. Each is opened in the unused
    /// direction, so that using it is still an error (`EBADF`).
    ///
    /// Call this before anything else is opened. Child processes inherit the descriptors.
    package static func fillClosed() {
        // A use by the path, such as /dev/stdout, opens the device again: there is nothing to read then, and no space to write.
        let substitutes = [
            (STDIN_FILENO, "/dev/null", O_WRONLY), (STDOUT_FILENO, "/dev/full", O_RDONLY),
            (STDERR_FILENO, "/dev/full", O_RDONLY),
        ]
        for (number, device, mode) in substitutes where fcntl(number, F_GETFD) < 0 {
            // Gets the lowest free number, which is this one: all below it are open.
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
    /// Writes a text.
    package static func write(_ text: String) throws(FileError) {
        do throws(SystemError) {
            try DescriptorIO.write(Array(text.utf8), to: STDOUT_FILENO)
        } catch {
            throw failure(error.code)
        }
    }

    /// Writes what `print` has buffered. The exit of the process does that too, but ignores errors.
    ///
    /// - Throws: ``FileError``, including for what could not be written earlier.
    package static func flush() throws(FileError) {
        if clinux_flush_output() != 0 { throw failure(errno) }
    }

    private static func failure(_ code: Int32) -> FileError {
        FileError(path: "Standard output", action: "written", code: code)
    }
}
