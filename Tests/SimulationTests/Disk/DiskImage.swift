import Glibc
import SystemIO
import TestSupport

/// The files that the next start of a process finds.
struct DiskImage {
    private let files: [UInt64: DurableFile]
    private let directories: [UInt64: [String: UInt64]]
    private let ending: SimulatedDisk.Ending
    private var changes: [UInt64: DurableFile.Change] = [:]
    private(set) var generator: SeededNumbers

    /// - Parameters:
    ///   - files: What is known of changed files, by inode.
    ///   - directories: The entries of directories when they were last synced, by inode.
    init(
        files: [UInt64: DurableFile], directories: [UInt64: [String: UInt64]], ending: SimulatedDisk.Ending,
        generator: SeededNumbers
    ) {
        self.files = files
        self.directories = directories
        self.ending = ending
        self.generator = generator
    }

    /// Adds a change to a file that no call has completed.
    mutating func apply(_ change: DurableFile.Change, to file: UInt64) {
        changes[file] = change
    }

    /// Writes the files below `path` to a new directory.
    mutating func copy(_ path: String, to newPath: String) throws {
        guard mkdir(newPath, 0o755) == 0 else { throw SystemError.last("mkdir") }
        for entry in try entries(of: path) {
            let target = "\(newPath)/\(entry.name)"
            if Files.isDirectory("\(path)/\(entry.name)") {
                try copy("\(path)/\(entry.name)", to: target)
            } else if let contents = contents(entry.inode, at: "\(path)/\(entry.name)") {
                try Files.write(contents, to: target)
            }
        }
    }

    /// The names in a directory. After a power loss, each name that has changed since the last sync leads to the old file or
    /// to the new one.
    private mutating func entries(of path: String) throws -> [(name: String, inode: UInt64)] {
        let (inode, present) = try DirectoryEntries.read(path)
        guard case .powerLoss(let survival) = ending else {
            return present.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        }
        let durable = directories[inode] ?? [:]
        return Set(present.keys).union(durable.keys).sorted().compactMap { name in
            if present[name] == durable[name] { return present[name].map { (name, $0) } }
            let inode = Double.random(in: 0..<1, using: &generator) < survival ? present[name] : durable[name]
            return inode.map { (name, $0) }
        }
    }

    /// - Parameter path: The present file of that name, which may be another one.
    private mutating func contents(_ inode: UInt64, at path: String) -> [UInt8]? {
        var contents: [UInt8]
        switch ending {
        case .powerLoss(let survival):
            if let file = files[inode] { return file.contents(survival: survival, using: &generator) }
            // It has not changed since the disk was mounted.
            contents = DirectoryEntries.contents(of: path)
        case .process:
            contents = DirectoryEntries.contents(of: path)
            if let change = changes[inode] { DurableFile.apply(change, to: &contents) }
        }
        return contents
    }
}

/// Directories and files as they are, read around the simulation.
enum DirectoryEntries {
    /// The names in an open directory with their inodes; nil if it is a file.
    static func read(_ descriptor: Int32) -> [String: UInt64]? {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return nil }
        return try? read("/proc/self/fd/\(descriptor)").entries
    }

    /// A directory's inode, and the names in it with theirs.
    static func read(_ path: String) throws -> (inode: UInt64, entries: [String: UInt64]) {
        var status = stat()
        guard stat(path, &status) == 0, let stream = opendir(path) else { throw SystemError.last("opendir") }
        defer { closedir(stream) }
        var entries: [String: UInt64] = [:]
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            if name != ".", name != ".." { entries[name] = UInt64(entry.pointee.d_ino) }
        }
        return (UInt64(status.st_ino), entries)
    }

    /// The entries of a directory and of all below it, by inode.
    static func tree(_ path: String) throws -> [UInt64: [String: UInt64]] {
        let (inode, entries) = try read(path)
        var tree = [inode: entries]
        for name in entries.keys where Files.isDirectory("\(path)/\(name)") {
            try tree.merge(Self.tree("\(path)/\(name)")) { $1 }
        }
        return tree
    }

    /// The paths of all files below a directory.
    static func files(_ path: String) throws -> [String] {
        try read(path).entries.keys.sorted().flatMap { name in
            let below = "\(path)/\(name)"
            return Files.isDirectory(below) ? try files(below) : [below]
        }
    }

    static func contents(of path: String) -> [UInt8] {
        (try? Files.read(path)) ?? []
    }

    static func removeTree(_ path: String) throws {
        for name in try read(path).entries.keys {
            if Files.isDirectory("\(path)/\(name)") {
                try removeTree("\(path)/\(name)")
            } else {
                unlink("\(path)/\(name)")
            }
        }
        rmdir(path)
    }
}
