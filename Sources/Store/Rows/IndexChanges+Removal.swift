internal import SystemIO

// MARK: - Purges

extension IndexChanges {
    /// Puts purges into force, durably: one insert and one sync, whatever they cover. Files and rows follow with ``sweep()``, but not
    /// before ``CacheIndex/count(_:_:)``, which must follow for those that are returned.
    ///
    /// - Parameters:
    ///   - new: Those whose tokens are known are left out.
    ///   - change: Belongs to the same transaction.
    /// - Returns: The purges with their sequences, and the error if they are not durable, such as after ``close()``. They
    ///   apply all the same.
    mutating func purge(
        _ new: [Purge], with change: @escaping Ledger.Change = { _ in }
    ) -> (purges: [(purge: Purge, sequence: Int64)], failure: LedgerError?) {
        var accepted: [(purge: Purge, sequence: Int64)] = []
        for purge in new where !purges.isKnown(purge.token) && !accepted.contains(where: { $0.purge.token == purge.token }) {
            accepted.append((purge, takeSequences(1)))
        }
        counted.formUnion(accepted.map(\.sequence))
        return (accepted, purge(Unrecorded(purges: accepted, change: change)))
    }

    /// - Parameter event: What remains to be recorded if that fails. Its purges cover their scopes even so.
    /// - Returns: Why they are not durable; nil if they are.
    private mutating func purge(_ event: Unrecorded) -> LedgerError? {
        // Another server may have locked the directory since.
        guard !isClosed else { return LedgerError(.closed, "the cache is closed") }
        for (purge, sequence) in event.purges { purges.insert(purge, sequence) }
        do throws(LedgerError) {
            try record(event)
            return nil
        } catch {
            if error.kind == .fullDisk {
                directory.giveUpReserve()
                if (try? record(event)) != nil { return nil }
                removeCoveredFiles()
                if (try? record(event)) != nil { return nil }
            }
            remember(event)
            return error
        }
    }

    /// Frees space for the row of a purge: removes some files that purges cover. Their rows go later.
    private mutating func removeCoveredFiles() {
        let files = directory.objects
        _ = try? read { tables in
            for event in tables.purges.unsweptRows() {
                var position = CacheTables.SweepPosition(event.sequence)
                for object in try tables.covered(by: event, &position, limit: Self.rowsPerSweep).objects {
                    _ = try? files.remove(object.file.id, object.file.fileExtension)
                }
            }
        }
    }

    /// Removes the files and rows of a bounded number of purged objects and aliases.
    ///
    /// - Returns: Whether there may be more.
    mutating func sweep() -> Bool {
        guard canChange else { return false }
        let (counted, limit) = (counted, Self.rowsPerSweep)
        let start = sweepPosition
        let steps = try? read { tables -> [Sweep] in
            guard let purge = try PurgeTable(tables.database).nextToSweep(except: counted) else { return [] }
            var found = CacheTables.SweepPosition(purge.sequence)
            if let start, start.sequence == purge.sequence { found = start }
            let (aliases, objects) = try tables.covered(by: purge, &found, limit: limit)
            return [Sweep(purge: purge.sequence, aliases: aliases, objects: objects, position: found)]
        }
        guard let steps else { return false }
        guard let step = steps.first else { return sweepRemoved() }
        // The files first: a row without its file is covered in any case.
        var removed: [ObjectRow] = []
        for object in step.objects {
            guard (try? directory.objects.remove(object.file.id, object.file.fileExtension)) != nil else { return false }
            removed.append(object)
        }
        let hasEnded = step.position.hasEnded
        guard delete(removed, step.aliases, endingSweepOf: hasEnded ? step.purge : nil) else { return false }
        sweepPosition = hasEnded ? nil : step.position
        if hasEnded { purges.markSwept(step.purge) }
        return true
    }

    /// Removes the rows of objects whose files are removed, and of aliases, in one transaction. Returns whether it was committed.
    private mutating func delete(
        _ objects: [ObjectRow], _ aliases: [AliasReference], endingSweepOf purge: Int64? = nil
    ) -> Bool {
        let isCommitted: Void? = try? change { tables in
            try tables.delete(objects.map(\.sequence))
            try tables.delete(aliases)
            if let purge { try PurgeTable(tables.database).markSwept(purge) }
        }
        return isCommitted != nil
    }

    private struct Sweep {
        let purge: Int64
        let aliases: [AliasReference]
        let objects: [ObjectRow]
        let position: CacheTables.SweepPosition
    }

    /// Removes aliases of removed objects, and rows of purges that are done.
    private mutating func sweepRemoved() -> Bool {
        let limit = Self.rowsPerSweep
        guard let hasRemoved = try? read({ try $0.hasRemoved() }), hasRemoved else { return false }
        return (try? change(.normal, { try $0.deleteAliasesOfRemoved(limit: limit) })) ?? false
    }

    /// Removes the rows of purges that are done, if there are many.
    mutating func removeDonePurges() {
        guard canChange, (try? read({ try PurgeTable($0.database).hasManyDone() })) == true else { return }
        _ = try? change(.normal, { try PurgeTable($0.database).removeDone() })
    }

    private static var rowsPerSweep: Int { 128 }
}

// MARK: - Eviction

extension IndexChanges {
    /// Removes one object, unless it was replaced since it was read.
    ///
    /// - Returns: False if it was gone or replaced.
    mutating func forget(_ object: ObjectRow) -> Bool {
        guard !isClosed, let current = try? read({ try $0.knownObjectRow(object.record.id) }),
            current.sequence == object.sequence
        else { return false }
        removeFile(FileName(id: current.record.id, fileExtension: current.record.fileExtension))
        deleteRows([current])
        return true
    }

    /// Evicts objects until they take `wanted` bytes or a bounded number of objects is removed, or a file cannot be removed.
    mutating func evict(atLeast wanted: Int64, visited: VisitedObjects) -> EvictedObjects {
        guard !isClosed else { return EvictedObjects(mayContinue: false) }
        do throws(LedgerError) {
            let (ledger, purges) = (ledger, purges)
            let selected = try hand.select(atLeast: wanted, visited: visited) { sequence, limit throws(LedgerError) in
                try ledger.read { try CacheTables($0, purges).objects(after: sequence, limit: limit) }
            }
            guard let selected else { return EvictedObjects(mayContinue: false) }
            return evict(selected)
        } catch {
            note(error)
            return EvictedObjects(mayContinue: false)
        }
    }

    /// Removes files, up to the first that cannot be removed: its object keeps its row, because its bytes stay on the disk. Then
    /// removes the rows.
    private mutating func evict(_ objects: [ObjectRow]) -> EvictedObjects {
        var evicted = EvictedObjects()
        for object in objects {
            do throws(SystemError) {
                if try directory.objects.remove(object.record.id, object.record.fileExtension) {
                    evicted.objects.append(object)
                } else {
                    evicted.withoutFile.append(object)
                }
            } catch {
                evicted.mayContinue = false
                break
            }
        }
        if !deleteRows(evicted.objects + evicted.withoutFile) { evicted.mayContinue = false }
        return evicted
    }

    /// Evicts some of the aliases that were not renewed for long and are not in memory, and the objects that only they led to.
    ///
    /// - Returns: The removed objects; nil if there is nothing to evict.
    mutating func evictAliases(unless isInUse: (AliasKey) -> Bool) -> [ObjectRow]? {
        let position = aliasHand
        guard !isClosed,
            let (last, unused, objects) = try? read({ tables in
                let (last, unused) = try tables.oldestAliases(after: position, limit: 64, unless: isInUse)
                return (last, unused, try tables.unreferenced(by: unused))
            })
        else { return nil }
        var removed: [ObjectRow] = []
        for object in objects where (try? directory.objects.remove(object.file.id, object.file.fileExtension)) != nil {
            removed.append(object)
        }
        guard delete(removed, unused) else { return nil }
        aliasHand = last ?? 0
        return last == nil ? nil : removed
    }

    /// Removes a file unless there is a row for it. Returns whether it was removed, and nil if that failed.
    mutating func removeOrphan(_ name: FileName) -> Bool? {
        guard !isClosed, let isKnown = isKnown(name) else { return nil }
        return isKnown ? false : try? directory.objects.remove(name.id, name.fileExtension)
    }

    /// Whether there is a row for a file; nil if the ledger cannot be read.
    private mutating func isKnown(_ name: FileName) -> Bool? {
        do throws(LedgerError) {
            return try read { try $0.knownObjectRow(name.id) }?.record.fileExtension == name.fileExtension
        } catch {
            return nil
        }
    }
}
