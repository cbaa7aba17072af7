internal import Glibc

/// A file or directory that cannot be read, written or created. The description is a sentence with its path and the reason.
package struct FileError: Error, Equatable, Sendable, CustomStringConvertible {
    package let path: String
    /// What failed, such as `read`, in the form that follows “cannot be”.
    package let action: String
    /// The value of `errno`.
    package let code: Int32

    /// The reason in words, such as `No such file or directory`.
    package var reason: String { String(cString: strerror(code)) }

    package var description: String { "\(path) cannot be \(action): \(reason)." }
}

/// Whole files by path, for commands and small files of state. Every function blocks.
package enum Files {
    /// The bytes of a file, or of standard input for `-`.
    package static func read(_ path: String) throws(FileError) -> [UInt8] {
        var bytes: [UInt8] = []
        try forEachPiece(of: path) { piece in bytes += piece }
        return bytes
    }

    /// Calls `body` with the pieces of a file, or of standard input for `-`, as they arrive. An error of `body` counts as one of the
    /// file.
    package static func forEachPiece(
        of path: String, _ body: (UnsafeRawBufferPointer) throws(SystemError) -> Void
    ) throws(FileError) {
        let isStandardInput = path == "-"
        let name = isStandardInput ? "Standard input" : path
        let number = isStandardInput ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { throw FileError(path: name, action: "read", code: errno) }
        let descriptor = OwnedDescriptor(taking: number)
        do throws(SystemError) {
            try DescriptorIO.readToEnd(of: descriptor.number, body)
        } catch {
            throw FileError(path: name, action: "read", code: error.code)
        }
    }

    /// Replaces the file as a whole: other processes see the old content or the new one, even after a crash of this process. See
    /// ``OutputFile`` for devices and pipes.
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

    /// Replaces the file with a text.
    package static func write(_ text: String, to path: String) throws(FileError) {
        try write(Array(text.utf8), to: path)
    }

    /// Replaces the file.
    package static func write(_ bytes: [UInt8], to path: String) throws(FileError) {
        try bytes.withUnsafeBytes { buffer in Result { () throws(FileError) in try write(buffer, to: path) } }.get()
    }

    /// Creates a directory and those above it, if they do not exist.
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
    package static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Whether the path names anything; symbolic links are followed.
    package static func exists(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0
    }

    /// Whether the path names a socket; symbolic links are not followed. Nil if it names nothing.
    package static func isSocket(_ path: String) -> Bool? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & S_IFMT == S_IFSOCK : nil
    }

    /// The path up to its last part: `a/b` of `a/b/c`, `.` of `c`.
    package static func directory(of path: String) -> String {
        let trimmed = path.count > 1 && path.hasSuffix("/") ? path.dropLast() : path[...]
        guard let slash = trimmed.lastIndex(of: "/") else { return "." }
        return slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
    }
}

/// The names in directories.
package enum DirectoryNames {
    /// All names in a directory except `.` and `..`, in no particular order.
    package static func list(_ path: String, below directory: Int32) throws(SystemError) -> [String] {
        let number = try retryingOnInterrupt("open") { openat(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard let stream = fdopendir(number) else {
            let error = SystemError.last("fdopendir")
            close(number)
            throw error
        }
        // Closes the descriptor, too.
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

/// A file to which bytes are appended. It belongs to one thread.
package struct AppendedFile: ~Copyable {
    private let path: String
    private let descriptor: OwnedDescriptor

    /// Opens the file, and creates it if it does not exist.
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

    /// Appends bytes, without waiting for the disk.
    package func append(_ bytes: [UInt8]) throws(FileError) {
        do throws(SystemError) {
            try DescriptorIO.write(bytes, to: descriptor.number)
        } catch {
            throw FileError(path: path, action: "written", code: error.code)
        }
    }
}

/// Standard error of a command.
package enum StandardError {
    /// Writes `text`, and blocks while the reader of a pipe stalls. A full disk or a closed pipe loses the text: no other
    /// output is left to report that on.
    package static func write(_ text: String) {
        // A signal would end the command before it returns its exit code.
        signal(SIGPIPE, SIG_IGN)
        var text = text
        text.withUTF8 { try? DescriptorIO.write(UnsafeRawBufferPointer($0), to: STDERR_FILENO) }
    }
}
