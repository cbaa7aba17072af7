import CSystemCalls
import Glibc
import Synchronization
import SystemIO
import TestSupport

/// A disk below the real calls of the cache and of SQLite: a directory in memory, a record of what would survive a power loss, and
/// faults.
///
/// The calls reach it through `CSystemCalls`. What the files contain is what a program sees; ``DurableFile`` and the entries of
/// synced directories are what the disk has. `@unchecked Sendable`: only one thread of a simulation runs at a time.
final class SimulatedDisk: @unchecked Sendable {
    /// Probabilities per call.
    struct Faults: Sendable {
        /// `EIO` from a sync of a directory.
        var failedNameSync = 0.0
        /// `EIO` from a sync of a file, whose changes so far then never become durable.
        var failedFileSync = 0.0
        /// `EIO` from the removal of a name.
        var failedRemoval = 0.0
        /// `EIO` from any call.
        var failure = 0.0
        /// `ENOSPC` from calls that need space.
        var full = 0.0
        /// A sync that reports success and does nothing.
        var lostSync = 0.0
        /// Whether every read at an offset, and every inspection of a name, fails with `EIO`.
        var failsReads = false
    }

    /// The disk whose calls are simulated.
    private static let current = Mutex<SimulatedDisk?>(nil)

    let root: String
    var faults = Faults()
    /// The number of calls until the crash; nil for none.
    var callsUntilCrash: Int?
    /// Whether the process has crashed: no call has an effect any more.
    private(set) var isDead = false
    /// The number of calls so far.
    private(set) var calls = 0
    private var generator: SeededNumbers
    private var files: [UInt64: DurableFile] = [:]
    /// The entries of directories when they were last synced, by the directory's inode.
    private var directories: [UInt64: [String: UInt64]] = [:]
    /// The part of a write that was done when the process was killed.
    private var torn: (file: UInt64, change: DurableFile.Change)?

    /// - Parameter root: A directory without other users, whose parts are the cache's directories of one start each.
    init(root: String, seed: UInt64) {
        self.root = root
        generator = SeededNumbers(seed: seed)
    }

    /// Simulates the calls of this process until ``end()``.
    func begin() {
        Self.current.withLock { $0 = self }
        csystemcalls_begin(
            root,
            { event in
                guard let event = event?.pointee, let disk = SimulatedDisk.current.withLock({ $0 }) else { return 0 }
                return disk.before(event)
            },
            { event in
                guard let event = event?.pointee, let disk = SimulatedDisk.current.withLock({ $0 }) else { return }
                disk.after(event)
            })
    }

    /// Ends the simulation of calls.
    func end() {
        csystemcalls_end()
        Self.current.withLock { $0 = nil }
    }

    /// Ends the effect of all calls.
    func crash() {
        isDead = true
    }

    // MARK: Calls

    private func before(_ event: csystemcalls_event) -> Int32 {
        if [csystemcalls_read, csystemcalls_inspect].contains(event.kind) { return faults.failsReads ? EIO : 0 }
        calls += 1
        if isDead { return EIO }
        if let left = callsUntilCrash {
            callsUntilCrash = left - 1
            if left <= 1 {
                isDead = true
                tear(event)
                return EIO
            }
        }
        if let fault = fault(of: event) {
            if fault == EIO, event.kind == csystemcalls_sync, let inode = inode(event.fd) { files[inode]?.loseChanges() }
            return fault
        }
        switch event.kind {
        case csystemcalls_write, csystemcalls_truncate: track(event.fd)
        case csystemcalls_unlink, csystemcalls_rename: trackTarget(of: event)
        default: break
        }
        return 0
    }

    private func fault(of event: csystemcalls_event) -> Int32? {
        let number = Double.random(in: 0..<1, using: &generator)
        if event.kind == csystemcalls_sync, max(faults.failedNameSync, faults.failedFileSync) > 0 {
            let isDirectory = DirectoryEntries.read(event.fd) != nil
            if number < (isDirectory ? faults.failedNameSync : faults.failedFileSync) { return EIO }
        }
        if number < faults.failedRemoval, event.kind == csystemcalls_unlink { return EIO }
        if number < faults.failure { return EIO }
        switch event.kind {
        case csystemcalls_sync: return number < faults.failure + faults.lostSync ? CSYSTEMCALLS_SKIP : nil
        case csystemcalls_truncate, csystemcalls_rename, csystemcalls_unlink: return nil
        default: return number < faults.failure + faults.full ? ENOSPC : nil
        }
    }

    private func after(_ event: csystemcalls_event) {
        switch event.kind {
        case csystemcalls_write:
            guard let inode = inode(event.fd) else { return }
            files[inode]?.pending.append(.write(written(event), at: Int(event.offset)))
        case csystemcalls_truncate:
            guard let inode = inode(event.fd) else { return }
            files[inode]?.pending.append(.truncate(Int(event.offset)))
        case csystemcalls_sync:
            guard let inode = inode(event.fd) else { return }
            if let entries = DirectoryEntries.read(event.fd) {
                directories[inode] = entries
            } else {
                files[inode]?.makeDurable()
            }
        default: break
        }
    }

    private func written(_ event: csystemcalls_event) -> [UInt8] {
        if let bytes = event.bytes { return Array(UnsafeRawBufferPointer(start: bytes, count: Int(event.count))) }
        return (try? DescriptorIO.read(Int(event.count), from: event.fd, at: Int(event.offset))) ?? []
    }

    private func tear(_ event: csystemcalls_event) {
        guard event.kind == csystemcalls_write, let bytes = event.bytes, let inode = inode(event.fd) else {
            return
        }
        let count = Int.random(in: 0...Int(event.count), using: &generator)
        torn = (inode, .write(Array(UnsafeRawBufferPointer(start: bytes, count: count)), at: Int(event.offset)))
    }

    private func inode(_ descriptor: Int32) -> UInt64? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    /// Records a file's contents before its first change: what was there when the disk was mounted is durable.
    private func track(_ descriptor: Int32) {
        guard let inode = inode(descriptor), files[inode] == nil else { return }
        files[inode] = DurableFile(contents: DirectoryEntries.contents(of: "/proc/self/fd/\(descriptor)"))
    }

    /// Records the contents of a file whose name is about to be removed: the removal may be lost.
    private func trackTarget(of event: csystemcalls_event) {
        let number = openat(event.fd, event.name, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return }
        defer { close(number) }
        track(number)
    }

    // MARK: Images

    /// How a process ended.
    enum Ending: Sendable {
        /// In order, or killed: all that was written is in the files.
        case process
        /// Only what was synced is certain to be there. Each other change is there with this probability.
        case powerLoss(survival: Double)
    }

    /// Copies a directory of an ended process to another one, as it is found after the ending, and mounts the disk anew.
    func remount(_ path: String, after ending: Ending, at newPath: String) throws {
        end()
        var image = DiskImage(files: files, directories: directories, ending: ending, generator: generator)
        if case .process = ending, let torn { image.apply(torn.change, to: torn.file) }
        try image.copy(path, to: newPath)
        generator = image.generator
        try DirectoryEntries.removeTree(path)
        files = [:]
        directories = try DirectoryEntries.tree(newPath)
        torn = nil
        isDead = false
        callsUntilCrash = nil
        begin()
    }
}

extension csystemcalls_event {
    fileprivate var kind: csystemcalls_call { csystemcalls_call(rawValue: UInt32(call)) }
}
