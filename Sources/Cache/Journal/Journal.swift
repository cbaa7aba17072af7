internal import CLinux
internal import Glibc
internal import SystemIO

/// The append-only file that records every change of the cache, in order.
///
/// See ``CacheDirectory`` for why it exists and ``JournalText`` for its lines. A line's sequence is the base of the file plus the
/// line's offset, so the next sequence is known without reading. Not synchronised: its owner has a lock.
struct Journal: ~Copyable, Sendable {
    static let fileName = "journal"

    private let file: OwnedDescriptor
    /// Distinguishes this journal from any other, including itself before a rewrite.
    let identity: String
    private let base: Int64
    /// The offset of the first line after the header.
    let start: Int64
    /// The bytes of whole lines, and the offset of the next line.
    private(set) var end: Int64
    /// The offset up to which blocks of the file system are reserved.
    private var reservedEnd: Int64 = 0
    /// The directory in which the name of the file is not durable yet.
    private var unsyncedDirectory: CacheDirectory?

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
        let file = try directory.openLockedFile(fileName)
        do throws(SystemError) {
            guard let (identity, base, start) = try readHeader(file.number) else {
                let journal = try create(fileName + ".new", base: 0, in: directory)
                try directory.replaceFile(fileName, with: fileName + ".new")
                return journal
            }
            let end = try cutPartialLine(file.number)
            return Journal(file, identity: identity, base: base, start: start, end: end)
        } catch {
            throw .directoryUnusable(path: directory.path, cause: error)
        }
    }

    /// Creates and locks a journal under another name, to replace the current one.
    static func create(_ name: String, base: Int64, in directory: CacheDirectory) throws(SystemError) -> Journal {
        let file = try directory.openFile(name, flags: O_RDWR | O_CREAT | O_TRUNC)
        guard clinux_try_lock(file.number) == 0 else { throw .last("flock(\(name))") }
        var generator = SystemRandomNumberGenerator()
        let identity = String(generator.next(), radix: 16)
        let header = JournalText.header(identity: identity, base: base)
        var journal = Journal(file, identity: identity, base: base, start: Int64(header.count), end: 0)
        try journal.writeAtEnd(header)
        try journal.sync()
        return journal
    }

    /// Releases the lock, even if a forked child still has the file open.
    func unlock() {
        clinux_unlock(file.number)
    }

    /// Whether the directory's journal is this file.
    func isInPlace(in directory: CacheDirectory) -> Bool {
        directory.isFile(Self.fileName, file.number)
    }

    /// The sequence of the next line.
    var nextSequence: Int64 { base + end }

    /// Appends entries as consecutive lines: all of them, or none if it fails.
    ///
    /// - Parameter durable: Whether they, and all lines before them, must survive a power loss.
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
        try writeAtEnd(bytes)
        if durable {
            do {
                try sync()
            } catch {
                end = start
                throw error
            }
        }
        reserveBlocks()
        return lines
    }

    /// Appends lines of an older journal with their sequences.
    mutating func copy(_ lines: [JournalLine]) throws(SystemError) {
        try writeAtEnd(lines.flatMap { JournalText.line($0) })
    }

    /// Makes all lines durable.
    mutating func sync() throws(SystemError) {
        let number = file.number
        try retryingOnInterrupt("fdatasync") { fdatasync(number) }
        try unsyncedDirectory?.syncNames()
        unsyncedDirectory = nil
    }

    /// Renames the file to that of the directory's journal, which it replaces. ``sync()`` makes that durable.
    ///
    /// - Parameter name: The present name.
    mutating func moveInPlace(from name: String, in directory: CacheDirectory) throws(SystemError) {
        try directory.renameFile(name, to: Self.fileName)
        unsyncedDirectory = directory
    }

    /// Reads whole lines from `offset` on, about `limit` bytes of them. Damaged lines are left out.
    ///
    /// - Returns: The lines and the offset after them.
    func read(from offset: Int64, limit: Int) throws(SystemError) -> (lines: [JournalLine], next: Int64) {
        var limit = limit
        while true {
            let count = Int(min(Int64(limit), end - offset))
            guard count > 0 else { return ([], offset) }
            let bytes = try Self.readBytes(file.number, at: offset, count: count)
            if let last = bytes.lastIndex(of: UInt8(ascii: "\n")) {
                let lines = bytes[..<last].split(separator: UInt8(ascii: "\n")).compactMap { JournalText.parse($0) }
                return (lines, offset + Int64(last) + 1)
            }
            // A line longer than the limit. If there is no line break up to the end, the rest is damaged.
            if offset + Int64(count) >= end { return ([], end) }
            limit *= 2
        }
    }

    /// The rest of a failed write lies beyond `end`, and the next write overwrites it.
    private mutating func writeAtEnd(_ bytes: [UInt8]) throws(SystemError) {
        try DescriptorIO.write(bytes, to: file.number, at: Int(end))
        end += Int64(bytes.count)
    }

    /// Reserves blocks for the next lines, so that a purge can still be recorded on a full disk.
    private mutating func reserveBlocks() {
        guard reservedEnd - end < Self.reserve / 2 else { return }
        // Not every file system supports it. There, a purge on a full disk may fail, which its caller is told.
        if clinux_reserve(file.number, end, Self.reserve) == 0 { reservedEnd = end + Self.reserve }
    }

    private static let reserve: Int64 = 256 * 1024

    private static func readHeader(_ number: Int32) throws(SystemError) -> (identity: String, base: Int64, start: Int64)? {
        let bytes = try readBytes(number, at: 0, count: 256)
        guard let lineBreak = bytes.firstIndex(of: UInt8(ascii: "\n")),
            let (identity, base) = JournalText.parseHeader(bytes[..<lineBreak])
        else { return nil }
        return (identity, base, Int64(lineBreak) + 1)
    }

    /// Cuts off the part of a line that a crash may have left at the end.
    ///
    /// - Returns: The length of the file.
    private static func cutPartialLine(_ number: Int32) throws(SystemError) -> Int64 {
        var status = stat()
        guard fstat(number, &status) == 0 else { throw .last("fstat") }
        var end = Int64(status.st_size)
        while end > 0 {
            let start = max(0, end - 65_536)
            let bytes = try readBytes(number, at: start, count: Int(end - start))
            if let last = bytes.lastIndex(of: UInt8(ascii: "\n")) {
                end = start + Int64(last) + 1
                break
            }
            end = start
        }
        guard ftruncate(number, off_t(end)) == 0 else { throw .last("ftruncate") }
        return end
    }

    private static func readBytes(_ number: Int32, at offset: Int64, count: Int) throws(SystemError) -> [UInt8] {
        try DescriptorIO.read(count, from: number, at: Int(offset))
    }
}
