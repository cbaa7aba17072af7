/// What goes on in the background, on a thread of its own.
extension Cache {
    /// One round.
    func keepHouse() {
        reopenIfLost()
        let store = store
        let isEnding = { self.housekeeping.isEnding }
        store.catchUp(unless: isEnding)
        store.retry()
        if let found = store.reconcile(unless: isEnding) {
            counters.orphans.count(found.orphans)
            counters.corrupt.count(found.damaged)
        }
        evict(in: store)
        store.compactIfWorthwhile(unless: isEnding)
        store.sync()
        scrub(in: store)
    }

    /// When the directory was removed or replaced under the cache, starts afresh in the one at its path, making it if need
    /// be.
    ///
    /// Whoever removes a cache's directory wants its contents gone, so this is a purge of everything, too.
    private func reopenIfLost() {
        let lost = store
        guard !lost.isInPlace else { return }
        // Releases the locks: some of the files may be the same in the new store.
        lost.close()
        // Refused or impossible for now: hits from memory go on, publishes are unstored, and the next round tries again.
        guard let found = try? openStore() else { return }
        replaceStore(with: found)
        report(.directoryReplaced(path: configuration.directory))
        purges.append(.all)
        hotAliases.removeAll { _ in true }
        hotObjects.removeAll { _ in true }
        visited.reset()
        verified.removeAll()
    }
}
