/// What is known of a source's rendition: where it came from, when, and how to ask whether it has changed.
package struct AliasRecord: Sendable, Equatable {
    package let key: AliasKey
    /// The source's canonical URL; what a purge by URL or prefix is compared with, byte by byte.
    package let sourceURL: String
    /// What the origin said to recognise its answer by.
    package var validators: Validators
    /// When the origin last answered for it, in seconds since 1970.
    package var fetchedAt: Int64
    /// Seconds it is fresh, where the origin said so; nil for ``CacheConfiguration/freshFor``.
    package var freshFor: Int64?

    package init(
        key: AliasKey, sourceURL: String, validators: Validators = Validators(), fetchedAt: Int64, freshFor: Int64? = nil
    ) {
        self.key = key
        self.sourceURL = sourceURL
        self.validators = validators
        self.fetchedAt = fetchedAt
        self.freshFor = freshFor
    }

    /// Whether the values may be trusted after they were read from the index or the journal.
    var isInRange: Bool {
        let range = -ObjectRecord.maxNumber...ObjectRecord.maxNumber
        return range.contains(fetchedAt) && range.contains(freshFor ?? 0)
    }
}

/// The origin's validators (RFC 9110 section 8.8), verbatim, for a conditional request.
package struct Validators: Sendable, Equatable {
    /// The `ETag` field's value with its quotes and its `W/`.
    package var etag: String?
    /// The `Last-Modified` field's value.
    package var lastModified: String?

    package init(etag: String? = nil, lastModified: String? = nil) {
        self.etag = etag
        self.lastModified = lastModified
    }
}
