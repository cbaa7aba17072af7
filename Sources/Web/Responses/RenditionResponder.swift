internal import HTTP
internal import Media
internal import Renditions
internal import Store
internal import Synchronization
internal import SystemIO

struct RenditionResponder: Sendable {
    /// The address by which a request names the rendition. The rendition of a source may change, an object does not.
    enum Address {
        case source
        case object
    }

    /// The parts of a response that are prepared once per rendition and stay attached to it.
    private final class Prepared: Sendable {
        /// The number of the policy for which the fields below are valid.
        let policyNumber: Int
        /// The file, with the fields that all responses have in common.
        let resource: HTTPResource
        /// `Cache-Control` and `Cache-Status` of a hit of a plain request.
        let hit: HTTPHeaders
        let isLargerThanSource: Bool
        /// Whether negotiation sends the source in place of the rendition.
        let staysSource: Bool
        /// The format of a source that is stored unchanged; nil for other renditions.
        let sourceFormat: SourceFormat?
        /// Whether this is a source whose first bytes are those of a still image.
        let isStillImage: Bool
        /// `Content-Disposition` of responses to requests for a source; nil for the base of a document and for a rendition that
        /// was found by its id.
        let disposition: String?
        let isOfIncompleteSource: Bool
        /// The fields of a hit for the most recent terms that are not plain. Nearly all requests for a rendition have the same
        /// terms, such as those of a mount that negotiates.
        private let latest = Mutex<(terms: ResponseTerms, fields: HTTPHeaders)?>(nil)

        init(
            _ resource: HTTPResource, hit: HTTPHeaders, _ facts: RenditionFacts?, _ sourceFormat: SourceFormat?,
            isStillImage: Bool, disposition: String?, policyNumber: Int
        ) {
            self.isStillImage = isStillImage
            self.policyNumber = policyNumber
            self.disposition = disposition
            self.sourceFormat = sourceFormat
            staysSource = facts?.staysSource(length: Int64(resource.length)) ?? false
            self.resource = resource
            self.hit = hit
            isLargerThanSource = facts.map { resource.length > $0.sourceBytes } ?? false
            isOfIncompleteSource = facts?.isOfIncompleteSource ?? false
        }

        /// Returns the fields of a hit for terms that do not depend on the time.
        func hit(_ terms: ResponseTerms, composing compose: () -> HTTPHeaders) -> HTTPHeaders {
            if let fields = latest.withLock({ $0.flatMap { $0.terms == terms ? $0.fields : nil } }) { return fields }
            let fields = compose()
            latest.withLock { $0 = (terms, fields) }
            return fields
        }
    }

    /// How long caches may store a response.
    let caching: CachingFields
    private let cache: Cache
    private let common: HTTPHeaders
    /// The number of the policy. Equal policies have the same number, so hits compare only numbers.
    private let policyNumber: Int
    /// Seconds of `max-age` of responses that are composed for each request.
    static let composedMaxAge = 60

    /// - Parameter secondsLeft: Returns the seconds until a time, which is in seconds since 1970.
    init(
        _ settings: WebPolicy, cache: Cache, crossOrigin: CrossOrigin, secondsLeft: @escaping @Sendable (Int64) -> Int64
    ) {
        // Pages with a cross-origin embedder policy may show renditions too, as other pages do.
        var common: HTTPHeaders = ["Cross-Origin-Resource-Policy": "cross-origin", "X-Content-Type-Options": "nosniff"]
        common.append(crossOrigin.fields)
        self.common = common
        self.cache = cache
        caching = CachingFields(policy: settings.head, cache: cache, secondsLeft: secondsLeft)
        policyNumber = Self.number(of: settings.head)
    }

    /// Returns the response of a hit. It builds no strings, unless the signature of the request expires or there are fields for
    /// CDNs.
    ///
    /// - Parameter remaining: Seconds for which the rendition is fresh.
    func hit(
        _ rendition: CachedRendition, _ address: Address, remaining: Int64, _ terms: ResponseTerms = .plain
    ) -> HTTPResponse {
        let prepared = prepared(rendition)
        rendition.countUse()
        func compose() -> HTTPHeaders {
            let isIncomplete = prepared.isOfIncompleteSource
            let fields = caching.fields(ofStored: rendition, address, terms, isIncomplete: isIncomplete)
            return Self.with(fields, .hit, isIncomplete: isIncomplete, address == .source ? prepared.disposition : nil)
        }
        // The prepared fields fit one kind of address, but a rendition may be requested by its source and by its id.
        guard terms.expires == nil, rendition.isOfSource == (address == .source), address == .object || caching.areNumbered
        else { return HTTPResponse(prepared.resource, headers: compose()) }
        var headers = terms.isPlain ? prepared.hit : prepared.hit(terms, composing: compose)
        headers.number = Int(caching.hitLifetime(of: rendition, remaining: remaining, terms))
        return HTTPResponse(prepared.resource, headers: headers)
    }

    func hit(_ object: CachedRendition) -> HTTPResponse {
        // An object is always fresh.
        hit(object, .object, remaining: 0)
    }

    /// Whether a rendition has more bytes than its GIF.
    func isLargerThanSource(_ rendition: CachedRendition) -> Bool { prepared(rendition).isLargerThanSource }

    /// Whether negotiation sends the source in place of the rendition.
    func staysSource(_ rendition: CachedRendition) -> Bool { prepared(rendition).staysSource }

    /// Whether a stored source is a still image, as far as its first bytes tell.
    func isStillImage(_ rendition: CachedRendition) -> Bool { prepared(rendition).isStillImage }

    /// Whether a client accepts a stored source; true for other renditions.
    func isAcceptable(_ rendition: CachedRendition, _ accept: AcceptField) -> Bool {
        prepared(rendition).sourceFormat.map(accept.accepts) ?? true
    }

    /// Returns the response with a result of the pipeline.
    ///
    /// - Parameter sourceURL: In canonical form. It names the file of a rendition that is not stored under it.
    func response(
        _ result: RenditionResult, _ address: Address, of sourceURL: String? = nil, _ terms: ResponseTerms = .plain
    ) -> HTTPResponse {
        let prepared = prepared(result.rendition)
        result.rendition.countUse()
        let isIncomplete = prepared.isOfIncompleteSource
        let fields = caching.fields(of: result, address, terms, isIncomplete: isIncomplete)
        let disposition = prepared.disposition ?? Self.disposition(of: result.rendition, at: sourceURL)
        var headers = Self.with(
            fields, result.provenance, isIncomplete: isIncomplete, address == .source ? disposition : nil)
        switch result.provenance {
        case .stored, .unstored, .collapsed, .renewed, .shared, .followed:
            headers.append("Server-Timing", result.times.serverTiming)
        case .hit, .stale: break
        }
        return HTTPResponse(prepared.resource, headers: headers)
    }

    /// Returns the response with a source that is passed on as it arrives. Its tag is its own, because validators depend on all
    /// bytes, so conditions and ranges of the request do not apply.
    ///
    /// - Parameter sourceURL: In canonical form.
    func originalResponse(_ source: FollowedSource, of sourceURL: String, _ terms: ResponseTerms) -> HTTPResponse {
        // The next response is the rendition, so no cache may reuse this one without revalidation.
        var headers = CachingFields.constant(source.isStorable ? "no-cache" : "no-store", vary: terms.vary)
        // Without a tag, caches compare its `Date` with `Last-Modified` of the rendition, which may have the same second.
        headers.append("ETag", "\"\(Hex.encode(UInt128.random(in: .min ... .max)))\"")
        headers.append("Cache-Status", CacheStatusField.followed)
        headers.append("Content-Type", source.format.mediaType)
        headers.append("Content-Disposition", FileName(of: sourceURL, source.format.fileExtensions).disposition)
        headers.append("Cross-Origin-Resource-Policy", "cross-origin")
        headers.append("X-Content-Type-Options", "nosniff")
        return HTTPResponse(
            status: 200, headers: headers,
            body: .stream(length: source.length) { writer in
                try await source.forEachPiece { try await writer.write($0) }
            })
    }

    /// Returns the response with a document that was composed from a stored rendition and the current contents of the cache.
    func documentResponse(
        _ body: (bytes: [UInt8], lastModified: Int), _ result: RenditionResult, _ terms: ResponseTerms
    ) -> HTTPResponse {
        // An object never changes, but the document does.
        var response = response(result, .source, terms.limited(to: Self.composedMaxAge))
        response.body = .resource(document(body))
        return response
    }

    /// Returns the response with a document that was composed from a stored object and the current contents of the cache.
    func documentResponse(_ body: (bytes: [UInt8], lastModified: Int)) -> HTTPResponse {
        let headers = CachingFields.constant("public, max-age=\(Self.composedMaxAge)", vary: nil)
        return HTTPResponse(document(body), headers: Self.with(headers, .hit))
    }

    private func document(_ body: (bytes: [UInt8], lastModified: Int)) -> HTTPResource {
        HTTPResource(body.bytes, Rendition.Format.json.contentType, lastModified: body.lastModified, headers: common)
    }

    /// Returns a response that will change soon: caches must revalidate it before each use, if they may store it.
    func temporary(_ response: HTTPResponse, _ terms: ResponseTerms) -> HTTPResponse {
        guard case .resource = response.body, response.headers["Cache-Control"] != "no-store" else { return response }
        var fields = CachingFields.constant("no-cache", vary: terms.vary)
        for name in ["Content-Disposition", "Cache-Status", "Server-Timing"] as [HTTPFieldName] {
            if let value = response.headers[name] { fields.append(name, value) }
        }
        var response = response
        response.headers = fields
        return response
    }

    /// How long a page is valid.
    enum PageLifetime {
        /// As long as its source.
        case source
        /// A short time, because it depends on the contents of the cache.
        case composed
        /// Caches must revalidate before each use: the page will change soon, or depends on more of the request than they know.
        case temporary
    }

    /// Returns the response with a page that is composed from a stored rendition.
    ///
    /// - Parameters:
    ///   - compose: Returns the page as a resource with the given fields, which every response has.
    func pageResponse(
        _ result: RenditionResult, _ terms: ResponseTerms, _ lifetime: PageLifetime = .source,
        composing compose: (HTTPHeaders) -> HTTPResource
    ) -> HTTPResponse {
        let terms = lifetime == .composed ? terms.limited(to: Self.composedMaxAge) : terms
        var response = response(result, .source, terms)
        if lifetime == .temporary {
            response.headers = Self.with(
                CachingFields.constant(result.isStorable ? "no-cache" : "no-store", vary: terms.vary), result.provenance,
                isIncomplete: prepared(result.rendition).isOfIncompleteSource)
        }
        response.body = .resource(compose(common))
        return response
    }

    private static func with(
        _ fields: HTTPHeaders, _ provenance: RenditionResult.Provenance, isIncomplete: Bool = false,
        _ disposition: String? = nil
    ) -> HTTPHeaders {
        var fields = fields
        if let disposition { fields.append("Content-Disposition", disposition) }
        fields.append("Cache-Status", CacheStatusField.value(provenance, isIncomplete: isIncomplete))
        return fields
    }

    private static func disposition(of rendition: CachedRendition, at url: String?) -> String? {
        guard let url, let format = Rendition.Format(rawValue: rendition.fileExtension), format.isSentAsStored else {
            return nil
        }
        let fileExtensions = format == .original ? OriginalFile.fileExtensions(rendition.descriptor) : format.fileExtensions
        return FileName(of: url, fileExtensions).disposition
    }

    /// The path of a stored rendition by its content.
    static func path(_ rendition: CachedRendition) -> String {
        "/object/\(rendition.objectID).\(rendition.fileExtension)"
    }

    /// Every policy since the start of the process; its index is its number.
    private static let policies = Mutex<[HeadPolicy]>([])

    private static func number(of policy: HeadPolicy) -> Int {
        policies.withLock { policies in
            if let known = policies.firstIndex(of: policy) { return known }
            policies.append(policy)
            return policies.count - 1
        }
    }

    private func prepared(_ rendition: CachedRendition) -> Prepared {
        let attached = rendition.attachment as? Prepared
        if let attached, attached.policyNumber == policyNumber { return attached }
        let address = rendition.isOfSource ? Address.source : .object
        let facts = RenditionFacts(stored: rendition.facts)
        let isIncomplete = facts?.isOfIncompleteSource ?? false
        let plain = caching.fields(ofStored: rendition, address, .plain, isIncomplete: isIncomplete)
        let sourceFormat = rendition.isOriginal ? OriginalFile.format(rendition.descriptor) : nil
        let disposition = Self.disposition(of: rendition, at: rendition.alias?.sourceURL)
        let prepared = Prepared(
            resource(rendition, sourceFormat), hit: Self.with(plain, .hit, isIncomplete: isIncomplete, disposition), facts,
            sourceFormat, isStillImage: rendition.isOriginal && OriginalFile.image(rendition.descriptor) != nil,
            disposition: disposition, policyNumber: policyNumber)
        // The attachment keeps its first value until the rendition leaves the cache's memory, which a reload causes. A request
        // under the old policy may have attached its parts again meanwhile; this response must not use them. Nothing is
        // attached for a small file that was not read: this response brings it into the page cache.
        if attached == nil, !prepared.resource.isUnread { rendition.attach(prepared) }
        return prepared
    }

    /// A strong validator identifies bytes (RFC 9110 section 8.8.1), so it is half of their SHA-256. The object's id does not
    /// identify them: x264's output depends on its number of threads, and ranges of two encodings must not be combined.
    private static func entityTag(_ rendition: CachedRendition) -> String {
        "\"\(rendition.content.description.prefix(32))\""
    }

    private func resource(_ rendition: CachedRendition, _ sourceFormat: SourceFormat?) -> HTTPResource {
        let mediaType =
            sourceFormat == nil
            ? Rendition.Format(rawValue: rendition.fileExtension)?.contentType : OriginalFile.mediaType(rendition.descriptor)
        return HTTPResource(
            file: rendition.descriptor, length: Int(rendition.length), contentType: mediaType ?? "application/octet-stream",
            entityTag: Self.entityTag(rendition), lastModified: Int(rendition.created), headers: common,
            // The resource is attached to the rendition.
            onDamage: { [cache, weak rendition] in
                guard let rendition else { return }
                Task { await cache.discardCorrupt(rendition) }
            })
    }
}

extension CachedRendition {
    var isOriginal: Bool { fileExtension == Rendition.Format.original.rawValue }

    /// Whether this is a still picture that is sent in place of a flashing animation.
    var isPoster: Bool { Rendition.Format(rawValue: fileExtension)?.isPoster ?? false }
}
