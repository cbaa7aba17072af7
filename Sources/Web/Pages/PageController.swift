internal import Fetch
internal import HTTP
internal import Media
internal import Renditions
internal import Sandbox
internal import Store
internal import SystemIO
internal import Telemetry

/// Handles requests for the player page of a source and for its oEmbed document.
struct PageController: Sendable {
    let policy: WebPolicy
    let pipeline: RenditionPipeline
    let background: BackgroundRenditions
    let responder: RenditionResponder
    let problems: ProblemResponder
    let asynchronous: AsyncResponder
    let log: ResponseLog
    let pages: PageResolver
    let playerPage: PlayerPage
    let tracer: OTLPTracer

    /// Whether pages have addresses from the settings. Otherwise they repeat the host and the scheme of the request, so that caches must
    /// compare them before each use: a client could have stored a page that sends others to a host of its own.
    private var hasOwnAddress: Bool { policy.publicURL != nil }

    /// Responds with the player page of a target. It starts no conversion that the visitor waits for: the browser requests the
    /// video.
    ///
    /// - Throws: The problem of the target.
    func player(
        _ target: ParsedTarget, _ client: ClientContext, _ form: ProblemForm, _ request: borrowing HTTPRequest
    ) throws(Problem) -> HTTPReply {
        let page = try pages.page(target, sentAs: request.target, client)
        return .later(in: RequestSpan(of: request, tracer)) {
            // The page needs only the facts of its source.
            let facts = client.request(Rendition(format: .json), of: page.source)
            if let accepted = await asynchronous.response(to: facts, client, url: page.target, page.terms) { return accepted }
            // The facts and the video share one fetch, and count as one miss.
            var visitor = client
            visitor.allowance = client.allowance.countedOnce
            let shown = await showing(page, visitor)
            return await compose(shown, visitor, form) { (facts, result) throws(Problem) in
                let contents = shown.contents(facts, poster: try shown.poster(facts))
                let isComposed = shown.smallerVideo != nil || (result.isStorable && queueSmallerVideo(of: shown, client))
                let lifetime: RenditionResponder.PageLifetime =
                    shown.original != nil || !hasOwnAddress ? .temporary : isComposed ? .composed : .source
                return responder.pageResponse(result, shown.terms, lifetime) {
                    playerPage.resource(contents, fields: $0, lastModified: shown.lastModified(result.rendition))
                }
            }
        }
    }

    /// Looks up the stored videos, and decides whether the page shows the GIF: if there is no video, and its client does not wait
    /// or the video is known to fail. For a client that does not wait, the video is produced in the background.
    private func showing(_ page: RequestedPage, _ client: ClientContext) async -> RequestedPage {
        let video = client.request(page.videoRendition, of: page.source)
        var page = page
        page.video = await pipeline.stored(video)
        if let smaller = page.smallerRendition {
            page.smallerVideo = await pipeline.stored(client.request(smaller, of: page.source))
        }
        guard page.original != nil else { return page }
        if page.video != nil || (page.onMiss != .original && !pipeline.isKnownToFail(video)) {
            page.original = nil
        } else if page.onMiss == .original {
            // Without an allowance, the page is the same and the video is not produced.
            pipeline.produceBehindResponse(video)
        }
        return page
    }

    /// Queues the video in AV1, if the settings say so, the one in H.264 was requested often enough, and it is not stored.
    ///
    /// - Returns: Whether the page is about to change.
    private func queueSmallerVideo(of page: RequestedPage, _ client: ClientContext) -> Bool {
        guard let after = policy.av1After, !client.wantsStoredOnly, page.video?.uses ?? 0 >= after, page.smallerVideo == nil,
            let smaller = page.smallerRendition
        else { return false }
        let entry = client.request(smaller, of: page.source)
        guard !pipeline.isKnownToFail(entry) else { return false }
        background.add(entry, after: client.request(page.videoRendition, of: page.source))
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
        return .later(in: RequestSpan(of: request, tracer)) {
            await compose(page, client, .document) { (facts, result) throws(Problem) in
                let poster = try page.poster(facts)
                // The server signs the thumbnail itself, so a client may choose among a few widths only.
                var thumbnail = try facts.bounded(
                    poster, maxWidth: query.maxWidth, maxHeight: query.maxHeight,
                    widths: page.isSigned ? WidthHints.steps : nil)
                if page.isBounded, thumbnail != poster { thumbnail = nil }
                let contents = page.contents(facts, poster: thumbnail ?? poster)
                let maxAge = responder.caching.lifetime(of: result, page.terms)
                let document = OEmbed(contents, query, hasThumbnail: thumbnail != nil, maxAge: maxAge)
                return responder.pageResponse(result, page.terms, hasOwnAddress ? .source : .temporary) { fields in
                    let text = JSONText.encode(document, inSnakeCase: true)
                    return HTTPResource(
                        bytes: text, contentType: Rendition.Format.json.contentType,
                        entityTag: PageTag.of(String(decoding: text, as: UTF8.self)),
                        lastModified: Int(result.rendition.created), headers: fields)
                }
            }
        }
    }

    /// Composes the response of a page from the facts of its source.
    private func compose(
        _ page: RequestedPage, _ client: ClientContext, _ form: ProblemForm,
        _ body: (PageFacts, RenditionResult) throws(Problem) -> HTTPResponse
    ) async -> HTTPResponse {
        let (facts, result): (PageFacts, RenditionResult)
        do throws(RenditionError) {
            (facts, result) = try await self.facts(of: page, client)
        } catch {
            return await errorResponse(error, page, client, form)
        }
        do throws(Problem) {
            // The facts of most pages are in memory; their requests are in the access log.
            if result.provenance != .hit { log.answered(page.rendition, host: page.source.host, result) }
            return try body(facts, result)
        } catch {
            return problems.failure(error, host: page.source.host, page.terms, form: form)
        }
    }

    private func errorResponse(
        _ error: RenditionError, _ page: RequestedPage, _ client: ClientContext, _ form: ProblemForm
    ) async -> HTTPResponse {
        do throws(RenditionError) {
            let video = client.request(page.videoRendition, of: page.source)
            if page.onError == .original, let original = try await pipeline.original(insteadOf: error, for: video) {
                return responder.response(original, .source, page.terms)
            }
            return problems.failure(Problem(error), host: page.source.host, page.terms, form: form)
        } catch {
            return problems.failure(Problem(error), host: page.source.host, page.terms, form: form)
        }
    }

    /// Finds the facts of the page's source.
    private func facts(
        of page: RequestedPage, _ client: ClientContext
    ) async throws(RenditionError) -> (PageFacts, RenditionResult) {
        let result = try await pipeline.find(client.request(Rendition(format: .json), of: page.source))
        guard let facts = PageFacts(result.rendition) else { throw .overloaded(cause: nil) }
        return (facts, result)
    }
}
