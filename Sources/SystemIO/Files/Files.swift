internal import CLinux
internal import Glibc

/// A failure to read, write or create a file or directory. The description is a sentence with the path and the reason.
package struct FileError: Error, Equatable, Sendable, CustomStringConvertible {
    package let path: String
    /// The failed action, such as `read`, as a participle that follows “cannot be”.
    package let action: String
    /// The value of `errno`.
    package let code: Int32

    /// The reason in words, such as `No such file or directory`.
    package var reason: String { String(cString: strerror(code)) }

    package var description: String { "\(path) cannot be \(action): \(reason)." }
}

/// Operations on whole files by path, for commands and small state files. Every function blocks.
package enum Files {
    /// Reads a file, or standard input for `-`.
    package static func read(_ path: String) throws(FileError) -> [UInt8] {
        var bytes: [UInt8] = []
        try forEachPiece(of: path) { piece in bytes += piece }
        return bytes
    }

    /// Calls `body` with each piece of a file, or of standard input for `-`, as it arrives. Errors that `body` throws are
    /// reported as read errors of the file.
    package static func forEachPiece(
        of path: String, _ body: (UnsafeRawBufferPointer) throws(SystemError) -> Void
    ) throws(FileError) {
        let isStandardInput = path == "-"
        let name = isStandardInput ? "Standard input" : path
        let number = isStandardInput ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw FileError(path: name, action: "read", code: errno) }
        let descriptor = OwnedDescriptor(taking: number)
        try translating(try DescriptorIO.readToEnd(of: descriptor.number, body)) { (error: SystemError) in
            FileError(path: name, action: "read", code: error.code)
        }
    }

    /// Replaces the file atomically: other processes see either the old or the new content, even after this process crashes.
    /// See ``OutputFile`` for devices and pipes.
    package static func write(_ bytes: UnsafeRawBufferPointer, to path: String) throws(FileError) {
        do throws(SystemError) {
            let file = try OutputFile(path)
            do throws(SystemError) {
                try DescriptorIO.write(bytes, to: file.descriptor.number)
                try file.complete()
            } catch {
                file.discard()
                throw error
            }
        } catch {
            throw FileError(path: path, action: "written", code: error.code)
        }
    }

    /// Replaces the file with `text`.
    package static func write(_ text: String, to path: String) throws(FileError) {
        try write(Array(text.utf8), to: path)
    }

    /// Replaces the file with `bytes`.
    package static func write(_ bytes: [UInt8], to path: String) throws(FileError) {
        try bytes.span.bytes.withUnsafeBytes { buffer throws(FileError) in try write(buffer, to: path) }
    }

    /// Creates a directory and its missing parents.
    package static func createDirectory(_ path: String) throws(FileError) {
        if mkdir(path, 0o777) == 0 { return }
        var code = errno
        let parent = directory(of: path)
        if code == ENOENT, parent != path {
            try createDirectory(parent)
            if mkdir(path, 0o777) == 0 { return }
            code = errno
        }
        guard code == EEXIST, isDirectory(path) else {
            throw FileError(path: path, action: "created", code: code == EEXIST ? ENOTDIR : code)
        }
    }

    /// Whether the path names a directory; symbolic links are followed.
    package static func isDirectory(_ path: String) -> Bool { kind(of: path) == S_IFDIR }

    /// Whether the path names a regular file; symbolic links are followed.
    package static func isRegular(_ path: String) -> Bool { kind(of: path) == S_IFREG }

    /// Whether the path names a pipe; symbolic links are followed.
    package static func isPipe(_ path: String) -> Bool { kind(of: path) == S_IFIFO }

    /// Whether the path names anything; symbolic links are followed.
    package static func exists(_ path: String) -> Bool { kind(of: path) != nil }

    /// Returns the path, or its nearest parent that exists.
    package static func existing(_ path: String) -> String {
        let parent = directory(of: path)
        return exists(path) || parent == path ? path : existing(parent)
    }

    /// The type bits of a file's mode; nil if the path names nothing.
    private static func kind(of path: String) -> mode_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
    }

    /// Whether the path names a socket; nil if it names nothing. Symbolic links are not followed.
    package static func isSocket(_ path: String) -> Bool? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & S_IFMT == S_IFSOCK : nil
    }

    /// Whether a file without a name (O_TMPFILE) can get one later. Some file systems have no such files, naming one requires
    /// `/proc`, and AppArmor may refuse it.
    ///
    /// - Parameter path: A path that names nothing, at which this is tried.
    package static func canNameLater(_ path: String) -> Bool {
        let number = clinux_open_tmpfile(directory(of: path), 0o600)
        guard number >= 0 else { return false }
        defer { close(number) }
        guard clinux_link_tmpfile(number, AT_FDCWD, path) == 0 else { return false }
        unlink(path)
        return true
    }

    /// Returns the path without its last component: `a/b` for `a/b/c`, `.` for `c`.
    package static func directory(of path: String) -> String {
        let trimmed = path.count > 1 && path.hasSuffix("/") ? path.dropLast() : path[...]
        guard let slash = trimmed.lastIndex(of: "/") else { return "." }
        return slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
    }
}

/// Directory listings.
package enum DirectoryNames {
    /// Returns all names in a directory except `.` and `..`, in no particular order.
    package static func list(_ path: String, below directory: Int32) throws(SystemError) -> [String] {
        let number = try retryingOnInterrupt("open") { openat(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard let stream = fdopendir(number) else {
            let error = SystemError.last("fdopendir")
            close(number)
            throw error
        }
        // Also closes the descriptor.
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

/// A file opened for appending, used by one thread.
package struct AppendedFile: ~Copyable {
    private let path: String
    private let descriptor: OwnedDescriptor

    /// Opens the file, creating it if it does not exist.
    package init(path: String) throws(FileError) {
        let number = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard number >= 0 else { throw FileError(path: path, action: "written", code: errno) }
        self.path = path
        descriptor = OwnedDescriptor(taking: number)
    }

    /// The last byte of the file; nil if it is empty or cannot be read.
    package var lastByte: UInt8? {
        var status = stat()
        var byte: UInt8 = 0
        guard fstat(descriptor.number, &status) == 0, status.st_size > 0,
            pread(descriptor.number, &byte, 1, status.st_size - 1) == 1
        else { return nil }
        return byte
    }

    /// Appends bytes without waiting for the disk.
    package func append(_ bytes: [UInt8]) throws(FileError) {
        try translating(try DescriptorIO.write(bytes, to: descriptor.number)) { (error: SystemError) in
            FileError(path: path, action: "written", code: error.code)
        }
    }
}

/// Standard error of a command.
package enum StandardError {
    /// Writes a line. See ``write(_:)`` and ``Swift/String/withoutControls``.
    package static func writeLine(_ text: String) { write(text.withoutControls + "\n") }

    /// The width of the terminal; 80 if it is unknown.
    package static var columns: Int {
        var size = winsize()
        return ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
    }

    /// Writes `text`. Blocks while the reader of a pipe stalls. On a full disk or a closed pipe the text is lost, because no
    /// other output is left to report the error.
    package static func write(_ text: String) {
        // SIGPIPE would end the command before it returns its exit code.
        signal(SIGPIPE, SIG_IGN)
        var text = text
        text.withUTF8 { try? DescriptorIO.write(UnsafeRawBufferPointer($0), to: STDERR_FILENO) }
    }
}
