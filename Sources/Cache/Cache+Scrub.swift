internal import Glibc
internal import Synchronization
internal import SystemIO

/// Checking stored files against their SHA-256 in the background, slowly.
extension Cache {
    func scrub(in store: Store) {
        guard configuration.scrubBytesPerSecond > 0, !store.isCatchingUp else { return }
        let now = clock.monotonicNanoseconds()
        guard scrubber.withLock({ $0.credit(configuration.scrubBytesPerSecond, now: now) }) else { return }
        while !housekeeping.isEnding {
            let cursor = scrubber.withLock(\.cursor)
            guard let row = (try? store.index.objects(after: cursor, limit: 1))?.first else {
                scrubber.withLock { $0.endPass(now: now) }
                return
            }
            check(row, in: store)
            let goesOn = scrubber.withLock { scrubber in
                scrubber.spend(row.record.length, through: row.sequence)
                return scrubber.credit > 0
            }
            if !goesOn { return }
        }
    }

    private func check(_ row: ObjectRow, in store: Store) {
        // What cannot be opened now is not damaged; a look-up or the next start deals with what is missing.
        guard let file = try? store.directory.open(row.record.id, row.record.fileExtension),
            let (digest, length) = try? ContentDigest.measure(file)
        else { return }
        // Reading it must not push out of memory what visitors read.
        if hotObjects.peek(row.record.id) == nil { posix_fadvise(file.number, 0, 0, POSIX_FADV_DONTNEED) }
        if digest == row.record.content, Int64(length) == row.record.length {
            verified.insert(row.sequence)
        } else {
            discard(row, in: store)
        }
    }

    /// Drops a rendition whose contents its reader cannot use. Returns once no look-up finds it any more.
    ///
    /// Where the cache is closing or its threads are busy, the rendition stays; the next reader drops it.
    package func discardCorrupt(_ rendition: CachedRendition) async {
        let row = ObjectRow(sequence: rendition.object.sequence, record: rendition.object.record)
        _ = await lookups.run { self.discard(row, in: self.store) }
    }

    /// Removes an object whose file is not what its record says.
    func discard(_ row: ObjectRow, in store: Store) {
        guard store.forget(row) else { return }
        counters.corrupt.count()
        cool([row.record.id])
    }
}
