internal import Fetch
internal import HTTP
internal import Renditions
internal import Store
internal import Telemetry

/// Handles requests for the player page of a source and for its oEmbed document.
struct PageController: Sendable {
    let policy: WebPolicy
    let renditions: RenditionController
    let pages: PageResolver
    let playerPage: PlayerPage

    /// Whether page addresses come from the settings. Otherwise they repeat the request's host and scheme, so caches must
    /// revalidate pages before each use: a client could have stored a page that sends others to a host of its own.
    private var hasOwnAddress: Bool { policy.publicURL != nil }

    /// Responds with the player page of a target. It starts no conversion that the visitor waits for: the browser requests the
    /// video.
    ///
    /// - Throws: The problem of the target.
    func player(
        _ target: ParsedTarget, _ client: ClientContext, _ form: ProblemForm, _ request: borrowing HTTPRequest
    ) throws(Problem) -> HTTPReply {
        let page = try pages.page(target, sentAs: request.target, client)
        return .later(in: RequestSpan(of: request, renditions.tracer)) {
            // The page needs only the facts of its source.
            let facts = client.request(Rendition(format: .json), of: page.source)
            let accepted = await renditions.asynchronous.response(
                to: facts, client, url: page.target, page.terms, orOriginalAfter: { _ in page.onError == .original })
            if let accepted { return accepted }
            // The facts and the video share one fetch, and count as one miss.
            var visitor = client
            visitor.allowance = client.allowance.countedOnce
            let shown = await showing(page, visitor)
            return await compose(shown, visitor, form) { (facts, result) throws(Problem) in
                let contents = shown.contents(facts, poster: try shown.poster(facts))
                let isComposed =
                    shown.smallerVideo != nil || shown.flashes || (result.isStorable && queueSmallerVideo(of: shown, client))
                let lifetime: RenditionResponder.PageLifetime =
                    shown.original != nil || !hasOwnAddress ? .temporary : isComposed ? .composed : .source
                return renditions.responder.pageResponse(result, shown.terms, lifetime) {
                    playerPage.resource(contents, fields: $0, lastModified: shown.lastModified(result.rendition))
                }
            }
        }
    }

    /// Looks up the stored videos, and decides whether the page shows the GIF: it does if there is no video, and the client
    /// does not wait or the video is known to fail. For a client that does not wait, the video is produced in the background. A GIF
    /// that flashes, or may flash, is not shown if the settings forbid it.
    private func showing(_ page: RequestedPage, _ client: ClientContext) async -> RequestedPage {
        let video = client.request(page.videoRendition, of: page.source)
        var page = page
        page.video = await renditions.pipeline.stored(video)
        if let smaller = page.smallerRendition {
            page.smallerVideo = await renditions.pipeline.stored(client.request(smaller, of: page.source))
        }
        page.flashes = page.video == nil && renditions.pipeline.isKnownToFlash(video)
        guard page.original != nil else { return page }
        let isKnownToFail = renditions.pipeline.isKnownToFail(video)
        if page.video != nil || (page.onMiss != .original && !isKnownToFail) {
            page.original = nil
        } else if page.onMiss == .original {
            // Without an allowance, the page is the same and the video is not produced.
            renditions.pipeline.produceBehindResponse(video)
        }
        if page.flashes || (!isKnownToFail && renditions.pipeline.withholdsMotion) { page.original = nil }
        return page
    }

    /// Queues the AV1 video if the settings enable it, the H.264 video was requested often enough, and it is not stored.
    ///
    /// - Returns: Whether the page is about to change.
    private func queueSmallerVideo(of page: RequestedPage, _ client: ClientContext) -> Bool {
        guard let after = policy.av1After, !client.wantsStoredOnly, page.video?.uses ?? 0 >= after, page.smallerVideo == nil,
            let smaller = page.smallerRendition
        else { return false }
        let entry = client.request(smaller, of: page.source)
        guard !renditions.pipeline.isKnownToFail(entry) else { return false }
        renditions.background.add(entry, after: client.request(page.videoRendition, of: page.source))
        return true
    }

    /// Responds with the oEmbed document of the page that the query names.
    ///
    /// - Throws: The problem of the query.
    func oembed(
        _ items: [QueryItem], _ client: ClientContext, _ request: borrowing HTTPRequest
    ) throws(Problem) -> HTTPReply {
        let query = try OEmbed.Query(items)
        var context = client
        let page = try pages.page(embedding: query.url, &context, request)
        let client = context
        return .later(in: RequestSpan(of: request, renditions.tracer)) {
            await compose(page, client, .document) { (facts, result) throws(Problem) in
                let poster = try page.poster(facts)
                // The server signs the thumbnail itself, so a client may choose among a few widths only.
                var thumbnail = try facts.bounded(
                    poster, maxWidth: query.maxWidth, maxHeight: query.maxHeight,
                    widths: page.isSigned ? WidthHints.steps : nil)
                if page.isBounded, thumbnail != poster { thumbnail = nil }
                let contents = page.contents(facts, poster: thumbnail ?? poster)
                let maxAge = renditions.responder.caching.lifetime(of: result, page.terms)
                let document = OEmbed(
                    contents, query, hasThumbnail: thumbnail != nil, maxAge: maxAge, siteName: policy.preview.siteName)
                return renditions.responder.pageResponse(result, page.terms, hasOwnAddress ? .source : .temporary) { fields in
                    HTTPResource(
                        JSONText.encode(document, inSnakeCase: true), Rendition.Format.json.contentType,
                        lastModified: Int(result.rendition.created), headers: fields)
                }
            }
        }
    }

    private func compose(
        _ page: RequestedPage, _ client: ClientContext, _ form: ProblemForm,
        _ body: (PageFacts, RenditionResult) throws(Problem) -> HTTPResponse
    ) async -> HTTPResponse {
        let (facts, result): (PageFacts, RenditionResult)
        do throws(RenditionError) {
            (facts, result) = try await self.facts(of: page, client)
        } catch {
            let video = client.request(page.videoRendition, of: page.source)
            return await renditions.errorResponse(error, video, page.onError, page.terms, form: form)
        }
        do throws(Problem) {
            // The facts of most pages are in memory; the access log records their requests.
            if result.provenance != .hit { renditions.log.answered(page.rendition, host: page.source.host, result) }
            return try body(facts, result)
        } catch {
            return renditions.problems.failure(error, host: page.source.host, page.terms, form: form)
        }
    }

    private func facts(
        of page: RequestedPage, _ client: ClientContext
    ) async throws(RenditionError) -> (PageFacts, RenditionResult) {
        let result = try await renditions.pipeline.find(client.request(Rendition(format: .json), of: page.source))
        guard let facts = PageFacts(result.rendition) else { throw .overloaded(cause: nil) }
        return (facts, result)
    }
}

/// The oEmbed document of a page (oembed.com, section 2.3.4.2: the video type).
struct OEmbed: Encodable, Equatable {
    var type = "video"
    var version = "1.0"
    var providerName: String
    var title: String
    var cacheAge: Int
    /// The address and size of the thumbnail; nil if no poster fits the consumer's bounds.
    var thumbnailUrl: String?
    var thumbnailWidth: Int?
    var thumbnailHeight: Int?
    var html: String
    var width: Int
    var height: Int

    /// The parameters of a consumer's request.
    struct Query: Equatable, Sendable {
        /// The address of a player page, of a video or poster of this server, or of a GIF.
        var url: String
        var maxWidth: Int?
        var maxHeight: Int?

        /// - Throws: ``Problem``: 501 for formats other than JSON, as oembed.com demands; 400 for invalid parameters.
        init(_ items: [QueryItem]) throws(Problem) {
            var url: String?
            for item in items {
                switch item.name {
                case "url":
                    guard url == nil else { throw .badOption("url", "is given twice") }
                    url = item.value
                case "maxwidth": maxWidth = try Self.size(item)
                case "maxheight": maxHeight = try Self.size(item)
                case "format":
                    guard item.value == "json" else {
                        throw Problem(501, "not_implemented", "oEmbed documents are available as JSON only.")
                    }
                default: break  // Consumers may send other parameters.
                }
            }
            guard let url else { throw .badSourceURL("The parameter url is missing: the address of a page or of a GIF.") }
            self.url = url
        }

        private static func size(_ item: QueryItem) throws(Problem) -> Int {
            guard let size = DecimalText.whole(item.value), size > 0 else {
                throw .badOption(item.name, "must be a whole number of at least 1")
            }
            return size
        }
    }

    /// - Parameters:
    ///   - contents: The contents of the player page; its poster is the thumbnail.
    ///   - maxAge: Seconds for which consumers may store the document.
    ///   - siteName: The name of the site in the page's own tags; nil for none.
    init(_ contents: PlayerPage.Contents, _ query: Query, hasThumbnail: Bool, maxAge: Int, siteName: String? = nil) {
        providerName = siteName ?? "Gifreel"
        // Consumers show it as it is.
        title = String(String.UnicodeScalarView(contents.name.unicodeScalars.map { HTMLText.isControl($0) ? "\u{fffd}" : $0 }))
        cacheAge = maxAge
        if hasThumbnail {
            thumbnailUrl = contents.links.base + contents.links.namedPoster
            thumbnailWidth = contents.posterWidth
            thumbnailHeight = contents.posterHeight
        }
        (width, height) = Self.fit(contents.width, contents.height, query.maxWidth, query.maxHeight)
        html =
            "<iframe src=\"\(HTMLText.escape(contents.links.base + contents.links.namedPage))\" width=\"\(width)\" height=\"\(height)\""
            + " title=\"\(HTMLText.escape(contents.name))\" style=\"border:0\" allow=\"autoplay\" loading=\"lazy\"></iframe>"
    }

    /// The largest size with the same aspect ratio within both bounds, and no larger than the video.
    static func fit(_ width: Int, _ height: Int, _ maxWidth: Int?, _ maxHeight: Int?) -> (Int, Int) {
        var size = (width, height)
        if let maxWidth, size.0 > maxWidth { size = (maxWidth, max(1, height * maxWidth / width)) }
        if let maxHeight, size.1 > maxHeight { size = (max(1, width * maxHeight / height), maxHeight) }
        return size
    }
}
