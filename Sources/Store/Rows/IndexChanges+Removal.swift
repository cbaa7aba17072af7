internal import SystemIO

// MARK: - Purges

extension IndexChanges {
    /// Applies purges durably, with one insert per purge and one sync, whatever they cover. ``sweep()`` removes files and rows,
    /// but only after the caller has called ``CacheIndex/count(_:_:)`` for each returned purge.
    ///
    /// - Parameters:
    ///   - new: Purges whose tokens are known are skipped.
    ///   - change: A change to other owners' tables in the same transaction.
    /// - Returns: The purges with their sequences, and the error if they are not durable. They apply nevertheless, except after
    ///   ``close()``.
    mutating func purge(
        _ new: [Purge], with change: @escaping Ledger.Change = { _ in }
    ) -> (purges: [(purge: Purge, sequence: Int64)], failure: LedgerError?) {
        var accepted: [(purge: Purge, sequence: Int64)] = []
        for purge in new where !purges.isKnown(purge.token) && !accepted.contains(where: { $0.purge.token == purge.token }) {
            accepted.append((purge, takeSequences(1)))
        }
        counted.formUnion(accepted.map(\.sequence))
        // Another server may have locked the directory since.
        guard !isClosed else { return (accepted, LedgerError(.closed, "the cache is closed")) }
        for (purge, sequence) in accepted { purges.insert(purge, sequence) }
        let event = Unrecorded(purges: accepted, change: change)
        do throws(LedgerError) {
            try record(event)
            return (accepted, nil)
        } catch {
            if error.kind == .fullDisk {
                directory.giveUpReserve()
                if (try? record(event)) != nil { return (accepted, nil) }
                removeCoveredFiles()
                if (try? record(event)) != nil { return (accepted, nil) }
            }
            remember(event)
            return (accepted, error)
        }
    }

    /// Removes some files that purges cover, to free space for the row of a purge. A sweep removes their rows later.
    private mutating func removeCoveredFiles() {
        let files = directory.objects
        _ = try? read { tables in
            for event in tables.purges.unsweptRows() {
                var position = CacheTables.SweepPosition(sequence: event.sequence)
                for object in try tables.covered(by: event, &position, limit: Self.rowsPerSweep).objects {
                    _ = try? files.remove(object.record.name)
                }
            }
        }
    }

    /// Removes the files and rows of a bounded number of purged objects and aliases.
    ///
    /// - Returns: Whether there may be more.
    mutating func sweep() -> Bool {
        guard canChange else { return false }
        let (counted, limit, start) = (counted, Self.rowsPerSweep, sweepPosition)
        let step: (aliases: [AliasReference], objects: [ObjectRow], position: CacheTables.SweepPosition)?
        do throws(LedgerError) {
            step = try read { tables in
                guard let purge = try PurgeTable(tables.database).nextToSweep(except: counted) else { return nil }
                var position = CacheTables.SweepPosition(sequence: purge.sequence)
                if let start, start.sequence == purge.sequence { position = start }
                let (aliases, objects) = try tables.covered(by: purge, &position, limit: limit)
                return (aliases, objects, position)
            }
        } catch {
            return false
        }
        guard let (aliases, objects, position) = step else { return sweepRemoved() }
        // Removes the files first: a row without its file is covered in any case.
        for object in objects where (try? directory.objects.remove(object.record.name)) == nil { return false }
        guard delete(objects, aliases, endingSweepOf: position.hasEnded ? position.sequence : nil) else { return false }
        sweepPosition = position.hasEnded ? nil : position
        if position.hasEnded { purges.markSwept(position.sequence) }
        return true
    }

    /// Removes the rows of objects whose files are removed, and of aliases, in one transaction. Returns whether it was
    /// committed.
    private mutating func delete(
        _ objects: [ObjectRow], _ aliases: [AliasReference], endingSweepOf purge: Int64? = nil
    ) -> Bool {
        let isCommitted: Void? = try? change { tables in
            try tables.delete(objects.map(\.sequence))
            try tables.delete(aliases: aliases.map(\.sequence))
            if let purge { try PurgeTable(tables.database).markSwept(purge) }
        }
        return isCommitted != nil
    }

    /// Removes a bounded number of aliases of removed objects.
    private mutating func sweepRemoved() -> Bool {
        guard (try? read({ try $0.hasRemoved() })) == true else { return false }
        return (try? change(.normal, { try $0.deleteAliasesOfRemoved(limit: Self.rowsPerSweep) })) ?? false
    }

    /// Removes the rows of completed purges, if there are many.
    mutating func removeDonePurges() {
        guard canChange, (try? read({ try PurgeTable($0.database).hasManyDone() })) == true else { return }
        try? change { try PurgeTable($0.database).removeDone() }
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
        removeFile(current.record.name)
        deleteRows([current])
        return true
    }

    /// Evicts objects until `wanted` bytes of the disk are freed, a bounded number is removed, or a file cannot be removed.
    mutating func evict(atLeast wanted: Int64, visited: VisitedObjects) -> EvictedObjects {
        guard !isClosed else { return EvictedObjects(mayContinue: false) }
        do throws(LedgerError) {
            let (ledger, purges) = (ledger, purges)
            let selected = try hand.select(atLeast: wanted, visited: visited) { sequence, limit throws(LedgerError) in
                try ledger.read { try CacheTables($0, purges).objects(after: sequence, limit: limit) }
            }
            if let selected { return evict(selected) }
        } catch {
            note(error)
        }
        return EvictedObjects(mayContinue: false)
    }

    /// Removes files, up to the first that cannot be removed: its object keeps its row, because its bytes stay on the disk.
    /// Then removes the rows.
    private mutating func evict(_ objects: [ObjectRow]) -> EvictedObjects {
        var evicted = EvictedObjects()
        for object in objects {
            do throws(SystemError) {
                if try directory.objects.remove(object.record.name) {
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

    /// Evicts some of the aliases that were not renewed recently and are not in memory, and the objects that only they led to.
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
        let removed = objects.filter { (try? directory.objects.remove($0.record.name)) != nil }
        guard delete(removed, unused) else { return nil }
        aliasHand = last ?? 0
        return last == nil ? nil : removed
    }

    /// Removes a file unless there is a row for it. Returns whether it was removed, and nil if that failed.
    mutating func removeOrphan(_ name: RenditionName) -> Bool? {
        guard !isClosed, let isKnown = try? read({ try $0.knownObjectRow(name.id)?.record.name == name }) else { return nil }
        return isKnown ? false : try? directory.objects.remove(name)
    }
}
