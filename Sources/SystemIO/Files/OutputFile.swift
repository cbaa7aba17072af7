internal import CLinux
internal import Glibc

/// A file that is written as a whole to a path chosen by the user. Every function blocks.
///
/// A regular file, even at the end of symbolic links, is replaced by a new file with the same permissions and, if the process
/// may set it, the same owner. Other processes see either the old or the new content. For a device, a pipe, or the file of
/// standard output or standard error, the bytes are written once they are complete.
package struct OutputFile: Sendable {
    private enum Place {
        /// A new file that replaces `path`. Until complete, it is unnamed or named `partial`, in the same directory.
        case replacement(path: String, partial: String, isNamed: Bool)
        /// The device or pipe at the path.
        case stream(path: String)
        /// Standard output or standard error.
        case descriptor(Int32)
    }

    /// The file that receives the bytes: a regular file or a memfd, open for reading and writing.
    package let descriptor: SharedDescriptor
    private let place: Place

    /// Creates a file for the bytes. The path does not change before ``complete()``.
    ///
    /// - Parameter path: The path of the file; `-` means standard output.
    package init(_ path: String) throws(SystemError) {
        try self.init(path, mayBeUnnamed: true)
    }

    /// - Parameter mayBeUnnamed: Pass false in tests to simulate a file system without unnamed files.
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
        // Shorter than NAME_MAX, even if the target's name is not.
        let partial = "\(directory)/.gifreel-\(getpid())-\(UInt32.random(in: .min ... .max))"
        let mode: mode_t = status == nil ? 0o644 : 0o600
        let isNamed = !mayBeUnnamed || !Files.canNameLater(partial)
        let number =
            isNamed
            ? clinux_openat(AT_FDCWD, partial, O_RDWR | O_CREAT | O_EXCL, mode) : clinux_open_tmpfile(directory, mode)
        guard number >= 0 else { throw .last("open") }
        descriptor = SharedDescriptor(OwnedDescriptor(taking: number))
        place = .replacement(path: target, partial: partial, isNamed: isNamed)
        guard let status, !Self.setOwner(of: number, like: status) else { return }
        let error = SystemError.last("fchmod")
        discard()
        throw error
    }

    /// Returns the status of the file at the path; nil if no file exists. Throws early if the path cannot name a file.
    private static func status(of path: String) throws(SystemError) -> stat? {
        var status = stat()
        if stat(path, &status) == 0 { return status }
        guard errno == ENOENT else { throw .last("stat") }
        // Only a directory can have a path that ends with a slash.
        guard !path.hasSuffix("/") else { throw SystemError("open", code: EISDIR) }
        return nil
    }

    /// Copies the owner, the group and the permissions from `status` to a file. If the group cannot be set, the group gets no
    /// permissions. Returns false if the permissions cannot be set.
    private static func setOwner(of number: Int32, like status: stat) -> Bool {
        var own = stat()
        guard fstat(number, &own) == 0 else { return false }
        // The sandbox of a service may forbid chown(2) altogether.
        let hasGroup =
            (own.st_uid == status.st_uid && own.st_gid == status.st_gid)
            || fchown(number, status.st_uid, status.st_gid) == 0
            || own.st_gid == status.st_gid || fchown(number, .max, status.st_gid) == 0
        return fchmod(number, status.st_mode & (hasGroup ? 0o777 : 0o707)) == 0
    }

    /// Returns standard output or standard error if it is open on this file. `/dev/stdout` can resolve to the target of a shell
    /// redirection, which the shell continues to write.
    private static func standardDescriptor(of status: stat) -> Int32? {
        [STDOUT_FILENO, STDERR_FILENO].first { number in
            var open = stat()
            return fstat(number, &open) == 0 && open.st_dev == status.st_dev && open.st_ino == status.st_ino
        }
    }

    /// Replaces the file, or writes the bytes to the device, pipe or standard descriptor.
    package func complete() throws(SystemError) {
        switch place {
        case .replacement(let path, let partial, let isNamed):
            // linkat(2) cannot replace a file, so the file is first linked as `partial`, which rename(2) then moves.
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

    /// Discards the bytes, even after ``complete()`` has failed.
    package func discard() {
        if case .replacement(_, let partial, _) = place { unlink(partial) }
    }

    /// Resolves symbolic links in the path.
    private static func resolved(_ path: String) -> String {
        guard let text = realpath(path, nil) else { return path }
        defer { free(text) }
        return String(cString: text)
    }
}
