internal import SystemIO

/// Leading aliases to objects that are stored.
extension Cache {
    /// Leads an alias to an object that is stored already: another URL gave the same GIF.
    ///
    /// - Returns: The rendition, «existing» when the alias leads to it now; nil when there is no such object.
    package func link(_ alias: AliasRecord, to object: ObjectID, epoch: Epoch) async -> PublishOutcome? {
        let outcome = await publishers.run { () -> PublishOutcome? in
            let store = self.store
            return self.existing(object, in: store).flatMap { self.lead(alias, to: $0, epoch: epoch, in: store) }
        }
        return outcome ?? nil
    }

    /// The rendition of that id, for a client that uploaded its source. Records the upload, so that a purge of a URL with the
    /// same bytes leaves the object. Where that cannot be written, the rendition is returned all the same.
    package func uploadedObject(_ id: ObjectID) async -> CachedRendition? {
        if let hot = hotObject(id), hot.object.isUploaded { return hot }
        let epoch = purges.epoch
        let found = await publishers.run { () -> CachedRendition? in
            let store = self.store
            guard let object = self.existing(id, in: store) else { return nil }
            self.visited.note(object)
            if object.isUploaded { return CachedRendition(object: object, alias: nil, epoch: epoch) }
            return self.lead(nil, to: object, epoch: epoch, in: store)?.rendition
        }
        if found != nil { counters.diskHits.count() } else { counters.misses.count() }
        return found ?? nil
    }

    /// Notes that the origin was asked again and has the same bytes (304): the alias is fresh from `fetchedAt` on.
    ///
    /// - Parameters:
    ///   - validators: As the origin gave them now; a field it left out keeps its value (RFC 9111 section 4.3.4).
    ///   - freshFor: Seconds, where the origin said so.
    ///   - epoch: As noted before the origin was asked.
    /// - Returns: The renewed rendition; nil when the alias is gone or was purged meanwhile.
    package func renew(
        _ key: AliasKey, validators: Validators, fetchedAt: Int64, freshFor: Int64?, epoch: Epoch
    ) async -> CachedRendition? {
        let renewed = await publishers.run {
            self.renewNow(key, validators: validators, fetchedAt: fetchedAt, freshFor: freshFor, epoch: epoch)
        }
        return renewed ?? nil
    }

    // MARK: On a thread of the cache

    func renewNow(
        _ key: AliasKey, validators: Validators, fetchedAt: Int64, freshFor: Int64?, epoch: Epoch
    ) -> CachedRendition? {
        guard let current = findAlias(key), var alias = current.alias else { return nil }
        alias.validators = Validators(
            etag: validators.etag ?? alias.validators.etag,
            lastModified: validators.lastModified ?? alias.validators.lastModified)
        alias.fetchedAt = fetchedAt
        alias.freshFor = freshFor
        let outcome = lead(alias, to: current.object, epoch: epoch, in: store)
        guard case .existing(let rendition)? = outcome else { return nil }
        return rendition
    }

    /// Writes an alias to an object that is open, or that it was uploaded; nil when the object is not stored any more.
    func lead(_ alias: AliasRecord?, to object: StoredObject, epoch: Epoch, in store: Store) -> PublishOutcome? {
        var reason = UnstoredReason.purged
        var current = epoch
        do throws(UnstoredFailure) {
            let sequence = try store.commit(alias, to: object) { self.isWanted(alias, object.record.id, &current) }
            guard let sequence else { return nil }
            if alias == nil { object.markUploaded() }
            let rendition = CachedRendition(
                object: object, alias: alias, aliasSequence: alias == nil ? 0 : sequence, epoch: current)
            if keepHot(rendition) { return .existing(rendition) }
        } catch {
            reason = error.reason
        }
        counters.unstored.count()
        return .unstored(CachedRendition(object: object, alias: alias, epoch: epoch), reason)
    }
}
