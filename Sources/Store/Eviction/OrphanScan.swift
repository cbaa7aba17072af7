internal import Synchronization
internal import SystemIO

/// Reconciles files and rows after a server ended without closing the cache, and once a day: removes files without a row, and rows
/// whose files are missing.
///
/// Works in parts, between which housekeeping does other work. Not synchronised.
struct OrphanScan: Sendable {
    /// The next of the 256 directories.
    private var next = 0
    /// See ``IndexChanges/scanNumber``.
    private var begun = 0
    /// Whether every file so far was compared and every file without a row was removed.
    private var isComplete = true

    private static var namesPerPart: Int { 10_000 }

    /// Compares the next directories. Returns the number of removed files, and whether there are more directories.
    mutating func continueScan(of context: CacheContext, unless isEnding: () -> Bool) -> (removed: Int64, continues: Bool) {
        var removed: Int64 = 0
        guard let number = context.changes.withLock({ $0.scanNumber }) else {
            next = 0
            return (removed, false)
        }
        if next == 0 { (begun, isComplete) = (number, true) }
        var names = 0
        while next < 256, names < Self.namesPerPart {
            // A directory that cannot be read is compared again later.
            guard !isEnding(), let count = compare(UInt8(next), in: context, &removed) else { return (removed, false) }
            names += count
            next += 1
        }
        guard next == 256 else { return (removed, true) }
        next = 0
        context.changes.withLock { $0.finishScan(begun, isComplete: isComplete) }
        return (removed, false)
    }

    private mutating func compare(_ first: UInt8, in context: CacheContext, _ removed: inout Int64) -> Int? {
        let files = context.directory.objects
        // Reads rows before files: a file published in between is checked again.
        guard let known = context.query({ try $0.names(ofObjectsIn: first) }),
            let (renditions, others) = try? files.list(first)
        else { return nil }
        for path in others {
            if (try? files.removeOther(path)) != nil { removed += 1 } else { isComplete = false }
        }
        for name in renditions where !known.contains(name) {
            switch context.changes.withLock({ $0.removeOrphan(name) }) {
            case true?: removed += 1
            case false?: break
            case nil: isComplete = false
            }
        }
        for name in known.subtracting(renditions) { forgetIfMissing(name.id, in: context) }
        return renditions.count + others.count
    }

    private func forgetIfMissing(_ id: ObjectID, in context: CacheContext) {
        guard let row = context.query({ try $0.objectRow(id) }) ?? nil else { return }
        do throws(SystemError) {
            if try context.directory.objects.length(row.record.name) == nil { _ = context.changes.withLock { $0.forget(row) } }
        } catch {
            // An error is no proof that the file is missing.
        }
    }
}
