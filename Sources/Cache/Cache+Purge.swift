internal import SystemIO

/// Purging.
extension Cache {
    /// Forgets every rendition of one source.
    ///
    /// - Parameter url: The source's canonical URL, as in ``AliasRecord/sourceURL``.
    package func purge(url: String) async throws(CacheError) -> PurgeResult {
        try await purge(.url(url))
    }

    /// Forgets every rendition of all sources whose canonical URL begins with these bytes.
    package func purge(prefix: String) async throws(CacheError) -> PurgeResult {
        try await purge(.prefix(prefix))
    }

    /// Forgets everything, uploaded renditions too.
    package func purgeAll() async throws(CacheError) -> PurgeResult {
        try await purge(.all)
    }

    /// Forgets what `scope` covers: aliases, and objects that no other alias leads to and that were not uploaded. An object
    /// that was uploaded is forgotten by ``PurgeScope/object(_:)`` and ``PurgeScope/all`` only.
    ///
    /// The files of many objects go later, some at a time; they are out of reach at once.
    ///
    /// Once it returns or throws ``CacheError/purgeNotDurable(cause:)``, no look-up gives anything older that it covers, and
    /// what was begun before and is published later is not stored. When it returns, that holds after a loss of power too.
    ///
    /// - Throws: ``CacheError/purgeNotDurable(cause:)`` when it holds only until the next start, ``CacheError/closed``.
    package func purge(_ scope: PurgeScope) async throws(CacheError) -> PurgeResult {
        guard let result = await purgers.run({ self.carryOut(scope) }) else { throw .closed }
        return try result.get()
    }

    /// Whether a purge that covers the source came after `epoch`. Never waits for a disk.
    package func isPurged(_ sourceURL: String, since epoch: Epoch) -> Bool {
        purges.overtook(epoch, sourceURL: sourceURL)
    }

    // MARK: On a thread of the cache

    func carryOut(_ scope: PurgeScope) -> Result<PurgeResult, CacheError> {
        let store = store
        // Only an index that follows the journal knows all that is covered.
        store.catchUp()
        var failure: SystemError?
        let removed = store.purge(scope, failure: &failure) {
            // After the index and still under the lock: a look-up that notes the new epoch reads the new index, and a publish
            // is either before it all, and removed, or after it, and refused.
            self.purges.append(scope)
        }
        reached(.purgeInForce)
        var objects = Set(removed.objects.map(\.record.id))
        if case .object(let id) = scope { objects.insert(id) }
        hotAliases.removeAll { rendition in
            guard scope.covers(rendition.alias?.sourceURL, object: rendition.objectID) else { return false }
            objects.insert(rendition.objectID)
            return true
        }
        hotObjects.removeAll { scope == .all || objects.contains($0.objectID) }
        reached(.purgeCooled)
        let first = removed.objects.prefix(Self.filesPerTurn)
        store.removeFiles(of: Array(first))
        removeLater(removed.objects.dropFirst(first.count), in: store)

        let result = PurgeResult(
            purged: removed.aliases + removed.unaliased, bytes: removed.objects.reduce(0) { $0 + $1.record.length })
        if store.isCatchingUp { housekeeping.wake() }
        counters.purges.count()
        counters.purged.count(result.purged)
        if let failure { return .failure(.purgeNotDurable(cause: failure.description)) }
        return .success(result)
    }

    /// Removes the files of a large purge after it has answered, between other purges: nothing leads to them any more.
    private func removeLater(_ objects: ArraySlice<ObjectRow>, in store: Store) {
        guard !objects.isEmpty else { return }
        let isQueued = purgers.submit {
            let turn = objects.prefix(Self.filesPerTurn)
            store.removeFiles(of: Array(turn))
            self.removeLater(objects.dropFirst(turn.count), in: store)
        }
        // The cache is being closed: the next start removes them as files that nothing knows of.
        if !isQueued { store.expectOrphans() }
    }

    private static var filesPerTurn: Int { 512 }
}
