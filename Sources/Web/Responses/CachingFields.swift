internal import Digests
internal import Fetch
internal import HTTP
internal import Renditions
internal import Store
internal import SystemIO

/// `Cache-Control` and related fields: how long caches may store a response.
struct CachingFields: Sendable {
    let policy: HeadPolicy
    let cache: Cache
    /// Returns the seconds until a time, which is in seconds since 1970.
    let secondsLeft: @Sendable (Int64) -> Int64
    /// Seconds of `max-age` of stale renditions, whose renewal is under way. With 0, all clients of a shared cache would ask
    /// again while an origin fails.
    private static let staleMaxAge = 5

    /// `Cache-Control` with a constant value, and `Vary`.
    static func constant(_ cacheControl: String, vary: String?) -> HTTPHeaders {
        var fields: HTTPHeaders = ["Cache-Control": cacheControl]
        if let vary { fields.append("Vary", vary) }
        return fields
    }

    func fields(
        of result: RenditionResult, _ address: RenditionResponder.Address, _ terms: ResponseTerms, isIncomplete: Bool
    ) -> HTTPHeaders {
        guard result.isStorable else { return Self.constant("no-store", vary: terms.vary) }
        return fields(
            ofStored: result.rendition, address, terms, isIncomplete: isIncomplete, isStale: result.provenance.isStale)
    }

    /// The fields of a response with a stored rendition. Caches may store the response for as long as the origin permits this
    /// cache to, and no longer than the signature of the request is valid. The alias of a truncated source has a short
    /// lifetime, after which caches must not send the response.
    ///
    /// Without fields for CDNs, the lifetime is the number of the fields, so that it can be set for each response.
    func fields(
        ofStored rendition: CachedRendition, _ address: RenditionResponder.Address, _ terms: ResponseTerms, isIncomplete: Bool,
        isStale: Bool = false
    ) -> HTTPHeaders {
        if address == .object {
            let year: Int64 = 31_536_000
            // The signature of an upload may expire although the object never changes.
            if let left = terms.expires.map(secondsLeft), left < year {
                return Self.constant("public, max-age=\(left)", vary: terms.vary)
            }
            return Self.constant("public, max-age=\(year), immutable", vary: terms.vary)
        }
        let alias = rendition.alias
        let left = terms.expires.map(secondsLeft)
        /// Appends the directives for caches that may store the response for `configured` seconds, less the reduction.
        func append(_ name: HTTPFieldName, _ configured: Int, _ reduction: Int64 = 0, to fields: inout HTTPHeaders) {
            let age = lifetime(of: rendition, configured, reduction, terms, isStale: isStale)
            var (number, rest) = (age, "")
            if let left { number = min(age, left) }
            if alias?.times.mustRevalidate == true {
                rest = ", must-revalidate"
            } else if !isIncomplete, left.map({ $0 >= age + policy.staleFor }) ?? true {
                rest = ", stale-while-revalidate=\(policy.staleFor), stale-if-error=\(policy.staleFor)"
            }
            fields.append(name, "public, max-age=", number: Int(number), rest)
        }
        var fields = HTTPHeaders()
        append("Cache-Control", terms.maxAge ?? policy.maxAge, rendition.clientReduction, to: &fields)
        if let vary = terms.vary { fields.append("Vary", vary) }
        if let cdnMaxAge = policy.cdnMaxAge {
            append("CDN-Cache-Control", cdnMaxAge, to: &fields)
            if let alias { fields.append(CDNTags(alias.sourceURL).fields) }
        }
        return fields
    }

    /// Whether responses for the same rendition with the same terms differ only in the number in their fields.
    var areNumbered: Bool { policy.cdnMaxAge == nil }

    /// Returns the seconds for which a consumer may store a document composed from a result: as long as caches may.
    func lifetime(of result: RenditionResult, _ terms: ResponseTerms) -> Int {
        guard result.isStorable else { return 0 }
        let age = lifetime(
            of: result.rendition, terms.maxAge ?? policy.maxAge, result.rendition.clientReduction, terms,
            isStale: result.provenance.isStale)
        return Int(min(age, terms.expires.map(secondsLeft) ?? .max))
    }

    /// Returns the lifetime of a response in seconds: the configured lifetime or the origin's, minus the time since the origin
    /// was asked. Otherwise each cache would restart it.
    ///
    /// - Parameters:
    ///   - configured: The lifetime in the settings.
    ///   - reduction: For clients, ``CachedRendition/clientReduction``.
    private func lifetime(
        of rendition: CachedRendition, _ configured: Int, _ reduction: Int64, _ terms: ResponseTerms, isStale: Bool
    ) -> Int64 {
        let most = Int64(min(configured, terms.longest ?? .max))
        if isStale { return min(most, Int64(Self.staleMaxAge)) }
        guard case .fresh(let remaining) = cache.freshness(of: rendition) else { return rendition.isOfSource ? 0 : most }
        return min(most, lifetime(of: rendition, remaining: remaining - reduction, configured))
    }

    /// The lifetime of a response with a rendition that is fresh for `remaining` seconds.
    func hitLifetime(of rendition: CachedRendition, remaining: Int64, _ terms: ResponseTerms) -> Int64 {
        let configured = terms.maxAge ?? policy.maxAge
        return min(
            Int64(min(configured, terms.longest ?? .max)),
            lifetime(of: rendition, remaining: remaining - rendition.clientReduction, configured))
    }

    private func lifetime(of rendition: CachedRendition, remaining: Int64, _ configured: Int) -> Int64 {
        guard rendition.isOfSource else { return .max }
        // The settings may let clients keep a response for longer than this cache trusts the source.
        let surplus = rendition.isLimitedByOrigin ? 0 : max(0, Int64(configured) - cache.configuration.freshFor)
        return max(0, remaining) + surplus
    }
}

extension RenditionResult.Provenance {
    fileprivate var isStale: Bool {
        if case .stale = self { true } else { false }
    }
}

/// The tags by which a CDN purges all responses made from a source, or from all sources of a host.
///
/// They are hashes, because a response of a mount must not reveal its origin.
struct CDNTags: Equatable {
    let host: String
    let source: String

    /// - Parameter sourceURL: In canonical form.
    init(_ sourceURL: String) {
        host = "gifreel-host-" + Self.hash(Self.host(of: sourceURL))
        source = "gifreel-source-" + Self.hash(sourceURL)
    }

    /// The host of a URL; the bucket of an object in S3.
    private static func host(of sourceURL: String) -> String {
        if sourceURL.hasPrefix(SourceURL.s3Scheme) {
            return String(sourceURL.dropFirst(SourceURL.s3Scheme.count).prefix { $0 != "/" })
        }
        return (try? SourceURL(sourceURL))?.host ?? ""
    }

    /// The first 16 hexadecimal digits of the SHA-256 of a text.
    private static func hash(_ text: String) -> String {
        Hex.encode(SHA256.hash(text.utf8).prefix(8))
    }

    /// The tags as the large CDNs read them: separated by commas in `Cache-Tag`, by spaces in `Surrogate-Key`.
    var fields: HTTPHeaders {
        ["Cache-Tag": "\(host),\(source)", "Surrogate-Key": "\(host) \(source)"]
    }
}

/// Values of `Cache-Status` (RFC 9211).
enum CacheStatusField {
    /// The value for a result. It has at most one `detail`: a truncated source, or else the provenance.
    static func value(_ provenance: RenditionResult.Provenance, isIncomplete: Bool = false) -> String {
        let (status, detail): (String, String?) =
            switch provenance {
            case .hit: ("gifreel; hit", nil)
            // Only a negative integer means stale (section 2.5), so an age of 0 counts as one second.
            case .stale(let age): ("gifreel; hit; ttl=\(-max(age, 1))", nil)
            case .stored: ("gifreel; fwd=miss; stored", nil)
            case .renewed: ("gifreel; fwd=stale; fwd-status=304; stored", nil)
            case .unstored(let reason): ("gifreel; fwd=miss", reason.token)
            case .collapsed: ("gifreel; fwd=miss; collapsed", nil)
            case .shared: ("gifreel; fwd=miss; stored", "shared")
            case .followed: ("gifreel; fwd=miss; collapsed", "shared")
            }
        let shown = isIncomplete ? "incomplete-source" : detail
        return shown.map { "\(status); detail=\($0)" } ?? status
    }

    /// The value for a source that is passed on.
    static let followed = "gifreel; fwd=miss; detail=original"
}

extension UnstoredReason {
    /// The reason as a token for `Cache-Status` (RFC 9211 section 2.8).
    var token: String {
        switch self {
        case .unwanted: "origin-forbids"
        case .purged: "purged"
        case .tooLarge: "too-large"
        case .diskFull: "disk-full"
        case .lowSpace: "low-space"
        case .readOnly: "read-only"
        case .directoryLost: "directory-lost"
        case .unavailable: "busy"
        case .failed: "disk-error"
        }
    }
}
