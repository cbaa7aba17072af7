internal import CLinux
internal import Glibc
internal import SystemIO

/// The queue's directory on disk. Every function blocks; they must not run at the same time.
///
///     <directory>/
///       lock                   locked with flock(2) by the process that uses the queue
///       0000000000000017.entry the change to send (see QueueEntry): written under another name, synced and renamed, never partial
///       0000000000000017.data  the rendition of a put: a hard link to the cache's file, or a copy
///
/// The entry is written after its data and removed before it: an entry implies its data, and data without an entry is debris of a
/// crash, which the next start removes. A hard link costs no space while the cache has the file as well, and keeps the bytes when
/// the cache evicts it.
final class QueueDirectory {
    let path: String
    private let root: SharedDescriptor
    private let lock: OwnedDescriptor

    /// Opens the directory, which is created if it does not exist, and locks it.
    init(path: String) throws(StoreError) {
        self.path = path
        do throws(FileError) { try Files.createDirectory(path) } catch { throw .file(SystemError("mkdir", code: error.code)) }
        let number = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { throw .file(.last("open(\(path))")) }
        root = SharedDescriptor(OwnedDescriptor(taking: number))
        let lockNumber = clinux_openat(number, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard lockNumber >= 0 else { throw .file(.last("open(lock)")) }
        lock = OwnedDescriptor(taking: lockNumber)
        guard clinux_try_lock(lockNumber) == 0 else { throw .file(.last("flock(\(path)/lock)")) }
    }

    /// Whether the path still leads to this directory.
    var isAtItsPath: Bool {
        var (own, found) = (stat(), stat())
        return fstat(root.number, &own) == 0 && stat(path, &found) == 0
            && own.st_dev == found.st_dev && own.st_ino == found.st_ino
    }

    /// Releases the lock on the directory. Nothing in the directory may be changed afterwards.
    func unlock() {
        clinux_unlock(lock.number)
    }

    /// The entries on disk in their order. Removes debris, and entries that are damaged or without data.
    ///
    /// - Throws: ``StoreError/file(_:)`` if an entry cannot be read at the moment: it may be a deletion that was confirmed.
    func load() throws(StoreError) -> [QueueEntry] {
        var entries: [QueueEntry] = []
        var data: Set<UInt64> = []
        var debris: [String] = []
        for name in try names() where name != "lock" {
            let parts = name.split(separator: ".")
            // Other programs' files stay.
            guard parts.count == 2, let sequence = UInt64(parts[0]), Self.digits(sequence) == parts[0] else { continue }
            switch parts[1] {
            case "part": debris.append(name)
            case "data": data.insert(sequence)
            case "entry":
                if let entry = try read(sequence) { entries.append(entry) } else { debris.append(name) }
            default: break
            }
        }
        entries.removeAll { entry in
            guard case .put = entry.change, !data.contains(entry.sequence) else { return false }
            debris.append(Self.entryName(entry.sequence))
            return true
        }
        for sequence in data.subtracting(entries.map(\.sequence)) { debris.append(Self.dataName(sequence)) }
        for name in debris { unlinkat(root.number, name, 0) }
        return entries.sorted { $0.sequence < $1.sequence }
    }

    /// Adds an entry durably.
    ///
    /// - Parameter file: The rendition of a put.
    func add(_ entry: QueueEntry, _ file: SharedDescriptor?) throws(StoreError) {
        do throws(SystemError) {
            if let file { try store(file, as: Self.dataName(entry.sequence)) }
            let descriptor = try writePartial(entry)
            try retryingOnInterrupt("fdatasync") { fdatasync(descriptor.number) }
            try rename(Self.partialName(entry.sequence), to: Self.entryName(entry.sequence))
            try retryingOnInterrupt("fsync") { fsync(root.number) }
        } catch {
            remove(entry)
            throw .file(error)
        }
    }

    /// Gives a delete the file of another one of the same name, durably.
    ///
    /// - Returns: False if that has no file, or the disk fails.
    func takeOver(_ former: QueueEntry, by entry: QueueEntry) -> Bool {
        do throws(SystemError) {
            try rename(Self.entryName(former.sequence), to: Self.entryName(entry.sequence))
            try retryingOnInterrupt("fsync") { fsync(root.number) }
            return true
        } catch {
            return false
        }
    }

    /// Replaces a directory that was lost: removes the entries that were found in this one, except the deletes to keep, and adds the
    /// deletes of the lost one. Afterwards all deletes are durable. A crash in between loses none of the deletes that were found.
    ///
    /// - Parameters:
    ///   - kept: Deletes that were found, and the entries that they become. Their new sequences are behind all that were found.
    ///   - deletes: The deletes of the lost directory. Their sequences may be those of entries that were found.
    func replaceEntries(
        _ found: [QueueEntry], keeping kept: [(found: QueueEntry, entry: QueueEntry)], adding deletes: [QueueEntry]
    ) throws(StoreError) {
        for entry in found where entry.change != .delete { remove(entry) }
        do throws(SystemError) {
            for (old, new) in kept { try rename(Self.entryName(old.sequence), to: Self.entryName(new.sequence)) }
            try retryingOnInterrupt("fsync") { fsync(root.number) }
            try add(deletes)
        } catch {
            throw .file(error)
        }
        let added = Set(deletes.map(\.sequence))
        for entry in found where entry.change == .delete && !added.contains(entry.sequence) { remove(entry) }
    }

    /// Adds many deletes durably. They are synced together, because two syncs each would hold up the queue for minutes.
    private func add(_ deletes: [QueueEntry]) throws(SystemError) {
        guard !deletes.isEmpty else { return }
        for entry in deletes { _ = try writePartial(entry) }
        try retryingOnInterrupt("syncfs") { clinux_sync_filesystem(root.number) }
        for entry in deletes { try rename(Self.partialName(entry.sequence), to: Self.entryName(entry.sequence)) }
        try retryingOnInterrupt("fsync") { fsync(root.number) }
    }

    /// Removes an entry. It may return after a crash, which is harmless: puts and deletes can be repeated.
    func remove(_ entry: QueueEntry) {
        for name in [Self.entryName(entry.sequence), Self.partialName(entry.sequence), Self.dataName(entry.sequence)] {
            unlinkat(root.number, name, 0)
        }
    }

    /// The rendition of a put.
    func openData(of entry: QueueEntry) throws(StoreError) -> SharedDescriptor {
        let number = clinux_openat(root.number, Self.dataName(entry.sequence), O_RDONLY | O_CLOEXEC, 0)
        guard number >= 0 else { throw .file(.last("open(data)")) }
        return SharedDescriptor(OwnedDescriptor(taking: number))
    }

    // MARK: Files

    /// Reads an entry; nil if it is damaged.
    private func read(_ sequence: UInt64) throws(StoreError) -> QueueEntry? {
        let name = Self.entryName(sequence)
        let number = clinux_openat(root.number, name, O_RDONLY | O_CLOEXEC, 0)
        guard number >= 0 else { throw .file(.last("open(\(path)/\(name))")) }
        let file = SharedDescriptor(OwnedDescriptor(taking: number))
        do throws(SystemError) {
            guard try file.size() <= 128 << 10 else { return nil }
            return QueueEntry(sequence: sequence, encoded: try file.readAll())
        } catch {
            throw .file(SystemError("read(\(path)/\(name))", code: error.code))
        }
    }

    /// Links the file to a name in the directory, or copies it if it is on another file system or has no name any more.
    private func store(_ file: SharedDescriptor, as name: String) throws(SystemError) {
        if clinux_link_tmpfile(file.number, root.number, name) == 0 { return }
        let copy = try create(name)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { buffer.deallocate() }
        var offset = 0
        while true {
            let count = try file.read(into: buffer, at: offset)
            if count == 0 { break }
            try DescriptorIO.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), to: copy.number)
            offset += count
        }
        try retryingOnInterrupt("fdatasync") { fdatasync(copy.number) }
    }

    private func writePartial(_ entry: QueueEntry) throws(SystemError) -> OwnedDescriptor {
        let descriptor = try create(Self.partialName(entry.sequence))
        try DescriptorIO.write(entry.encoded, to: descriptor.number)
        return descriptor
    }

    private func rename(_ name: String, to other: String) throws(SystemError) {
        try retryingOnInterrupt("rename") { renameat(root.number, name, root.number, other) }
    }

    private func create(_ name: String) throws(SystemError) -> OwnedDescriptor {
        let number = clinux_openat(root.number, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard number >= 0 else { throw .last("open") }
        return OwnedDescriptor(taking: number)
    }

    private func names() throws(StoreError) -> [String] {
        let number = clinux_openat(root.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        guard number >= 0 else { throw .file(.last("open(\(path))")) }
        guard let stream = fdopendir(number) else {
            let error = SystemError.last("fdopendir")
            close(number)
            throw .file(error)
        }
        // Closes the descriptor, too.
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else {
                if errno != 0 { throw .file(.last("readdir")) }
                return names
            }
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) { name in
                    name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                })
        }
    }

    private static func entryName(_ sequence: UInt64) -> String { digits(sequence) + ".entry" }
    private static func partialName(_ sequence: UInt64) -> String { digits(sequence) + ".part" }
    private static func dataName(_ sequence: UInt64) -> String { digits(sequence) + ".data" }

    /// Sixteen decimal digits or more, so that names sort like numbers.
    private static func digits(_ sequence: UInt64) -> String {
        let text = String(sequence)
        return String(repeating: "0", count: max(0, 16 - text.utf8.count)) + text
    }
}
