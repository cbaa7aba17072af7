/// The metadata of a stored rendition.
package struct ObjectRecord: Sendable, Equatable {
    package let id: ObjectID
    /// The file's extension without its dot, such as `mp4`.
    package let fileExtension: String
    package let length: Int64
    package let content: ContentDigest
    /// The time of publication in seconds since 1970, for `Last-Modified`.
    package let created: Int64
    /// Bytes from the publisher, opaque to the cache, such as dimensions and durations.
    package let facts: [UInt8]

    var name: RenditionName { RenditionName(self) }

    /// The largest number of bytes of facts, which are stored in memory and in the database.
    package static let maxFactsCount = 16 * 1024

    /// The largest plausible size or time, in bytes or seconds. Sums of such values cannot overflow.
    static let maxNumber: Int64 = 1 << 53

    /// An extension is one to eight of `a…z 0…9`: it becomes part of a file's name.
    static func isExtension(_ text: String) -> Bool {
        (1...8).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) }
    }
}

/// The alias of a source's rendition: its origin, the time of the last response, and the validators for revalidation.
package struct AliasRecord: Sendable, Equatable {
    package let key: AliasKey
    /// The source's canonical URL. A purge by URL or prefix compares it byte by byte.
    package let sourceURL: String
    /// The canonical text of format and options; empty in an alias of an older version.
    package let rendition: String
    /// The validators of the origin's last response.
    package var validators: Validators
    /// Its times, by ``TimeSource/steadySeconds``.
    package var times: OriginTimes

    package init(
        key: AliasKey, sourceURL: String, rendition: String, validators: Validators = Validators(), times: OriginTimes
    ) {
        self.key = key
        self.sourceURL = sourceURL
        self.rendition = rendition
        self.validators = validators
        self.times = times
    }
}

/// When an origin's response came, and for how long it may be used.
package struct OriginTimes: Sendable, Equatable {
    /// The time of the response in seconds.
    package var fetchedAt: Int64
    /// The freshness lifetime in seconds, if the origin gave one; nil for ``CacheConfiguration/freshFor``.
    package var freshFor: Int64?
    /// The lifetime in the caches of clients, if the origin gave shared caches a longer one (RFC 9111 section 5.2.2.10).
    package var clientFreshFor: Int64?
    /// Whether the origin forbids using the response once it is stale (RFC 9111 section 4.2.4).
    package var mustRevalidate: Bool

    package init(
        fetchedAt: Int64, freshFor: Int64? = nil, clientFreshFor: Int64? = nil, mustRevalidate: Bool = false
    ) {
        self.fetchedAt = fetchedAt
        self.freshFor = freshFor
        self.clientFreshFor = clientFreshFor
        self.mustRevalidate = mustRevalidate
    }

    /// Whether the values may be trusted after they were read from the database, or came from another node.
    package var isInRange: Bool {
        let range = -ObjectRecord.maxNumber...ObjectRecord.maxNumber
        return [fetchedAt, freshFor, clientFreshFor].allSatisfy { range.contains($0 ?? 0) }
    }
}

/// The origin's validators (RFC 9110 section 8.8), verbatim as stored, for a conditional request.
///
/// Not shared with `Fetch`, whose type also checks what an origin sent: the two targets do not import each other, and
/// `Renditions` contains the only conversion.
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

/// How far an alias may be trusted at a moment (RFC 9111 section 4.2, RFC 5861 section 3).
package enum Freshness: Sendable, Equatable {
    /// Trusted for `remaining` more seconds, at least one.
    case fresh(remaining: Int64)
    /// May be used while the origin is asked again; it was fresh until `age` seconds ago.
    case stale(age: Int64)
    /// Must not be used before the origin has been asked; its validators are still valid.
    case expired
    /// A purge may have been missed: the origin has to be asked first. The alias may be used if the origin does not answer.
    case unconfirmed

    /// The freshness at `now` of a response at `fetchedAt`; all in seconds.
    ///
    /// A response from the future is stale: the clock was set back since, so its age is unknown.
    package init(fetchedAt: Int64, freshFor: Int64, staleFor: Int64, now: Int64) {
        let (difference, isOverflow) = now.subtractingReportingOverflow(fetchedAt)
        let age = isOverflow ? (now > fetchedAt ? .max : .min) : difference
        let freshFor = max(0, freshFor)
        if age < 0 {
            // Uses a saturated sum. A response further in the future than it could ever be used is expired.
            let (usable, isLong) = freshFor.addingReportingOverflow(staleFor)
            self = staleFor > 0 && -(age + 1) < (isLong ? .max : usable) ? .stale(age: 0) : .expired
        } else if age < freshFor {
            self = .fresh(remaining: freshFor - age)
        } else if age - freshFor < staleFor {
            self = .stale(age: age - freshFor)
        } else {
            self = .expired
        }
    }
}

/// The name of a rendition, in the cache and in the shared store: its content id and its file's extension.
package struct RenditionName: Hashable, Sendable, CustomStringConvertible {
    package let id: ObjectID
    /// The extension without its dot, such as `mp4`.
    package let fileExtension: String

    init(_ record: ObjectRecord) {
        (id, fileExtension) = (record.id, record.fileExtension)
    }

    /// - Parameter fileExtension: One to eight of `a…z 0…9`; nil for other text.
    package init?(id: ObjectID, fileExtension: String) {
        guard ObjectRecord.isExtension(fileExtension) else { return nil }
        (self.id, self.fileExtension) = (id, fileExtension)
    }

    /// Reads `{id}.{extension}`.
    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let id = ObjectID(hex: parts[0]) else { return nil }
        self.init(id: id, fileExtension: String(parts[1]))
    }

    package var description: String { "\(id).\(fileExtension)" }
}
