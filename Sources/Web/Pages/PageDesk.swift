internal import Cache
internal import Fetch
internal import Glibc
internal import HTTP
internal import Sandbox

/// Answers with pages: that at `/`, the player, and what oEmbed tells of it.
struct PageDesk: Sendable {
    /// Who asks.
    struct Visit: Sendable {
        /// What the client calls this server; nil where it told nothing.
        var host: String?
        var urgency: Urgency
        var allowance: MissAllowance
    }

    /// A page that is asked for.
    private struct Wanted {
        var rendition: Rendition
        var source: SourceURL
        /// As it was asked for, and what stands before it.
        var target: String
        var base: String
        /// Signs what the page shows; nil where the page is not signed either.
        var signer: TargetSigner?
        var terms: AnswerTerms
    }

    private let store: RenditionStore
    private let answers: RenditionAnswer
    private let parser: RouteParser
    private let access: AccessControl
    private let configuration: ServiceConfiguration
    private let homePage: HomePage?
    private let player = PlayerPage()

    init(
        _ configuration: ServiceConfiguration, store: RenditionStore, answers: RenditionAnswer, parser: RouteParser,
        access: AccessControl
    ) {
        self.configuration = configuration
        self.store = store
        self.answers = answers
        self.parser = parser
        self.access = access
        homePage = configuration.hasHomePage ? HomePage(configuration, startedAt: time(nil)) : nil
    }

    /// `/`.
    ///
    /// - Throws: `not_found` where it is switched off.
    func home() throws(Problem) -> HTTPResponse {
        guard let homePage else { throw .notFound }
        return homePage.response
    }

    /// The player page. Nothing is encoded for it: the browser will ask for the video.
    ///
    /// - Parameter target: What was asked; `asked` is what it was read as.
    /// - Returns: Nil when the calling task was cancelled.
    func player(_ asked: ParsedTarget, target: String, _ visit: Visit) async -> Result<HTTPResponse, Problem>? {
        do throws(Problem) {
            let base = PageLinks.base(publicURL: configuration.publicURL, host: visit.host)
            let wanted = try self.wanted(asked, target: target, base: base)
            guard let (contents, found) = try await find(wanted, visit) else { return nil }
            return .success(
                answers.response(found, wanted.terms) {
                    player.resource(contents, fields: $0, lastModified: Int(found.rendition.created))
                })
        } catch {
            return .failure(error)
        }
    }

    /// `/oembed`: how a page is embedded. It is named by its own address, or by that of its GIF.
    ///
    /// - Returns: Nil when the calling task was cancelled.
    func oembed(_ items: [QueryItem], _ visit: Visit) async -> Result<HTTPResponse, Problem>? {
        do throws(Problem) {
            let query = try OEmbed.Query(items)
            let page = try self.page(named: query.url, visit)
            guard let (contents, found) = try await find(page, visit) else { return nil }
            let document = OEmbed(
                contents, maxWidth: query.maxWidth, maxHeight: query.maxHeight, maxAge: configuration.maxAge)
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

    // MARK: What is asked for

    /// The page that an address given to oEmbed means.
    private func page(named url: String, _ visit: Visit) throws(Problem) -> Wanted {
        if let (base, target) = ownTarget(url, visit) {
            let asked = try parser.parse(target)
            guard case .rendition(let rendition, _) = asked.route, rendition.format == .html else { throw .notFound }
            try access.check(asked)
            return try wanted(asked, target: target, base: base)
        }
        let target: String
        do throws(SourceURLError) {
            target = "/\(Rendition.Format.html.rawValue)/\(try SourceURL(url).canonical)"
        } catch {
            throw .badSourceURL(error.description)
        }
        let asked = try parser.parse(target)
        try access.check(asked)
        return try wanted(asked, target: target, base: PageLinks.base(publicURL: configuration.publicURL, host: visit.host))
    }

    /// The target of an address on this server, and what stands before it: the public URL, or the host that the client used.
    private func ownTarget(_ url: String, _ visit: Visit) -> (base: String, target: String)? {
        let bases = configuration.publicURL.map { [$0] } ?? visit.host.map { ["http://\($0)", "https://\($0)"] } ?? []
        for base in bases where url.hasPrefix(base + "/") { return (base, String(url.dropFirst(base.count))) }
        return nil
    }

    private func wanted(_ asked: ParsedTarget, target: String, base: String) throws(Problem) -> Wanted {
        guard case .rendition(let rendition, let source) = asked.route else { throw .notFound }
        let isSigned = asked.credentials?.signature != nil && !configuration.signingKeys.isEmpty
        return Wanted(
            rendition: rendition, source: source, target: target, base: base,
            signer: isSigned ? TargetSigner(keys: configuration.signingKeys) : nil, terms: asked.terms)
    }

    /// The facts of the GIF, and what the page shows by them.
    private func find(
        _ wanted: Wanted, _ visit: Visit
    ) async throws(Problem) -> (PlayerPage.Contents, RenditionStore.Found)? {
        let facts = Rendition(format: .json)
        guard let result = await store.find(facts, of: wanted.source, urgency: visit.urgency, visit.allowance) else {
            return nil
        }
        let found = try result.get()
        guard let known = PageFacts(found.rendition) else { throw .overloaded }
        let links = PageLinks(
            target: wanted.target, base: wanted.base, root: configuration.publicURL.map(PageLinks.path) ?? "",
            video: wanted.rendition.inFormat(.mp4), poster: try known.poster(of: wanted.rendition), of: wanted.source,
            signer: wanted.signer, expires: wanted.terms.expires)
        let name = wanted.source.name
        return (known.contents(of: wanted.rendition, name: name, links: links), found)
    }
}

extension SourceURL {
    /// What a source is called: the last part of its path, or its host where that has no end.
    fileprivate var name: String {
        let last = path.split(separator: "/").last.map { PercentText.decode($0) ?? String($0) }
        return last ?? host
    }
}
