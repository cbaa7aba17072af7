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
    /// `Cache-Status` of a hit, made once.
    private let hit: HTTPHeaders = ["Cache-Status": "gifreel; hit"]

    init(_ configuration: ServiceConfiguration) {
        var common: HTTPHeaders = ["X-Content-Type-Options": "nosniff"]
        if let origin = configuration.allowOrigin { common.append("Access-Control-Allow-Origin", origin) }
        var source = common
        source.append(
            "Cache-Control",
            "public, max-age=\(configuration.maxAge), stale-while-revalidate=\(configuration.cache.staleFor)")
        var object = common
        object.append("Cache-Control", "public, max-age=31536000, immutable")
        sourceFields = source
        objectFields = object
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
        case .stored, .unstored, .collapsed: headers.append("Server-Timing", found.times.serverTiming)
        case .hit, .stale: break
        }
        return HTTPResponse(resource(found.rendition, address), headers: headers)
    }

    /// RFC 9211.
    static func cacheStatus(_ provenance: RenditionStore.Provenance) -> String {
        switch provenance {
        case .hit: "gifreel; hit"
        case .stale(let age): "gifreel; hit; ttl=-\(age)"
        case .stored: "gifreel; fwd=miss; stored"
        case .unstored: "gifreel; fwd=miss"
        case .collapsed: "gifreel; fwd=miss; collapsed"
        }
    }

    /// The path of a stored rendition by its content.
    static func path(_ rendition: CachedRendition) -> String {
        "/object/\(rendition.objectID).\(rendition.fileExtension)"
    }

    /// The rendition as the engine sends it, which is prepared once and kept with it. A rendition found by its source
    /// and one found by its id are two values, so each keeps its own.
    private func resource(_ rendition: CachedRendition, _ address: Address) -> HTTPResource {
        if let prepared = rendition.attachment as? HTTPResource { return prepared }
        let format = Rendition.Format(rawValue: rendition.fileExtension)
        let resource = HTTPResource(
            file: rendition.descriptor, length: Int(rendition.length),
            contentType: format?.contentType ?? "application/octet-stream", entityTag: "\"\(rendition.objectID)\"",
            lastModified: Int(rendition.created), headers: address == .source ? sourceFields : objectFields)
        return rendition.attach(resource) as? HTTPResource ?? resource
    }
}
