internal import Fetch
internal import Store

/// Whether renditions of a source may be stored, and for how long they are fresh.
struct StoragePermission: Sendable, Equatable {
    /// If false, the rendition is still sent to all callers of the flight: the fetch carried no credentials of any of them.
    var isAllowed = true
    /// Seconds; nil if the origin gives no lifetime.
    var freshFor: Int64?
    /// Seconds for which clients may use the rendition, if fewer.
    var clientFreshFor: Int64?
    /// Whether the origin forbids using a stale source.
    var mustRevalidate = false
    /// The lifetime in seconds if the source breaks off.
    var freshForIncomplete = OriginRules.longestForIncomplete

    static let denied = StoragePermission(isAllowed: false)
}

extension OriginRules {
    /// The longest time in seconds for which a source that breaks off is fresh: its upload may still be in progress. Equals the
    /// lifetime of the failure of a source that cannot be converted.
    static let longestForIncomplete: Int64 = 600

    /// Whether and for how long the source at `url` may be stored.
    func permission(for url: SourceURL, _ directives: CacheDirectives) -> StoragePermission {
        // The longest prefix wins if one mount lies within another.
        let configured = freshFor.filter { url.canonical.hasPrefix($0.key) }
            .max { $0.key.utf8.count < $1.key.utf8.count }?.value
        guard obeyOrigin else { return permission(configured) }
        // `private` excludes shared caches, and this is one.
        if directives.noStore || directives.isPrivate { return .denied }
        var found = permission(configured)
        if let lifetime = directives.noCache ? 0 : directives.freshFor {
            let most = directives.isLimitedByDefault ? min(maxFreshFor, configured ?? defaultLifetime) : maxFreshFor
            let freshFor = min(max(Int64(lifetime), minFreshFor), most)
            found = permission(freshFor)
            found.clientFreshFor = directives.clientFreshFor.map { max(Int64($0), minFreshFor) }
                .flatMap { $0 < freshFor ? $0 : nil }
        }
        found.mustRevalidate = directives.forbidsStale
        return found
    }

    /// Whether the source at `url` may stay stored after the origin has confirmed it (304), and for how long.
    ///
    /// Directives that the response does not repeat keep their value (RFC 9111 section 4.3.4), a lifetime clamped to the
    /// bounds. A mount's lifetime replaces the stored one, which may stem from the origin or from an earlier setting of the
    /// mount.
    func permission(for url: SourceURL, _ directives: CacheDirectives, renewing known: AliasRecord) -> StoragePermission {
        var found = permission(for: url, directives)
        guard obeyOrigin, found.isAllowed else { return found }
        if found.freshFor == nil, let lifetime = known.times.freshFor {
            found = permission(min(max(lifetime, minFreshFor), maxFreshFor))
            found.clientFreshFor = known.times.clientFreshFor
        }
        found.mustRevalidate = directives.isEmpty ? known.times.mustRevalidate : directives.forbidsStale
        return found
    }

    /// - Parameter freshFor: Seconds; nil if neither the origin nor a mount gives a lifetime.
    private func permission(_ freshFor: Int64?) -> StoragePermission {
        StoragePermission(
            freshFor: freshFor, freshForIncomplete: min(freshFor ?? defaultLifetime, Self.longestForIncomplete))
    }
}
