internal import CSystem
package import SystemIO

/// The result of a successful fetch.
package enum FetchOutcome: Sendable {
    /// The source's bytes.
    case fetched(FetchedSource)
    /// The source has not changed since the validators were received (304).
    case notModified(UnmodifiedSource)
}

/// A complete source, recognized by its first bytes. The reader must validate the rest.
package struct FetchedSource: Sendable {
    /// A sealed memory file: no process can change it.
    package let bytes: SharedDescriptor
    /// The size in bytes.
    package let count: Int
    /// The SHA-256 of the bytes: 32 bytes.
    package let sha256: [UInt8]
    /// The validators for the next conditional request; none if a redirect led to the source, because validators belong to the
    /// URL whose response contains them (RFC 9110 section 8.8).
    package let validators: SourceValidators
    /// The combined directives of the response and of all redirects that led to it.
    package let cacheDirectives: CacheDirectives
    /// The time from the start of the first request to the end of the last response.
    package let duration: Duration
}

/// A 304 response. Validators that the origin did not repeat keep their values (RFC 9111 section 4.3.4).
package struct UnmodifiedSource: Sendable {
    package let validators: SourceValidators
    package let cacheDirectives: CacheDirectives
    /// The time from the start of the first request to the end of the last response.
    package let duration: Duration
}

/// The validators of an origin's response (RFC 9110 section 8.8), for conditional requests.
package struct SourceValidators: Hashable, Sendable {
    /// The entity tag with its quotes; a weak tag begins with `W/`.
    package let etag: String?
    /// The date in the origin's own spelling.
    package let lastModified: String?

    /// Drops every value that is not a well-formed entity tag or date, so that an origin cannot inject a header field.
    package init(etag: String? = nil, lastModified: String? = nil) {
        self.etag = etag.flatMap { Self.isEntityTag($0) ? $0 : nil }
        self.lastModified = lastModified.flatMap { Self.isDate($0) ? $0 : nil }
    }

    /// Whether there is no validator, so that a request cannot be conditional.
    package var isEmpty: Bool { etag == nil && lastModified == nil }

    /// Whether a 304 with these validators confirms the stored response with the validators `known` (RFC 9111 section 4.3.4).
    ///
    /// Entity tags are compared weakly, because some servers weaken a tag in only one of the two responses.
    func confirm(_ known: SourceValidators) -> Bool {
        if let etag, let stored = known.etag { return Self.opaque(etag) == Self.opaque(stored) }
        if let lastModified, let stored = known.lastModified {
            return curl_getdate(lastModified, nil) == curl_getdate(stored, nil)
        }
        // A tag that the stored response lacks names another representation.
        return etag == nil
    }

    private static func opaque(_ etag: String) -> Substring { etag.hasPrefix("W/") ? etag.dropFirst(2) : etag[...] }

    private static let maxLength = 1024

    private static func isEntityTag(_ text: String) -> Bool {
        let opaque = text.hasPrefix("W/") ? text.utf8.dropFirst(2) : text.utf8[...]
        guard opaque.count >= 2, opaque.count <= maxLength, opaque.first == UInt8(ascii: "\""),
            opaque.last == UInt8(ascii: "\"")
        else { return false }
        // The replacement character stands for bytes that are lost, so the origin would not recognize the tag.
        return !text.contains("\u{FFFD}")
            && opaque.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "\"") && $0 != 0x7f }
    }

    private static func isDate(_ text: String) -> Bool {
        text.utf8.count <= 64 && text.utf8.allSatisfy { (0x20...0x7e).contains($0) } && curl_getdate(text, nil) >= 0
    }
}

/// An origin's directives for caching its response (RFC 9111 section 5.2).
package struct CacheDirectives: Hashable, Sendable {
    /// `no-store`: the response must not be stored.
    package internal(set) var noStore = false
    /// `no-cache`: a stored response must be validated before each use.
    package internal(set) var noCache = false
    /// `private`: the response must not be stored by a shared cache.
    package internal(set) var isPrivate = false
    /// Whether a shared cache must not use the response once it is stale: `must-revalidate`, `proxy-revalidate`, `no-cache` or
    /// `s-maxage` (RFC 9111 section 4.2.4).
    package internal(set) var forbidsStale = false
    /// Whether there was no `Cache-Control`.
    package private(set) var isEmpty = true
    /// `s-maxage`, or else `max-age`, in seconds.
    package var maxAge: Int? { sharedMaxAge ?? plainMaxAge }
    /// The seconds for which the response is fresh after its arrival: its lifetime minus its age on arrival (RFC 9111 sections
    /// 4.2.1 and 4.2.3); nil if the origin gave no lifetime.
    package internal(set) var freshFor: Int?
    /// The same without `s-maxage`: the lifetime in private caches (RFC 9111 section 5.2.2.10).
    package private(set) var clientFreshFor: Int?
    /// Whether the default lifetime limits the freshness, because the response or a temporary redirect gave no lifetime.
    package var isLimitedByDefault = false

    private var sharedMaxAge: Int?
    private var plainMaxAge: Int?

    /// Parses the values of all `Cache-Control` fields, joined by commas. Unknown directives are ignored. The smallest of
    /// several lifetimes counts.
    ///
    /// - Parameters:
    ///   - expiry: Seconds from `Date` to `Expires`, if present; a `max-age` or `s-maxage` overrides it.
    ///   - age: The value of `Age`: the seconds that the response spent in caches.
    package init(_ text: String = "", expiry: Int? = nil, age: Int = 0) {
        for item in text.split(separator: ",") {
            isEmpty = false
            let parts = item.split(separator: "=", maxSplits: 1)
            let name = parts.first.map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
            let value = parts.count == 2 ? parts[1].filter { $0 != " " && $0 != "\t" && $0 != "\"" } : ""
            switch name {
            case "no-store": noStore = true
            case "no-cache": (noCache, forbidsStale) = (true, true)
            case "must-revalidate", "proxy-revalidate": forbidsStale = true
            case "private": isPrivate = true
            case "max-age": plainMaxAge = Self.minimum(plainMaxAge, value)
            case "s-maxage":
                sharedMaxAge = Self.minimum(sharedMaxAge, value)
                forbidsStale = true
            default: break
            }
        }
        freshFor = (maxAge ?? expiry).map { max(0, $0 - age) }
        clientFreshFor = (plainMaxAge ?? expiry).map { max(0, $0 - age) }
    }

    /// Requires validation of a stored response before each use, like `no-cache`.
    mutating func requireValidation() {
        (noCache, forbidsStale, isEmpty) = (true, true, false)
    }

    /// Keeps the stricter value of each directive. The smallest lifetime counts, if there is one.
    mutating func restrict(by other: CacheDirectives) {
        noStore = noStore || other.noStore
        noCache = noCache || other.noCache
        isPrivate = isPrivate || other.isPrivate
        forbidsStale = forbidsStale || other.forbidsStale
        freshFor = [freshFor, other.freshFor].compactMap { $0 }.min()
        clientFreshFor = [clientFreshFor, other.clientFreshFor].compactMap { $0 }.min()
    }

    /// RFC 9111 section 1.2.2: a number that is too large counts as 2³¹. A value that is not a number makes the response stale.
    private static func minimum(_ known: Int?, _ text: some StringProtocol) -> Int {
        let isNumber = !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let value = isNumber ? min(Int(text) ?? .max, 1 << 31) : 0
        return min(known ?? .max, value)
    }
}
