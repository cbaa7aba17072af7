internal import Cache
internal import Fetch

/// The extent to which `Cache-Control` and `Expires` of origins are obeyed (RFC 9111 section 5.2.2).
package struct OriginRules: Sendable, Equatable {
    /// If false, every source is stored for as long as the configuration says.
    package var isObeyed: Bool
    /// Seconds: the lower bound of a lifetime that an origin gives.
    package var shortest: Int64
    /// Seconds: the upper bound of a lifetime that an origin gives.
    package var longest: Int64
    /// Seconds for which a source without a lifetime is fresh.
    package var defaultLifetime: Int64
    /// The same by the prefix of the canonical URL, for mounts with a lifetime of their own. The origin's
    /// lifetime takes precedence.
    package var freshFor: [String: Int64] = [:]

    package init(isObeyed: Bool, shortest: Int64, longest: Int64, defaultLifetime: Int64) {
        self.isObeyed = isObeyed
        self.shortest = shortest
        self.longest = longest
        self.defaultLifetime = defaultLifetime
    }

    /// The longest time in seconds for which a source that breaks off is fresh: its upload may still be in progress. Equals the lifetime of
    /// the failure of a source that cannot be converted.
    static let longestForIncomplete: Int64 = 600

    /// Whether and for how long the source at `url` may be stored.
    func permission(for url: SourceURL, _ directives: CacheDirectives) -> StoragePermission {
        // The longest prefix wins if one mount lies within another.
        let configured = freshFor.filter { url.canonical.hasPrefix($0.key) }
            .max { $0.key.utf8.count < $1.key.utf8.count }?.value
        guard isObeyed else { return permission(configured) }
        // `private` excludes shared caches, and this is one.
        if directives.noStore || directives.isPrivate { return .denied }
        var found = permission(configured)
        if let lifetime = directives.noCache ? 0 : directives.freshFor {
            let most = directives.isLimitedByDefault ? min(longest, configured ?? defaultLifetime) : longest
            found = permission(min(max(Int64(lifetime), shortest), most))
        }
        found.mustRevalidate = directives.forbidsStale
        return found
    }

    /// Whether the source at `url` may stay stored after the origin has confirmed it (304), and for how long.
    ///
    /// Directives that the response does not repeat keep their value (RFC 9111 section 4.3.4), a lifetime within the bounds. A mount's
    /// lifetime replaces the stored one, which does not show whether it came from the origin or from an earlier setting of the mount.
    ///
    /// - Parameter known: The stored directives.
    func permission(for url: SourceURL, _ directives: CacheDirectives, renewing known: AliasRecord) -> StoragePermission {
        var found = permission(for: url, directives)
        guard isObeyed, found.isAllowed else { return found }
        if found.freshFor == nil, let lifetime = known.freshFor { found = permission(min(max(lifetime, shortest), longest)) }
        found.mustRevalidate = directives.isEmpty ? known.mustRevalidate : directives.forbidsStale
        return found
    }

    /// - Parameter freshFor: Seconds; nil if neither the origin nor a mount gives a lifetime.
    private func permission(_ freshFor: Int64?) -> StoragePermission {
        StoragePermission(
            freshFor: freshFor, freshForIncomplete: min(freshFor ?? defaultLifetime, Self.longestForIncomplete))
    }
}

/// Whether renditions of a source may be stored, and for how long they are fresh.
struct StoragePermission: Sendable, Equatable {
    /// If false, the rendition is still sent to all callers of the flight: the fetch carried no credentials of any of them.
    var isAllowed = true
    /// Seconds; nil if the origin gives no lifetime.
    var freshFor: Int64?
    /// Whether the origin forbids to use the source once it is stale.
    var mustRevalidate = false
    /// Seconds, if the source breaks off.
    var freshForIncomplete = OriginRules.longestForIncomplete

    static let denied = StoragePermission(isAllowed: false)
}
