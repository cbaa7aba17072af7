internal import Cache
internal import HTTP
internal import Renditions

/// The fields that instruct HTTP caches.
struct CachingFields: Sendable {
    private let policy: HeadPolicy
    private let secondsLeft: @Sendable (Int64) -> Int64
    private var maxAge: Int { policy.maxAge }
    private var staleFor: Int64 { policy.staleFor }
    /// Seconds of `max-age` of stale renditions: their renewal is under way. It is more than 0, because the clients of a shared cache
    /// would all ask again while an origin fails.
    private static let staleMaxAge = 5

    /// - Parameter secondsLeft: Returns the seconds until a time, which is in seconds since 1970.
    init(_ policy: HeadPolicy, secondsLeft: @escaping @Sendable (Int64) -> Int64) {
        self.policy = policy
        self.secondsLeft = secondsLeft
    }

    /// `Cache-Control` with a constant value, and `Vary`.
    static func constant(_ cacheControl: String, vary: String?) -> HTTPHeaders {
        var fields: HTTPHeaders = ["Cache-Control": cacheControl]
        if let vary { fields.append("Vary", vary) }
        return fields
    }

    /// The fields of a response with a result of the pipeline.
    func fields(
        of result: RenditionResult, _ address: RenditionResponder.Address, _ terms: ResponseTerms, isIncomplete: Bool
    ) -> HTTPHeaders {
        guard result.isStorable else { return Self.constant("no-store", vary: terms.vary) }
        let limited = Self.limited(terms, result)
        return fields(ofStored: result.rendition.alias, address, limited, isIncomplete: isIncomplete)
    }

    /// The fields of a response with a stored rendition. Caches may store the response for as long as the origin permits this cache
    /// to, and no longer than the signature of the request is valid. The alias of a source that breaks off has a short lifetime,
    /// beyond which they must not send the response.
    func fields(
        ofStored alias: AliasRecord?, _ address: RenditionResponder.Address, _ terms: ResponseTerms, isIncomplete: Bool
    ) -> HTTPHeaders {
        if address == .object {
            let year: Int64 = 31_536_000
            // The signature of an upload may expire although the object never changes.
            if let left = terms.expires.map(secondsLeft), left < year {
                return Self.constant("public, max-age=\(left)", vary: terms.vary)
            }
            return Self.constant("public, max-age=\(year), immutable", vary: terms.vary)
        }
        let left = terms.expires.map(secondsLeft)
        /// The directives for caches that may store the response for `age` seconds.
        func directives(_ age: Int) -> String {
            let age = Self.age(age, alias, terms)
            if isIncomplete { return "public, max-age=\(min(age, left ?? age))" }
            if let left, left < age + staleFor { return "public, max-age=\(min(age, left))" }
            return "public, max-age=\(age), stale-while-revalidate=\(staleFor), stale-if-error=\(staleFor)"
        }
        var fields = Self.constant(directives(terms.maxAge ?? maxAge), vary: terms.vary)
        if let cdnMaxAge = policy.cdnMaxAge {
            fields.append("CDN-Cache-Control", directives(cdnMaxAge))
            if let alias { fields.append(CDNTags(alias.sourceURL).fields) }
        }
        return fields
    }

    /// The seconds for which a consumer may store what was composed from a result: as long as caches may.
    func lifetime(of result: RenditionResult, _ terms: ResponseTerms) -> Int {
        guard result.isStorable else { return 0 }
        let terms = Self.limited(terms, result)
        let age = Self.age(terms.maxAge ?? maxAge, result.rendition.alias, terms)
        return Int(min(age, terms.expires.map(secondsLeft) ?? .max))
    }

    /// The terms of a response with a result: those of a stale one are limited.
    private static func limited(_ terms: ResponseTerms, _ result: RenditionResult) -> ResponseTerms {
        if case .stale = result.provenance { return terms.limited(to: staleMaxAge) }
        return terms
    }

    /// The lifetime of a response in seconds.
    ///
    /// - Parameter configured: That of the settings.
    private static func age(_ configured: Int, _ alias: AliasRecord?, _ terms: ResponseTerms) -> Int64 {
        min(Int64(min(configured, terms.longest ?? .max)), alias?.freshFor ?? .max)
    }
}
