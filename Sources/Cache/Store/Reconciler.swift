internal import SystemIO

/// Makes files and rows agree after a server that ended without closing the cache.
struct Reconciler {
    /// What was removed.
    struct Removed: Sendable {
        /// Files without a row.
        var orphans: Int64 = 0
        /// Files of the wrong length.
        var damaged: Int64 = 0
    }

    private let store: Store
    private let isEnding: () -> Bool

    init(_ store: Store, unless isEnding: @escaping () -> Bool) {
        self.store = store
        self.isEnding = isEnding
    }

    /// Removes files without a row, and rows whose files are missing or have the wrong length.
    ///
    /// - Returns: Nil if there is nothing to do, or not yet: the index must have applied the whole journal.
    func run() -> Removed? {
        guard let begun = store.reconciliation else { return nil }
        var removed = Removed()
        // Rows first: this reads each of them, so that a damaged index is replaced before its files look like orphans.
        guard let damaged = removeRowsWithoutFiles() else { return nil }
        removed.damaged = damaged
        for first in UInt8.min...UInt8.max {
            if isEnding() { return removed }
            removed.orphans += removeOrphans(in: first)
        }
        store.finishReconciliation(begun)
        return removed
    }

    /// Returns the number of files of the wrong length; nil if it was interrupted or the index could not be read.
    private func removeRowsWithoutFiles() -> Int64? {
        var damaged: Int64 = 0
        var cursor: Int64 = 0
        while !isEnding() {
            guard let rows = store.objects(after: cursor, limit: 256) else { return nil }
            guard let last = rows.last else { return damaged }
            cursor = last.sequence
            for row in rows {
                do throws(SystemError) {
                    let length = try store.directory.objects.length(row.record.id, row.record.fileExtension)
                    if length != row.record.length, store.forget(row), length != nil { damaged += 1 }
                } catch {
                    // An error is no proof that the file is missing.
                    continue
                }
            }
        }
        return nil
    }

    private func removeOrphans(in first: UInt8) -> Int64 {
        let files = store.directory.objects
        guard let (renditions, others) = try? files.list(first), let known = store.extensions(ofObjectsIn: first) else {
            store.expectOrphans()
            return 0
        }
        var count: Int64 = 0
        for path in others {
            do throws(SystemError) {
                try files.removeOther(path)
                count += 1
            } catch {
                store.expectOrphans()
            }
        }
        // The store looks again under its lock: an object may have been published meanwhile.
        for (id, fileExtension) in renditions where known[id] != fileExtension && store.removeOrphan(id, fileExtension) {
            count += 1
        }
        return count
    }
}
