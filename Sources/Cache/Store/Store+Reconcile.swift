internal import SystemIO

/// Making files and index agree after a server that ended without closing the cache.
extension Store {
    struct Reconciled: Sendable {
        /// Files that nothing knew of, removed.
        var orphans: Int64 = 0
        /// Files of the wrong length, removed.
        var damaged: Int64 = 0
    }

    /// Once after such a start: removes files that nothing knows of, and rows whose files are missing or too short.
    ///
    /// - Returns: Nil when there is nothing to do, or not yet: the index has to have caught up.
    func reconcile(unless isEnding: () -> Bool) -> Reconciled? {
        guard change({ !$0.isClosed && !$0.isReconciled && !$0.isBehind }) else { return nil }
        var found = Reconciled()
        // Rows first: this reads every one, so that a damaged index is replaced before files look like orphans.
        guard let damaged = removeRowsWithoutFiles(unless: isEnding) else { return nil }
        found.damaged = damaged
        for first in UInt8.min...UInt8.max {
            if isEnding() { return found }
            found.orphans += removeOrphans(in: first)
        }
        change { state in
            guard !state.isClosed, !state.isBehind, (try? index.removeDanglingAliases()) != nil else { return }
            state.isReconciled = true
        }
        return found
    }

    private func removeOrphans(in first: UInt8) -> Int64 {
        // A directory that cannot be read keeps its orphans until the next start.
        guard let (renditions, others) = try? directory.list(first), let known = extensions(first) else { return 0 }
        var count: Int64 = 0
        for name in others where (try? directory.removeOther(name)) != nil { count += 1 }
        for (id, fileExtension) in renditions where known[id] != fileExtension {
            let isRemoved = change { state in
                // Again under the lock: it may have been published meanwhile, or the index may have been replaced by an empty one.
                guard !state.isClosed, !state.isBehind, !isKnown(id, fileExtension) else { return false }
                return (try? directory.remove(id, fileExtension)) ?? false
            }
            if isRemoved { count += 1 }
        }
        return count
    }

    private func extensions(_ first: UInt8) -> [ObjectID: String]? {
        let index = index
        do throws(IndexError) {
            return try index.extensions(ofObjectsIn: first)
        } catch {
            report(error, of: index)
            return nil
        }
    }

    /// Whether the index knows such a file, or cannot tell.
    private func isKnown(_ id: ObjectID, _ fileExtension: String) -> Bool {
        do throws(IndexError) {
            return try index.object(id)?.record.fileExtension == fileExtension
        } catch {
            return true
        }
    }

    /// Returns how many files were of the wrong length; nil when it was interrupted or the index could not be read.
    private func removeRowsWithoutFiles(unless isEnding: () -> Bool) -> Int64? {
        var damaged: Int64 = 0
        var cursor: Int64 = 0
        while !isEnding() {
            let index = index
            let rows: [ObjectRow]
            do throws(IndexError) {
                rows = try index.objects(after: cursor, limit: 256)
            } catch {
                report(error, of: index)
                return nil
            }
            guard let last = rows.last else { return damaged }
            cursor = last.sequence
            for row in rows {
                do throws(SystemError) {
                    let length = try directory.length(row.record.id, row.record.fileExtension)
                    if length != row.record.length, forget(row), length != nil { damaged += 1 }
                } catch {
                    // Trouble in asking is no proof that it is missing.
                    continue
                }
            }
        }
        return nil
    }
}
