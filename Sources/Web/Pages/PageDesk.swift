internal import Cache
internal import Fetch
internal import Glibc
internal import HTTP
internal import Renditions
internal import Sandbox

/// Answers with pages: the home page, the player, and the player's oEmbed document.
struct PageDesk: Sendable {
    /// The client's part in a page.
    struct Visit: Sendable {
        /// The client's name for this server; nil where it sent none.
        var host: String?
        /// The scheme that the client used, which a trusted proxy may tell.
        var scheme: HTTPScheme
        var urgency: Urgency
        var allowance: MissAllowance
    }

    /// A player page that a request names.
    struct Page: Sendable {
        fileprivate var rendition: Rendition
        let source: SourceURL
        /// The page's own target, and what precedes it in an absolute address.
        fileprivate var target: String
        fileprivate var base: String
        fileprivate var addresses: RenditionAddresses
        fileprivate var terms: AnswerTerms
    }

    private let store: RenditionStore
    private let answers: RenditionAnswer
    private let parser: RouteParser
    private let access: AccessControl
    private let configuration: WebPolicy
    private let homePage: HomePage?
    private let player = PlayerPage()
    let errors: ErrorPage

    init(
        _ configuration: WebPolicy, store: RenditionStore, answers: RenditionAnswer, crossOrigin: CrossOrigin,
        parser: RouteParser, access: AccessControl
    ) {
        self.configuration = configuration
        self.store = store
        self.answers = answers
        self.parser = parser
        self.access = access
        errors = ErrorPage(version: configuration.version)
        homePage = configuration.hasHomePage ? HomePage(configuration, crossOrigin: crossOrigin, startedAt: time(nil)) : nil
    }

    /// The home page.
    ///
    /// - Throws: `not_found` where it is switched off.
    func home() throws(Problem) -> HTTPResponse {
        guard let homePage else { throw .notFound("The home page is switched off.") }
        return homePage.response
    }

    // MARK: Naming pages

    /// The page that a target names.
    ///
    /// - Parameters:
    ///   - asked: The target after parsing.
    ///   - target: The page's own target.
    ///   - base: What precedes it; nil for the server's usual address.
    func page(
        _ asked: ParsedTarget, target: String, base: String? = nil, _ visit: Visit
    ) throws(Problem) -> Page {
        guard case .rendition(let rendition, let source) = asked.route else { throw Self.notAPage }
        return Page(
            rendition: rendition, source: source, target: target,
            base: base ?? PageLinks.base(publicURL: configuration.publicURL, scheme: visit.scheme, host: visit.host),
            addresses: RenditionAddresses(asked, of: source, keys: configuration.signingKeys), terms: asked.terms)
    }

    /// The page that an address given to oEmbed means: that of the page itself, of a rendition of the same source, or of a GIF
    /// anywhere.
    ///
    /// - Throws: The problem that a request for the page would have.
    func page(embedding url: String, _ visit: Visit) throws(Problem) -> Page {
        guard let (base, target) = ownTarget(url, visit) else {
            let target: String
            do throws(SourceURLError) {
                target = "/\(Rendition.Format.html.rawValue)/\(try SourceURL(url).canonical)"
            } catch {
                throw .badSourceURL(error.description)
            }
            let asked = try parser.parse(target)
            try access.check(asked)
            return try page(asked, target: target, visit)
        }
        let asked = try parser.parse(target)
        try access.check(asked)
        var page = try page(asked, target: target, base: base, visit)
        page.terms.varies = false
        if page.rendition.format == .html { return page }
        guard page.rendition.format.isAnsweredAsStored else { throw Self.notAPage }
        page.rendition = page.rendition.inFormat(.html)
        page.target = page.addresses.target(page.rendition)
        return page
    }

    private static let notAPage = Problem.notFound(
        "The address is neither a player page nor a video or picture of this server.")

    /// The target of an address on this server, and what precedes it: the public URL, or the host that the client used.
    private func ownTarget(_ url: String, _ visit: Visit) -> (base: String, target: String)? {
        let bases = configuration.publicURL.map { [$0] } ?? visit.host.map { ["http://\($0)", "https://\($0)"] } ?? []
        for base in bases where url.hasPrefix(base + "/") { return (base, String(url.dropFirst(base.count))) }
        return nil
    }

    // MARK: Answers

    /// Answers with the player page. It encodes nothing: the browser will ask for the video.
    ///
    /// - Returns: Nil when the calling task was cancelled.
    func player(_ page: Page, _ visit: Visit) async -> Result<HTTPResponse, Problem>? {
        do throws(Problem) {
            guard let (facts, found) = try await facts(of: page, visit) else { return nil }
            let contents = contents(of: page, facts, poster: try facts.poster(of: page.rendition))
            return .success(
                answers.response(found, page.terms) {
                    player.resource(contents, fields: $0, lastModified: Int(found.rendition.created))
                })
        } catch {
            return .failure(error)
        }
    }

    /// Answers with the oEmbed document of a page.
    ///
    /// - Returns: Nil when the calling task was cancelled.
    func oembed(_ query: OEmbed.Query, _ page: Page, _ visit: Visit) async -> Result<HTTPResponse, Problem>? {
        do throws(Problem) {
            guard let (facts, found) = try await facts(of: page, visit) else { return nil }
            let poster = try facts.poster(of: page.rendition)
            let thumbnail = try facts.bounded(poster, maxWidth: query.maxWidth, maxHeight: query.maxHeight)
            let contents = contents(of: page, facts, poster: thumbnail ?? poster)
            let document = OEmbed(contents, query, hasThumbnail: thumbnail != nil, maxAge: configuration.maxAge)
            return .success(
                answers.response(found, page.terms) { fields in
                    let text = JSONText.encode(document)
                    return HTTPResource(
                        bytes: text, contentType: Rendition.Format.json.contentType,
                        entityTag: PageTag.of(String(decoding: text, as: UTF8.self)),
                        lastModified: Int(found.rendition.created),
                        headers: fields)
                })
        } catch {
            return .failure(error)
        }
    }

    /// The stored facts of the page's GIF.
    private func facts(of page: Page, _ visit: Visit) async throws(Problem) -> (PageFacts, RenditionStore.Found)? {
        let facts = Rendition(format: .json)
        guard let result = await store.find(facts, of: page.source, urgency: visit.urgency, visit.allowance) else {
            return nil
        }
        let found: RenditionStore.Found
        do throws(RenditionError) {
            found = try result.get()
        } catch {
            throw Problem(error)
        }
        guard let known = PageFacts(found.rendition) else { throw .overloaded }
        return (known, found)
    }

    private func contents(of page: Page, _ facts: PageFacts, poster: Rendition) -> PlayerPage.Contents {
        let links = PageLinks(
            target: page.target, base: page.base, root: configuration.publicURL.map(PageLinks.path) ?? "", page.addresses,
            video: page.rendition.inFormat(.mp4), poster: poster)
        return facts.contents(of: page.rendition, poster: poster, name: page.source.name, links: links)
    }
}

extension SourceURL {
    /// The name of a source for people: the last segment of its path, or its host where the path has none.
    fileprivate var name: String {
        let last = path.split(separator: "/").last.map { PercentEncoding.decode($0) ?? String($0) }
        return last ?? host
    }
}
