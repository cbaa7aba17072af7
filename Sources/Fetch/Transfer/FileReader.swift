internal import CLinux
internal import Glibc
internal import SystemIO

/// A reader of a source that is a file of this machine. Blocks.
///
/// Nothing outside the directory is opened: neither by `..` nor through a symbolic link (``clinux_open_beneath(_:_:)``). Only regular
/// files are read; a fifo or a device counts as missing.
struct FileReader: Sendable {
    let place: FileAddress
    /// The largest file in bytes.
    let limit: Int

    /// Reads the file, unless its validator is still the known one.
    ///
    /// - Parameters:
    ///   - arriving: Shows the bytes while they are read.
    ///   - onRead: Receives the numbers of bytes.
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
        // A file that is written to meanwhile is neither the old version nor the new one.
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
        let number = clinux_open_beneath(directory.number, place.path)
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
        var sink = BodySink(limit: limit)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.readSize, alignment: 16)
        defer { buffer.deallocate() }
        var offset = 0
        while true {
            let count: Int
            do throws(SystemError) {
                count = try file.read(into: buffer, at: offset)
            } catch {
                throw .unreachable(cause: error.description)
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

    /// An entity tag of the inode, the size and the times of the last changes of contents and of the inode. The second time changes even
    /// if a program sets the first one back.
    private static func etag(_ status: stat) -> String {
        let numbers = [
            UInt64(status.st_ino), UInt64(truncatingIfNeeded: status.st_size), time(status.st_mtim), time(status.st_ctim),
        ]
        return "\"" + numbers.map { String($0, radix: 36) }.joined(separator: "-") + "\""
    }

    private static func time(_ time: timespec) -> UInt64 {
        UInt64(truncatingIfNeeded: time.tv_sec) &* 1_000_000_000 &+ UInt64(truncatingIfNeeded: time.tv_nsec)
    }

    /// - Parameter isDirectory: Whether the mount's directory is at fault and not the requested path.
    private static func error(_ error: SystemError, isDirectory: Bool) -> FetchError {
        switch error.code {
        // A symbolic link that leads out of the directory counts as missing.
        case ENOENT, ENOTDIR, ELOOP, EXDEV, ENAMETOOLONG, EINVAL, EAGAIN, ENXIO:
            isDirectory ? .unreachable(cause: error.description) : .notFound
        case EMFILE, ENFILE, ENOMEM: .exhausted(cause: error.description)
        default: .unreachable(cause: error.description)
        }
    }
}
