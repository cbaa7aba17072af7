internal import Cache
internal import Fetch
internal import Glibc
internal import HTTP
internal import Media
internal import OTLP
internal import Renditions
internal import Sandbox
internal import SystemIO

/// Handles requests for pages: the home page, the player page, and the oEmbed document of the player page.
struct PageController: Sendable {
    /// A player page that a request names.
    private struct Page: Sendable {
        var rendition: Rendition
        let source: SourceURL
        /// The page's own target.
        var target: String
        /// The part of the page's absolute address before the target.
        var base: String
        var addresses: RenditionAddresses
        var terms: ResponseTerms
        /// The address of the GIF, if the page shows it until there is a video, or because there can be none.
        var original: String?
        let onMiss: Mount.OnMiss
        var onError: Mount.OnError
        /// Whether its addresses may have only the options that unsigned requests may have.
        let isBounded: Bool
        /// Whether its addresses are signed.
        let isSigned: Bool
        /// The stored video in H.264, and in AV1.
        var video: CachedRendition?
        var smallerVideo: CachedRendition?

        /// The video that every browser can play.
        var videoRendition: Rendition { rendition.inFormat(.mp4) }
        /// The same in AV1; nil if the program has no encoder for it.
        var smallerRendition: Rendition? { videoRendition.encoded(by: .av1) }

        /// The time of the last change of what the page shows, in seconds since 1970. A page with the GIF changes when there is a video
        /// or none can be produced, which has no such time.
        func lastModified(_ facts: CachedRendition) -> Int? {
            guard original == nil else { return nil }
            return [facts, video, smallerVideo].compactMap { $0.map { Int($0.created) } }.max()
        }
    }

    private let pipeline: RenditionPipeline
    private let background: BackgroundRenditions
    private let responder: RenditionResponder
    private let asynchronous: AsyncResponder
    private let problems: ProblemResponder
    private let log: ResponseLog
    private let parser: RouteParser
    private let access: AccessControl
    private let policy: WebPolicy
    private let tracer: OTLPTracer
    private let homePage: HomePage?
    private let playerPage = PlayerPage()
    private let pageScript: PageScript
    private let openAPIDocument: OpenAPIDocument

    init(
        _ policy: WebPolicy, pipeline: RenditionPipeline, background: BackgroundRenditions, responder: RenditionResponder,
        problems: ProblemResponder, asynchronous: AsyncResponder, log: ResponseLog, crossOrigin: CrossOrigin,
        parser: RouteParser, access: AccessControl, tracer: OTLPTracer
    ) {
        self.policy = policy
        self.tracer = tracer
        self.pipeline = pipeline
        self.background = background
        self.responder = responder
        self.problems = problems
        self.asynchronous = asynchronous
        self.log = log
        self.parser = parser
        self.access = access
        homePage =
            policy.hasHomePage ? HomePage(policy, pipeline.defaults, crossOrigin: crossOrigin, startedAt: time(nil)) : nil
        openAPIDocument = OpenAPIDocument(policy, crossOrigin: crossOrigin, startedAt: time(nil))
        pageScript = PageScript(crossOrigin: crossOrigin, startedAt: time(nil))
    }

    /// The script for pages with GIFs.
    func script() -> HTTPResponse { pageScript.response }

    /// The description of the interface.
    func openAPI() -> HTTPResponse { openAPIDocument.response }

    /// The home page.
    ///
    /// - Throws: `not_found` if it is switched off.
    func home() throws(Problem) -> HTTPResponse {
        guard let homePage else { throw .notFound("The home page is switched off.") }
        return homePage.response
    }

    // MARK: Responses

    /// Responds with the player page of a target. It starts no conversion that the visitor waits for: the browser requests the
    /// video.
    ///
    /// - Throws: The problem of the target.
    func player(
        _ target: ParsedTarget, _ client: ClientContext, _ form: ProblemForm, _ request: borrowing HTTPRequest
    ) throws(Problem) -> HTTPReply {
        let page = try page(target, text: target.withoutCallback(request.target, keys: policy.signingKeys), client)
        return .later(in: RequestSpan(of: request, tracer)) {
            // The page needs only the facts of its source.
            let facts = self.request(Rendition(format: .json), of: page, client)
            if let accepted = await asynchronous.response(to: facts, client, url: page.target, page.terms) { return accepted }
            // The facts and the video share one fetch, and count as one miss.
            var visitor = client
            visitor.allowance = client.allowance.countedOnce
            let shown = await showing(page, visitor)
            return await compose(shown, visitor, form) { (facts, result) throws(Problem) in
                let contents = contents(of: shown, facts, poster: try poster(of: shown, facts))
                let isComposed = shown.smallerVideo != nil || (result.isStorable && queueSmallerVideo(of: shown, client))
                let lifetime: RenditionResponder.PageLifetime =
                    shown.original != nil ? .temporary : isComposed ? .composed : .source
                return responder.pageResponse(result, shown.terms, lifetime) {
                    playerPage.resource(contents, fields: $0, lastModified: shown.lastModified(result.rendition))
                }
            }
        }
    }

    /// Looks up the stored videos, and decides whether the page shows the GIF: if there is no video, and its client does not wait
    /// or the video is known to fail. For a client that does not wait, the video is produced behind the response.
    private func showing(_ page: Page, _ client: ClientContext) async -> Page {
        let video = request(page.videoRendition, of: page, client)
        var page = page
        page.video = await pipeline.stored(video)
        if let smaller = page.smallerRendition { page.smallerVideo = await pipeline.stored(request(smaller, of: page, client)) }
        guard page.original != nil else { return page }
        if page.video != nil || (page.onMiss == .wait && !pipeline.isKnownToFail(video)) {
            page.original = nil
        } else if page.onMiss == .original {
            // Without an allowance, the page is the same and the video is not produced.
            pipeline.produceBehindResponse(video)
        }
        return page
    }

    /// Queues the video in AV1, if the settings say so and it is not stored.
    ///
    /// - Returns: Whether the page is about to change.
    private func queueSmallerVideo(of page: Page, _ client: ClientContext) -> Bool {
        guard policy.producesAV1InBackground, page.smallerVideo == nil, let smaller = page.smallerRendition else {
            return false
        }
        let entry = request(smaller, of: page, client)
        guard !pipeline.isKnownToFail(entry) else { return false }
        if background.contains(entry) { return true }
        // It counts as a miss of the client, as any other conversion. Without an allowance, it is left to a later visitor.
        guard entry.allowance.useIfAvailable() else { return true }
        background.add(entry, after: request(page.videoRendition, of: page, client))
        return true
    }

    private func request(_ rendition: Rendition, of page: Page, _ client: ClientContext) -> RenditionRequest {
        RenditionRequest(rendition, of: page.source, urgency: client.urgency, allowance: client.allowance)
    }

    /// Responds with the oEmbed document of the page that the query names.
    ///
    /// - Throws: The problem of the query.
    func oembed(
        _ items: [QueryItem], _ client: ClientContext, _ request: borrowing HTTPRequest
    ) throws(Problem) -> HTTPReply {
        let query = try OEmbed.Query(items)
        var context = client
        let page = try page(embedding: query.url, &context, request)
        let client = context
        return .later(in: RequestSpan(of: request, tracer)) {
            await compose(page, client, .document) { (facts, result) throws(Problem) in
                let poster = try poster(of: page, facts)
                // The server signs the thumbnail itself, so a client may choose among a few widths only.
                var thumbnail = try facts.bounded(
                    poster, maxWidth: query.maxWidth, maxHeight: query.maxHeight,
                    widths: page.isSigned ? WidthHints.steps : nil)
                if page.isBounded, thumbnail != poster { thumbnail = nil }
                let contents = contents(of: page, facts, poster: thumbnail ?? poster)
                let maxAge = responder.caching.lifetime(of: result, page.terms)
                let document = OEmbed(contents, query, hasThumbnail: thumbnail != nil, maxAge: maxAge)
                return responder.pageResponse(result, page.terms) { fields in
                    let text = JSONText.encode(document)
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
        _ page: Page, _ client: ClientContext, _ form: ProblemForm,
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
        _ error: RenditionError, _ page: Page, _ client: ClientContext, _ form: ProblemForm
    ) async -> HTTPResponse {
        do throws(RenditionError) {
            let video = request(page.videoRendition, of: page, client)
            if page.onError == .original, let original = try await pipeline.original(insteadOf: error, for: video) {
                return responder.response(original, .source, page.terms)
            }
            return problems.failure(Problem(error), host: page.source.host, page.terms, form: form)
        } catch {
            return problems.failure(Problem(error), host: page.source.host, page.terms, form: form)
        }
    }

    /// Finds the facts of the page's source.
    private func facts(of page: Page, _ client: ClientContext) async throws(RenditionError) -> (PageFacts, RenditionResult) {
        let result = try await pipeline.find(request(Rendition(format: .json), of: page, client))
        guard let facts = PageFacts(result.rendition) else { throw .overloaded(cause: nil) }
        return (facts, result)
    }

    // MARK: Pages

    /// The poster of a page, in a frame whose address every client may have if the page is bounded.
    private func poster(of page: Page, _ facts: PageFacts) throws(Problem) -> Rendition {
        page.isBounded ? page.rendition.inFormat(.jpg) : try facts.poster(of: page.rendition)
    }

    /// The page that a target names.
    ///
    /// - Parameters:
    ///   - parsed: The target after parsing.
    ///   - target: The target as it was sent, without a callback.
    ///   - base: The part of the absolute address before the target; nil for that of the server.
    private func page(
        _ parsed: ParsedTarget, text target: String, base: String? = nil, _ client: ClientContext
    ) throws(Problem) -> Page {
        guard case .rendition(let rendition, let source) = parsed.route else { throw Self.notAPage }
        return Page(
            rendition: rendition, source: source, target: target,
            base: base ?? PageLinks.base(publicURL: policy.publicURL, scheme: client.scheme, host: client.host),
            addresses: RenditionAddresses(parsed, of: source, keys: policy.signingKeys), terms: parsed.terms,
            original: original(parsed, source), onMiss: parsed.onMiss, onError: parsed.onError,
            isBounded: access.bounds(parsed), isSigned: parsed.key != nil)
    }

    /// The address of the GIF that a page may show: that of the mount, which negotiates, or that of its origin. A mount that does
    /// not negotiate has no address of the GIF, and its origin is not shown to clients.
    private func original(_ parsed: ParsedTarget, _ source: SourceURL) -> String? {
        guard parsed.onMiss == .original || parsed.onError == .original else { return nil }
        guard let mount = parsed.mount, let address = parsed.address else { return source.canonical }
        let root = policy.publicURL.map(PageLinks.path) ?? ""
        return mount.negotiates && parsed.credentials?.signature == nil ? root + address.source : nil
    }

    /// The page for the URL of an oEmbed request: the URL of a page, of a rendition of the same source, or of a GIF.
    ///
    /// - Throws: The problem that a request for the page would have.
    private func page(
        embedding url: String, _ client: inout ClientContext, _ request: borrowing HTTPRequest
    ) throws(Problem) -> Page {
        guard let (base, target) = ownTarget(url, client) else {
            let target: String
            do throws(SourceURLError) {
                target = "/\(Rendition.Format.html.rawValue)/\(try SourceURL(url).canonical)"
            } catch {
                throw .badSourceURL(error.description)
            }
            let parsed = try granted(target, &client, request)
            return try page(parsed, text: target, client)
        }
        let parsed = try granted(target, &client, request)
        let text = parsed.withoutCallback(target, keys: policy.signingKeys)
        var page = try page(parsed, text: text, base: base, client)
        page.terms.varies = false
        // A consumer of oEmbed expects a document.
        page.onError = .problem
        if page.rendition.format == .html { return page }
        // A signature for a video or a picture permits no other rendition, and the addresses in a page are signed.
        guard page.rendition.format.isSentAsStored, !page.isSigned else { throw Self.notAPage }
        page.rendition = page.rendition.inFormat(.html)
        page.target = page.addresses.target(page.rendition)
        return page
    }

    /// Parses a target and checks access to it. Its key decides about the allowance of the client.
    private func granted(
        _ target: String, _ client: inout ClientContext, _ request: borrowing HTTPRequest
    ) throws(Problem) -> ParsedTarget {
        var parsed = try parser.parse(target)
        try access.check(&parsed, request)
        client.allowance = access.allowance(client.network, parsed.key)
        return parsed
    }

    private static let notAPage = Problem.notFound(
        "The address is neither a player page nor an unsigned video or picture of this server.")

    /// Splits a URL on this server into its target and the part before it, which is the public URL or names the host that the
    /// client used.
    private func ownTarget(_ url: String, _ client: ClientContext) -> (base: String, target: String)? {
        let bases = policy.publicURL.map { [$0] } ?? client.host.map { ["http://\($0)", "https://\($0)"] } ?? []
        for base in bases where url.hasPrefix(base + "/") { return (base, String(url.dropFirst(base.count))) }
        return nil
    }

    private func contents(of page: Page, _ facts: PageFacts, poster: Rendition) -> PlayerPage.Contents {
        let links = PageLinks(
            target: page.target, base: page.base, root: policy.publicURL.map(PageLinks.path) ?? "", page.addresses,
            video: PageVideo(page.videoRendition, page.video),
            smaller: page.smallerVideo.flatMap { stored in page.smallerRendition.map { PageVideo($0, stored) } },
            poster: poster, original: page.original)
        return facts.contents(of: page.rendition, poster: poster, name: page.source.name, links: links)
    }
}

extension SourceURL {
    /// The name of a source in titles: the last segment of its path, or its host if the path is empty.
    fileprivate var name: String {
        let last = path.split(separator: "/").last.map { PercentEncoding.decode($0) ?? String($0) }
        return last ?? host
    }
}
