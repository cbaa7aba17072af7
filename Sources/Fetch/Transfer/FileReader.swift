internal import CLinux
internal import Glibc
internal import SystemIO

/// A blocking reader of a source that is a file on this machine.
///
/// Never opens a file outside the directory, neither through `..` nor through a symbolic link (``clinux_open_beneath(_:_:)``).
/// Reads only regular files; a FIFO or a device counts as missing.
struct FileReader: Sendable {
    let place: FileAddress
    /// The largest file in bytes.
    let limit: Int

    /// Reads the file, unless its validator is unchanged.
    ///
    /// - Parameters:
    ///   - arriving: Receives the bytes as they are read.
    ///   - onRead: Called with the number of bytes of each read.
    func read(
        _ validators: SourceValidators, _ arriving: ArrivingSource, _ onRead: (Int) -> Void
    ) throws(FetchError) -> FetchOutcome {
        let start = ContinuousClock.now
        let file = try open()
        let before = try status(of: file)
        guard before.st_mode & S_IFMT == S_IFREG else { throw .notFound }
        let current = SourceValidators(etag: Self.etag(before))
        if let known = validators.etag, known == current.etag {
            return .notModified(
                UnmodifiedSource(
                    validators: current, cacheDirectives: CacheDirectives(), duration: ContinuousClock.now - start))
        }
        let size = Int(before.st_size)
        guard size <= limit else { throw .tooLarge(limit: limit, declared: size) }
        let body = try copy(file, size, arriving, onRead)
        // A file that changes while it is read is neither the old version nor the new one.
        guard Self.etag(try status(of: file)) == current.etag else {
            throw .failed(.cutShort(cause: "the file changed while it was read"))
        }
        return .fetched(
            FetchedSource(
                bytes: body.bytes, count: body.count, sha256: body.sha256, validators: current,
                cacheDirectives: CacheDirectives(), duration: ContinuousClock.now - start))
    }

    /// Opens the file below the directory.
    private func open() throws(FetchError) -> SharedDescriptor {
        let root = clinux_open_directory(place.directory)
        guard root >= 0 else { throw Self.error(SystemError.last("open"), isDirectory: true) }
        let directory = OwnedDescriptor(taking: root)
        let number = (place.path + [0]).withUnsafeBytes {
            clinux_open_beneath(directory.number, $0.assumingMemoryBound(to: CChar.self).baseAddress)
        }
        guard number >= 0 else { throw Self.error(SystemError.last("openat2"), isDirectory: false) }
        return SharedDescriptor(OwnedDescriptor(taking: number))
    }

    private func status(of file: SharedDescriptor) throws(FetchError) -> stat {
        var status = stat()
        guard fstat(file.number, &status) == 0 else { throw .unreachable(cause: SystemError.last("fstat").description) }
        return status
    }

    private func copy(
        _ file: SharedDescriptor, _ size: Int, _ arriving: ArrivingSource, _ onRead: (Int) -> Void
    ) throws(FetchError) -> FetchedBody {
        var sink = BodySink(limit: limit, acceptsImages: arriving.acceptsImages)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.readSize, alignment: 16)
        defer { buffer.deallocate() }
        var offset = 0
        while true {
            let count = try translating(try file.read(into: buffer, at: offset)) { (error: SystemError) in
                FetchError.unreachable(cause: error.description)
            }
            if count == 0 { break }
            offset += count
            onRead(count)
            guard let arrived = try sink.append(UnsafeRawBufferPointer(rebasing: buffer[..<count])) else { continue }
            if arrived.isFirst {
                arriving.begin(ArrivingSource.Start(file: arrived.file, length: size), count: arrived.count)
            } else {
                arriving.advance(to: arrived.count)
            }
        }
        return try sink.finish()
    }

    private static let readSize = 256 << 10

    /// Returns an entity tag of the inode number, the size, the modification time and the change time. The change time advances
    /// even if a program sets the modification time back.
    private static func etag(_ status: stat) -> String {
        let numbers = [
            UInt64(status.st_ino), UInt64(truncatingIfNeeded: status.st_size), time(status.st_mtim), time(status.st_ctim),
        ]
        return "\"" + numbers.map { String($0, radix: 36) }.joined(separator: "-") + "\""
    }

    private static func time(_ time: timespec) -> UInt64 {
        UInt64(truncatingIfNeeded: time.tv_sec) &* 1_000_000_000 &+ UInt64(truncatingIfNeeded: time.tv_nsec)
    }

    /// - Parameter isDirectory: Whether the mount's directory caused the error, not the requested path.
    private static func error(_ error: SystemError, isDirectory: Bool) -> FetchError {
        switch error.code {
        // A symbolic link that leads out of the directory counts as missing.
        case ENOENT, ENOTDIR, ELOOP, EXDEV, ENAMETOOLONG, EINVAL, ENXIO:
            isDirectory ? .unreachable(cause: error.description) : .notFound
        case EMFILE, ENFILE, ENOMEM: .exhausted(cause: error.description)
        default: .unreachable(cause: error.description)
        }
    }
}
