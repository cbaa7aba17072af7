internal import CLinux
internal import Glibc

/// A file that is written as a whole, at a path that a user names. Every function blocks.
///
/// A regular file, also at the end of symbolic links, is replaced by a new one with its permissions: other processes see the old
/// content or the new one. A device or a pipe gets the bytes once they are complete.
package struct OutputFile: Sendable {
    private enum Place {
        /// A file beside `path`, which replaces it.
        case replacement(partial: String, path: String)
        /// What already exists at the path; nil for standard output.
        case stream(path: String?)
    }

    /// Gets the bytes: a regular file or memory, open for reading and writing.
    package let descriptor: SharedDescriptor
    private let place: Place

    /// Creates a file for the bytes. Nothing changes at the path before ``complete()``.
    ///
    /// - Parameter path: `-` is standard output.
    package init(_ path: String) throws(SystemError) {
        var status = stat()
        let exists = path != "-" && stat(path, &status) == 0
        guard path != "-", !exists || status.st_mode & S_IFMT == S_IFREG else {
            let number = clinux_memfd_create("gifreel-output")
            guard number >= 0 else { throw .last("memfd_create") }
            descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
            place = .stream(path: path == "-" ? nil : path)
            return
        }
        let permissions = status.st_mode & 0o7777
        let target = exists ? Self.resolved(path) : path
        let partial = "\(target).part-\(getpid())-\(UInt32.random(in: .min ... .max))"
        let number = clinux_openat(AT_FDCWD, partial, O_RDWR | O_CREAT | O_EXCL, exists ? 0o600 : 0o644)
        guard number >= 0 else { throw .last("open") }
        descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
        place = .replacement(partial: partial, path: target)
        guard exists, fchmod(number, permissions) != 0 else { return }
        let error = SystemError.last("fchmod")
        discard()
        throw error
    }

    /// Puts the bytes at the path.
    package func complete() throws(SystemError) {
        switch place {
        case .replacement(let partial, let path):
            guard rename(partial, path) == 0 else { throw .last("rename") }
        case .stream(let path):
            let bytes = try descriptor.readAll()
            guard let path else { return try DescriptorIO.write(bytes, to: STDOUT_FILENO) }
            let number = clinux_openat(AT_FDCWD, path, O_WRONLY, 0)
            guard number >= 0 else { throw .last("open") }
            let stream = OwnedDescriptor(taking: number)
            try DescriptorIO.write(bytes, to: stream.number)
        }
    }

    /// Removes the bytes.
    package func discard() {
        if case .replacement(let partial, _) = place { unlink(partial) }
    }

    /// The path at the end of symbolic links.
    private static func resolved(_ path: String) -> String {
        guard let text = realpath(path, nil) else { return path }
        defer { free(text) }
        return String(cString: text)
    }
}
