internal import Fetch
internal import HTTP
internal import Renditions
internal import SystemIO

/// Finds the page that a request names: by its own target, or by the URL that a request for an oEmbed document contains.
struct PageResolver: Sendable {
    let policy: WebPolicy
    let parser: RouteParser
    let access: AccessControl

    private var keys: SigningKeys { policy.signingKeys }
    /// The path of the public URL, or nothing.
    private var root: String { policy.publicURL.map(PageLinks.path) ?? "" }

    /// The page that a target names.
    ///
    /// - Parameters:
    ///   - parsed: The target after parsing.
    ///   - text: The target as it was sent.
    ///   - base: The part of the absolute address before the target; nil for that of the server.
    func page(
        _ parsed: ParsedTarget, sentAs text: String, base: String? = nil, _ client: ClientContext
    ) throws(Problem) -> RequestedPage {
        guard case .rendition(let rendition, let source) = parsed.route else { throw Self.notAPage }
        let target = parsed.withoutCallback(text, keys: keys)
        return RequestedPage(
            rendition: rendition, source: source, target: target, namedTarget: Self.named(target, parsed, source),
            title: parsed.title,
            base: base ?? PageLinks.base(publicURL: policy.publicURL, scheme: client.scheme, host: client.host),
            root: root,
            addresses: RenditionAddresses(parsed, of: source, keys: keys), terms: parsed.terms,
            original: original(parsed, source), onMiss: parsed.onMiss, onError: parsed.onError,
            isBounded: access.bounds(parsed), isSigned: parsed.key != nil,
            statesBackground: parsed.credentials?.options.contains { $0.name == RenditionOption.bg.rawValue } ?? false)
    }

    /// Returns the target of a page with a file name at the end of its path. The first segment, which may contain a signature,
    /// is unchanged.
    private static func named(_ target: String, _ parsed: ParsedTarget, _ source: SourceURL) -> String {
        guard parsed.mount == nil, let written = parsed.credentials?.source else { return target }
        let (path, query) = target.pathAndQuery
        let first = path.droppingBytes(1).before(UInt8(ascii: "/"))
        let name = PercentEncoding.encode(FileName(of: source.canonical, Rendition.Format.html.fileExtensions).text)
        let rest = path[first.endIndex...].withoutLeadingSlashes
        if rest.isEmpty { return "/\(first)/\(name)\(query)" }
        let named = "/\(first)/\(name)?url=\(PercentEncoding.encode(written))"
        if RouteParser.verbatimURL(rest) != nil { return named }
        let pairs = query.droppingBytes(1)
        // If the query contains the source, the path already has a name.
        if pairs.parts(at: UInt8(ascii: "&")).contains(where: { $0.hasPrefix("url=") }) { return target }
        return pairs.isEmpty ? named : "\(named)&\(pairs)"
    }

    /// Returns the address of the GIF that a page may show: below the mount if it negotiates, or at the origin without a mount.
    /// A mount that does not negotiate has no address for the GIF, and its origin is hidden from clients.
    private func original(_ parsed: ParsedTarget, _ source: SourceURL) -> String? {
        guard parsed.onMiss == .original || parsed.onError == .original else { return nil }
        guard let mount = parsed.mount, let address = parsed.address else { return source.text }
        return mount.negotiates && parsed.credentials?.signature == nil ? root + address.source : nil
    }

    /// Returns the page for the URL of an oEmbed request: the URL of a page, of a rendition of the same source, or of a GIF.
    /// The key of its target determines the client's allowance.
    ///
    /// - Throws: The problem that a request for the page would have.
    func page(
        embedding url: String, _ client: inout ClientContext, _ request: borrowing HTTPRequest
    ) throws(Problem) -> RequestedPage {
        guard let (base, target) = ownTarget(url, client) else {
            let source = try translating(try SourceURL(url), to: Problem.badSourceURL)
            let target = "/\(Rendition.Format.html.rawValue)/\(source.canonical)"
            let parsed = try granted(target, &client, request)
            return try page(parsed, sentAs: target, client)
        }
        let parsed = try granted(target, &client, request)
        var page = try page(parsed, sentAs: target, base: base, client)
        page.terms.varies = false
        // A consumer of oEmbed expects a document.
        page.onError = .problem
        if page.rendition.format == .html { return page }
        // A signature for a video or a picture permits no other rendition, and the addresses in a page are signed.
        guard page.rendition.format.isSentAsStored, !page.isSigned else { throw Self.notAPage }
        page.rendition = page.rendition.inFormat(.html)
        page.target = page.addresses.target(page.rendition)
        page.namedTarget = page.addresses.target(page.rendition, isNamed: true)
        return page
    }

    /// Parses a target and checks access to it.
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
        let scheme = url[...].before(UInt8(ascii: ":")).lowercased()
        guard let base = policy.publicURL ?? client.host.map({ "\(scheme)://\($0)" }),
            let target = OwnAddress.target(of: url, at: base)
        else { return nil }
        return (base, parser.linked(target, access.signatures))
    }
}
