internal import CLinux
internal import Glibc

/// A file that is written as a whole, at a path that a user names. Every function blocks.
///
/// A regular file, also at the end of symbolic links, is replaced by a new one with its permissions and, as far as the process may, its
/// owner: other processes see the old content or the new one. A device, a pipe, and what standard output or standard error is open on get
/// the bytes once they are complete.
package struct OutputFile: Sendable {
    private enum Place {
        /// A file beside `path`, which replaces it.
        case replacement(partial: String, path: String)
        /// What already exists at the path.
        case stream(path: String)
        /// Standard output or standard error.
        case descriptor(Int32)
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
        let standard = path == "-" ? STDOUT_FILENO : exists ? Self.standardDescriptor(of: status) : nil
        guard standard == nil, !exists || status.st_mode & S_IFMT == S_IFREG else {
            let number = clinux_memfd_create("gifreel-output")
            guard number >= 0 else { throw .last("memfd_create") }
            descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
            place = standard.map(Place.descriptor) ?? .stream(path: path)
            return
        }
        let target = exists ? Self.resolved(path) : path
        let partial = "\(target).part-\(getpid())-\(UInt32.random(in: .min ... .max))"
        let number = clinux_openat(AT_FDCWD, partial, O_RDWR | O_CREAT | O_EXCL, exists ? 0o600 : 0o644)
        guard number >= 0 else { throw .last("open") }
        descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
        place = .replacement(partial: partial, path: target)
        guard exists, !Self.setOwner(of: number, like: status) else { return }
        let error = SystemError.last("fchmod")
        discard()
        throw error
    }

    /// Gives a file the owner, the group and the permissions of another. Without the right to set the group, the group gets no
    /// permissions.
    ///
    /// - Returns: False if the permissions cannot be set.
    private static func setOwner(of number: Int32, like status: stat) -> Bool {
        let hasGroup = fchown(number, status.st_uid, status.st_gid) == 0 || fchown(number, .max, status.st_gid) == 0
        return fchmod(number, status.st_mode & (hasGroup ? 0o777 : 0o707)) == 0
    }

    /// Standard output or standard error, if it is open on this file. `/dev/stdout` leads to the file of a redirection, which the shell
    /// goes on to write.
    private static func standardDescriptor(of status: stat) -> Int32? {
        [STDOUT_FILENO, STDERR_FILENO].first { number in
            var open = stat()
            return fstat(number, &open) == 0 && open.st_dev == status.st_dev && open.st_ino == status.st_ino
        }
    }

    /// Puts the bytes at the path.
    package func complete() throws(SystemError) {
        switch place {
        case .replacement(let partial, let path):
            guard rename(partial, path) == 0 else { throw .last("rename") }
        case .descriptor(let number):
            try DescriptorIO.write(try descriptor.readAll(), to: number)
        case .stream(let path):
            let bytes = try descriptor.readAll()
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
