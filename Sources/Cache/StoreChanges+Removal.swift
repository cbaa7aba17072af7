internal import Ledger
internal import SystemIO

// MARK: - Purges

extension StoreChanges {
    /// Carries out a step of a purge.
    ///
    /// - Parameters:
    ///   - purge: What remains to be recorded if the step fails.
    ///   - isContinuation: Whether it is a part after the first.
    mutating func purge(
        _ scope: PurgeScope, _ purge: Unrecorded, isContinuation: Bool
    ) -> (purged: CacheTables.Purged, failure: LedgerError?) {
        // Another server may have locked the directory since.
        guard !isClosed else { return (CacheTables.Purged(), LedgerError(.closed, "the cache is closed")) }
        do throws(LedgerError) {
            guard isContinuation else { return (try record(purge), nil) }
            return (try change { try $0.continuePurge() } ?? CacheTables.Purged(), nil)
        } catch {
            return purgeWithoutSpace(scope, purge, error)
        }
    }

    /// Carries out a purge that could not be recorded, most likely for lack of disk space, which this frees: it removes the files
    /// first.
    private mutating func purgeWithoutSpace(
        _ scope: PurgeScope, _ purge: Unrecorded, _ error: LedgerError
    ) -> (purged: CacheTables.Purged, failure: LedgerError?) {
        status.hide(through: sequence)
        directory.giveUpReserve()
        if error.kind == .fullDisk, let purged = try? record(purge) { return (purged, nil) }
        let files = directory.objects
        _ = try? read { tables in
            try tables.forEachFile(coveredBy: scope, madeAt: purge.time) { _ = try? files.remove($0.id, $0.fileExtension) }
        }
        if error.kind == .fullDisk, let purged = try? record(purge) { return (purged, nil) }
        let count = try? read { try $0.count(scope, madeAt: purge.time) }
        var purged = count ?? CacheTables.Purged()
        purged.objects = nil
        remember(purge)
        return (purged, error)
    }

    /// See ``Store/sweep()``.
    mutating func sweep() -> Bool {
        guard canChange, let doomed = try? read({ try $0.objectsToSweep(limit: Self.objectsPerSweep) }) else { return false }
        var removed: [DoomedObject] = []
        for object in doomed {
            switch isKnown(object.file) {
            // It was published again.
            case true?: removed.append(object)
            case false?:
                if (try? directory.objects.remove(object.file.id, object.file.fileExtension)) != nil { removed.append(object) }
            case nil: break
            }
        }
        guard !removed.isEmpty, (try? change { try $0.deleteSwept(removed) }) != nil else { return false }
        return removed.count == Self.objectsPerSweep
    }

    private static var objectsPerSweep: Int { 256 }
}

// MARK: - Eviction

extension StoreChanges {
    /// See ``Store/forget(_:)``.
    mutating func forget(_ object: ObjectRow) -> Bool {
        guard !isClosed, let current = try? read({ try $0.objectRow(object.record.id) }), current.sequence == object.sequence
        else { return false }
        removeFile(FileName(id: current.record.id, fileExtension: current.record.fileExtension))
        deleteRows([current])
        return true
    }

    /// See ``Store/evict(atLeast:visited:)``.
    mutating func evict(atLeast wanted: Int64, visited: VisitedObjects) -> EvictedObjects {
        guard !isClosed else { return EvictedObjects(mayContinue: false) }
        do throws(LedgerError) {
            let ledger = ledger
            let selected = try hand.select(atLeast: wanted, visited: visited) { sequence, limit throws(LedgerError) in
                try ledger.read { try CacheTables($0).objects(after: sequence, limit: limit) }
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

    /// See ``Store/evictAliases(unless:)``.
    mutating func evictAliases(unless isInUse: (AliasKey) -> Bool) -> [ObjectRow]? {
        let position = aliasHand
        guard !isClosed,
            let (last, objects) = try? change(
                .normal,
                { tables in
                    try tables.deleteOldestAliases(after: position, limit: 64, unless: isInUse)
                })
        else { return nil }
        aliasHand = last ?? 0
        return last == nil ? nil : objects
    }

    /// See ``Store/removeOrphan(_:)``.
    mutating func removeOrphan(_ name: FileName) -> Bool? {
        guard !isClosed, let isKnown = isKnown(name) else { return nil }
        return isKnown ? false : try? directory.objects.remove(name.id, name.fileExtension)
    }

    /// Whether there is a row for a file; nil if the ledger cannot be read.
    private mutating func isKnown(_ name: FileName) -> Bool? {
        do throws(LedgerError) {
            return try read { try $0.objectRow(name.id) }?.record.fileExtension == name.fileExtension
        } catch {
            return nil
        }
    }
}
