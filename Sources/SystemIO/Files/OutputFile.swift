internal import CLinux
internal import Glibc

/// A file that is written as a whole, at a path that a user names. Every function blocks.
///
/// A regular file, even at the end of symbolic links, is replaced by a new one with its permissions and, as far as the process may, its
/// owner: other processes see the old content or the new one. The bytes are written to a device, to a pipe, and to the file of standard
/// output or standard error once they are complete.
package struct OutputFile: Sendable {
    private enum Place {
        /// A new file that replaces `path`. Until it is complete it has no name, or else the name `partial`, in the directory of `path`.
        case replacement(path: String, partial: String, isNamed: Bool)
        /// The device or pipe at the path.
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
        try self.init(path, mayBeUnnamed: true)
    }

    /// - Parameter mayBeUnnamed: False stands for a file system without files that have no name, in tests.
    init(_ path: String, mayBeUnnamed: Bool) throws(SystemError) {
        let status = path == "-" ? nil : try Self.status(of: path)
        let standard = path == "-" ? STDOUT_FILENO : status.flatMap(Self.standardDescriptor)
        guard standard == nil, status.map({ $0.st_mode & S_IFMT == S_IFREG }) ?? true else {
            let number = clinux_memfd_create("gifreel-output")
            guard number >= 0 else { throw .last("memfd_create") }
            descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
            place = standard.map(Place.descriptor) ?? .stream(path: path)
            return
        }
        let target = status == nil ? path : Self.resolved(path)
        let directory = Files.directory(of: target)
        // Shorter than the longest name, which the target may have.
        let partial = "\(directory)/.gifreel-\(getpid())-\(UInt32.random(in: .min ... .max))"
        let mode: mode_t = status == nil ? 0o644 : 0o600
        let unnamed = mayBeUnnamed ? Self.unnamedFile(in: directory, mode) : nil
        let number = unnamed ?? clinux_openat(AT_FDCWD, partial, O_RDWR | O_CREAT | O_EXCL, mode)
        guard number >= 0 else { throw .last("open") }
        descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
        place = .replacement(path: target, partial: partial, isNamed: unnamed == nil)
        guard let status, !Self.setOwner(of: number, like: status) else { return }
        let error = SystemError.last("fchmod")
        discard()
        throw error
    }

    /// The status of the file at the path; nil if there is none. Throws for a path that no file can have, before any work is done.
    private static func status(of path: String) throws(SystemError) -> stat? {
        var status = stat()
        if stat(path, &status) == 0 { return status }
        guard errno == ENOENT else { throw .last("stat") }
        // Only a directory can have such a name.
        guard !path.hasSuffix("/") else { throw SystemError("open", code: EISDIR) }
        return nil
    }

    /// A file without a name, which vanishes with the process. Nil if the file system has none, or if it could not get a name
    /// afterwards, for which `/proc` is needed.
    private static func unnamedFile(in directory: String, _ mode: mode_t) -> Int32? {
        let number = clinux_open_tmpfile(directory, mode)
        guard number >= 0 else { return nil }
        if Files.exists("/proc/self/fd/\(number)") { return number }
        close(number)
        return nil
    }

    /// Gives a file the owner, the group and the permissions of another. Without the right to set the group, the group gets no
    /// permissions.
    ///
    /// - Returns: False if the permissions cannot be set.
    private static func setOwner(of number: Int32, like status: stat) -> Bool {
        var own = stat()
        guard fstat(number, &own) == 0 else { return false }
        // A service may be forbidden to call chown(2) at all.
        let hasGroup =
            (own.st_uid == status.st_uid && own.st_gid == status.st_gid)
            || fchown(number, status.st_uid, status.st_gid) == 0
            || own.st_gid == status.st_gid || fchown(number, .max, status.st_gid) == 0
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
        case .replacement(let path, let partial, let isNamed):
            // linkat(2) does not replace a file, so the file gets the name by which rename(2) moves it.
            guard isNamed || clinux_link_tmpfile(descriptor.number, AT_FDCWD, partial) == 0 else { throw .last("linkat") }
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

    /// Removes the bytes, even after ``complete()`` has failed.
    package func discard() {
        if case .replacement(_, let partial, _) = place { unlink(partial) }
    }

    /// The path at the end of symbolic links.
    private static func resolved(_ path: String) -> String {
        guard let text = realpath(path, nil) else { return path }
        defer { free(text) }
        return String(cString: text)
    }
}
