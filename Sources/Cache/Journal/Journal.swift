internal import CLinux
internal import Glibc
internal import SystemIO

/// The append-only file that says what the cache holds, in the order in which it came to be.
///
/// See ``CacheDirectory`` for why it exists and ``JournalText`` for what a line looks like. A line's sequence is the file's
/// base plus its place in the file, so the next one is known without reading. Not synchronised: its owner has a lock.
struct Journal: ~Copyable, Sendable {
    static let fileName = "journal"

    private let file: OwnedDescriptor
    /// Tells this journal from any other, also from itself before it was rewritten.
    let identity: String
    private let base: Int64
    /// Where the first line after the header begins.
    let start: Int64
    /// Bytes of whole lines; where the next one goes.
    private(set) var end: Int64
    /// Blocks of the file system are held for the file up to here.
    private var reservedEnd: Int64 = 0

    private init(_ file: consuming OwnedDescriptor, identity: String, base: Int64, start: Int64, end: Int64) {
        self.file = file
        self.identity = identity
        self.base = base
        self.start = start
        self.end = end
    }

    /// Opens and locks the directory's journal. Creates an empty one if it is missing or its first line is damaged.
    ///
    /// The lock keeps a second server from writing to it even if the directory's lock file was deleted.
    ///
    /// - Throws: ``CacheError/directoryInUse(path:holder:)``, ``CacheError/directoryUnusable(path:cause:)``.
    static func open(in directory: CacheDirectory) throws(CacheError) -> Journal {
        let file = try directory.openLocked(fileName)
        do throws(SystemError) {
            guard let (identity, base, start) = try readHeader(file.number) else {
                let journal = try create(fileName + ".new", base: 0, in: directory)
                try directory.replaceFile(fileName, with: fileName + ".new")
                return journal
            }
            let end = try endOfWholeLines(file.number)
            return Journal(file, identity: identity, base: base, start: start, end: end)
        } catch {
            throw .directoryUnusable(path: directory.path, cause: error)
        }
    }

    /// Creates and locks a journal under another name, to replace the present one.
    static func create(_ name: String, base: Int64, in directory: CacheDirectory) throws(SystemError) -> Journal {
        let file = try directory.openFile(name, flags: O_RDWR | O_CREAT | O_TRUNC)
        guard clinux_try_lock(file.number) == 0 else { throw .last("flock(\(name))") }
        var generator = SystemRandomNumberGenerator()
        let identity = String(generator.next(), radix: 16)
        let header = JournalText.header(identity: identity, base: base)
        var journal = Journal(file, identity: identity, base: base, start: Int64(header.count), end: 0)
        try journal.write(header)
        try journal.sync()
        return journal
    }

    /// Releases the lock, also if a forked child still has the file open.
    func unlock() {
        clinux_unlock(file.number)
    }

    /// Whether the directory's journal is this file.
    func isInPlace(in directory: CacheDirectory) -> Bool {
        directory.leads(Self.fileName, to: file.number)
    }

    /// The sequence the next line will have.
    var nextSequence: Int64 { base + end }

    /// Appends entries as consecutive lines: all of them, or none when it fails.
    ///
    /// - Parameter durable: Whether they, and all before them, must outlive a loss of power.
    /// - Returns: The lines as written.
    mutating func append(_ entries: [JournalEntry], durable: Bool) throws(SystemError) -> [JournalLine] {
        var bytes: [UInt8] = []
        var lines: [JournalLine] = []
        for entry in entries {
            let line = JournalLine(sequence: nextSequence + Int64(bytes.count), entry: entry)
            bytes += JournalText.line(line)
            lines.append(line)
        }
        let start = end
        try write(bytes)
        if durable {
            do {
                try sync()
            } catch {
                end = start
                throw error
            }
        }
        reserve()
        return lines
    }

    /// Appends lines of an older journal, keeping their sequences.
    mutating func copy(_ lines: [JournalLine]) throws(SystemError) {
        try write(lines.flatMap { JournalText.line($0) })
    }

    /// Makes all lines durable.
    func sync() throws(SystemError) {
        let number = file.number
        try retryingOnInterrupt("fdatasync") { fdatasync(number) }
    }

    /// Whole lines from `offset` on, about `limit` bytes of them; damaged ones are left out.
    ///
    /// - Returns: The lines and the offset after them.
    func read(from offset: Int64, limit: Int) throws(SystemError) -> (lines: [JournalLine], next: Int64) {
        var limit = limit
        while true {
            let count = Int(min(Int64(limit), end - offset))
            guard count > 0 else { return ([], offset) }
            let bytes = try Self.read(file.number, at: offset, count: count)
            if let last = bytes.lastIndex(of: UInt8(ascii: "\n")) {
                let lines = bytes[..<last].split(separator: UInt8(ascii: "\n")).compactMap { JournalText.parse($0) }
                return (lines, offset + Int64(last) + 1)
            }
            // One line longer than the limit; where there is no line break at all, the rest is damaged.
            if offset + Int64(count) >= end { return ([], end) }
            limit *= 2
        }
    }

    /// Writes at the end. What is left of a failed write lies beyond `end` and is overwritten by the next.
    private mutating func write(_ bytes: [UInt8]) throws(SystemError) {
        let number = file.number
        let start = end
        var done = 0
        while done < bytes.count {
            done += try retryingOnInterrupt("write(journal)") {
                bytes.withUnsafeBytes { buffer in
                    let rest = UnsafeRawBufferPointer(rebasing: buffer[done...])
                    return pwrite(number, rest.baseAddress, rest.count, off_t(start) + off_t(done))
                }
            }
        }
        end += Int64(done)
    }

    /// Keeps room for the next lines, so that a purge can still be written down on a full disk.
    private mutating func reserve() {
        guard reservedEnd - end < Self.reserve / 2 else { return }
        // Some file systems cannot; then a full disk may refuse a purge, which says so.
        if clinux_reserve(file.number, end, Self.reserve) == 0 { reservedEnd = end + Self.reserve }
    }

    private static let reserve: Int64 = 256 * 1024

    private static func readHeader(_ number: Int32) throws(SystemError) -> (identity: String, base: Int64, start: Int64)? {
        let bytes = try read(number, at: 0, count: 256)
        guard let lineBreak = bytes.firstIndex(of: UInt8(ascii: "\n")),
            let (identity, base) = JournalText.parseHeader(bytes[..<lineBreak])
        else { return nil }
        return (identity, base, Int64(lineBreak) + 1)
    }

    /// A crash may leave half a line at the end; the next line is written over it.
    private static func endOfWholeLines(_ number: Int32) throws(SystemError) -> Int64 {
        var status = stat()
        guard fstat(number, &status) == 0 else { throw .last("fstat") }
        var end = Int64(status.st_size)
        while end > 0 {
            let start = max(0, end - 65_536)
            let bytes = try read(number, at: start, count: Int(end - start))
            if let last = bytes.lastIndex(of: UInt8(ascii: "\n")) {
                end = start + Int64(last) + 1
                break
            }
            end = start
        }
        guard ftruncate(number, off_t(end)) == 0 else { throw .last("ftruncate") }
        return end
    }

    private static func read(_ number: Int32, at offset: Int64, count: Int) throws(SystemError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let got = try retryingOnInterrupt("read(journal)") {
                bytes.withUnsafeMutableBytes { buffer in
                    pread(number, buffer.baseAddress! + done, count - done, off_t(offset) + off_t(done))
                }
            }
            if got == 0 { break }
            done += got
        }
        bytes.removeLast(count - done)
        return bytes
    }
}
