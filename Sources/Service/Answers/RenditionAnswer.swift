internal import Cache
internal import HTTP

/// Turns renditions into answers (API.md §2).
struct RenditionAnswer: Sendable {
    /// How the answer was asked for: what a URL of a source gives may change, what a content id gives does not.
    enum Address {
        case source
        case object
    }

    private let sourceFields: HTTPHeaders
    private let objectFields: HTTPHeaders
    private let unstorableFields: HTTPHeaders
    private let common: HTTPHeaders
    private let maxAge: Int
    private let staleFor: Int64
    /// `Cache-Status` of a hit, made once.
    private let hit: HTTPHeaders = ["Cache-Status": "gifreel; hit"]

    init(_ configuration: ServiceConfiguration) {
        var common: HTTPHeaders = ["X-Content-Type-Options": "nosniff"]
        if let origin = configuration.allowOrigin { common.append("Access-Control-Allow-Origin", origin) }
        self.common = common
        maxAge = configuration.maxAge
        staleFor = configuration.cache.staleFor
        sourceFields = Self.fields(common, maxAge: maxAge, staleFor: staleFor)
        objectFields = Self.fields(common, "public, max-age=31536000, immutable")
        unstorableFields = Self.fields(common, "no-store")
    }

    private static func fields(_ common: HTTPHeaders, _ cacheControl: String) -> HTTPHeaders {
        var fields = common
        fields.append("Cache-Control", cacheControl)
        return fields
    }

    private static func fields(_ common: HTTPHeaders, maxAge: Int, staleFor: Int64) -> HTTPHeaders {
        fields(common, "public, max-age=\(maxAge), stale-while-revalidate=\(staleFor)")
    }

    /// The answer of a hit; builds no strings.
    func hit(_ rendition: CachedRendition, _ address: Address) -> HTTPResponse {
        HTTPResponse(resource(rendition, address), headers: hit)
    }

    /// The answer of whatever was found or made.
    func response(_ found: RenditionStore.Found, _ address: Address) -> HTTPResponse {
        var headers = HTTPHeaders()
        headers.append("Cache-Status", Self.cacheStatus(found.provenance))
        switch found.provenance {
        case .stored, .unstored, .collapsed, .renewed: headers.append("Server-Timing", found.times.serverTiming)
        case .hit, .stale: break
        }
        let resource = found.isStorable
            ? resource(found.rendition, address) : Self.make(found.rendition, fields: unstorableFields)
        return HTTPResponse(resource, headers: headers)
    }

    /// RFC 9211.
    static func cacheStatus(_ provenance: RenditionStore.Provenance) -> String {
        switch provenance {
        case .hit: "gifreel; hit"
        case .stale(let age): "gifreel; hit; ttl=-\(age)"
        case .stored: "gifreel; fwd=miss; stored"
        case .renewed: "gifreel; fwd=stale; fwd-status=304; stored"
        case .unstored(let reason): "gifreel; fwd=miss; detail=\(reason.token)"
        case .collapsed: "gifreel; fwd=miss; collapsed"
        }
    }

    /// The path of a stored rendition by its content.
    static func path(_ rendition: CachedRendition) -> String {
        "/object/\(rendition.objectID).\(rendition.fileExtension)"
    }

    /// The rendition as the engine sends it, which is prepared once and kept with it: with one found by its source what a
    /// source's answer is, with one found by its id what an object's is.
    private func resource(_ rendition: CachedRendition, _ address: Address) -> HTTPResource {
        let isFoundBySource = rendition.alias != nil
        guard isFoundBySource == (address == .source) else {
            return Self.make(rendition, fields: address == .source ? sourceFields : objectFields)
        }
        if let prepared = rendition.attachment as? HTTPResource { return prepared }
        let resource = Self.make(rendition, fields: fields(rendition.alias))
        return rendition.attach(resource) as? HTTPResource ?? resource
    }

    /// What caches on the way may do: no more than the origin lets this one do.
    private func fields(_ alias: AliasRecord?) -> HTTPHeaders {
        guard let alias else { return objectFields }
        guard let freshFor = alias.freshFor, freshFor < maxAge else { return sourceFields }
        return Self.fields(common, maxAge: Int(freshFor), staleFor: staleFor)
    }

    /// A strong validator (RFC 9110 section 8.8.1) is one of bytes: half of their SHA-256. An object's name will not do, since
    /// x264 gives other bytes with another number of threads: a range of one encoding must never be put to a range of another.
    private static func entityTag(_ rendition: CachedRendition) -> String {
        "\"\(rendition.content.description.prefix(32))\""
    }

    private static func make(_ rendition: CachedRendition, fields: HTTPHeaders) -> HTTPResource {
        HTTPResource(
            file: rendition.descriptor, length: Int(rendition.length),
            contentType: Rendition.Format(rawValue: rendition.fileExtension)?.contentType ?? "application/octet-stream",
            entityTag: entityTag(rendition), lastModified: Int(rendition.created), headers: fields)
    }
}

extension UnstoredReason {
    /// The reason as a token for `Cache-Status` (RFC 9211 section 2.8).
    var token: String {
        switch self {
        case .unwanted: "origin-forbids"
        case .purged: "purged"
        case .tooLarge: "too-large"
        case .diskFull: "disk-full"
        case .readOnly: "read-only"
        case .directoryLost: "directory-lost"
        case .unavailable: "busy"
        case .failed: "disk-error"
        }
    }
}
