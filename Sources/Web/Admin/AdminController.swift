internal import Digests
internal import Fetch
internal import HTTP
internal import Renditions
internal import Store
internal import SystemIO

/// Handles purges and `/cache`, and checks the admin token of requests.
struct AdminController: Sendable {
    let pipeline: RenditionPipeline
    let purges: Purges
    let cache: Cache
    let state: RenditionState
    let sharing: @Sendable () async -> SharingStatus
    let hooks: PurgeHooks
    let parser: RouteParser
    let signatures: SignatureCheck
    let publicURL: String?
    /// See ``digests(of:)``.
    let tokens: [[UInt8]]

    static func digests(of policy: WebPolicy) -> [[UInt8]] {
        policy.adminToken.map { [$0, policy.previousAdminToken].compactMap(\.self).map { SHA256.hash($0.utf8) } } ?? []
    }

    /// Whether a token is configured. Without one, the admin interface does not exist.
    var isOn: Bool { !tokens.isEmpty }

    func progress(ofPurge id: String) -> HTTPReply {
        .later { [purges] in
            do {
                guard let report = try await purges.progress(of: id) else {
                    return ProblemDocument.response(
                        .notFound("There is no purge with this id, or it is more than an hour old."))
                }
                return .json(Purged(report))
            } catch {
                return ProblemDocument.response(.noCluster("\(error)"))
            }
        }
    }

    /// Calls the hooks for a purge that this node has applied later than others.
    func appliedLate(_ scope: PurgeScope) {
        if hooks.isOn { hooks.call(PurgeNotice(scope, mounts: parser.mounts, publicURL: publicURL)) }
    }

    /// Handles `/cache`. GET returns statistics, the stored renditions of a source (`url`), or the stored sources that the
    /// block list refuses (`blocked`). DELETE purges.
    ///
    /// - Parameter limit: How long a purge waits for other nodes, unless the query states it; nil for two seconds.
    func answer(_ method: HTTPMethod, _ query: [QueryItem], within limit: Duration?) throws(Problem) -> HTTPReply {
        guard method == .delete else {
            switch (query.first?.name, query.first?.value, query.dropFirst().first?.name, query.count) {
            case ("url", let url?, nil, 1):
                return list(try source(url))
            case ("blocked", "true", nil, 1): return try listBlocked(after: "")
            case ("blocked", "true", "after", 2): return try listBlocked(after: query[1].value)
            case (nil, _, _, _):
                return .later { [cache, state, sharing] in .json(CacheSummary(cache, state, await sharing())) }
            default: throw .badRequest("GET /cache takes url, or blocked=true and after, or nothing.")
            }
        }
        let waits = query.filter { $0.name == RouteParser.waitName }
        let query = query.filter { $0.name != RouteParser.waitName }
        guard waits.count <= 1 else { throw .badRequest("wait is given twice.") }
        let limit = if let wait = waits.first { try PurgeWait.duration(wait.value) } else { limit }
        guard query.count == 1, let item = query.first else {
            throw Self.wrongScope
        }
        switch (item.name, item.value) {
        case ("url", let text):
            return purge(.url(try source(text)), within: limit)
        case ("prefix", let text) where !text.isEmpty: return purge(.prefix(try prefix(text)), within: limit)
        case ("host", let text) where !text.isEmpty:
            guard let host = try? SourceURL.canonicalHost(of: text) else {
                throw .badSourceURL("host must be the name or address of a host alone, such as example.com.")
            }
            return purge(.host(host), within: limit)
        case ("mount", let name):
            guard let mount = parser.mounts[name] else { throw .badRequest("There is no mount “\(name.prefix(64))”.") }
            return purge(.prefix(mount.rule.base), within: limit)
        case ("all", "true"): return purge(.all, within: limit)
        default: throw Self.wrongScope
        }
    }

    /// Returns the target of an address on this server; nil for any other URL.
    func ownTarget(_ text: String) throws(Problem) -> ParsedTarget? {
        if text.hasPrefix("/") { return try parser.parse(parser.linked(text, signatures)) }
        guard let publicURL, let target = OwnAddress.target(of: text, at: publicURL) else { return nil }
        return try parser.parse(parser.linked(target, signatures))
    }

    /// Returns the canonical URL of a source, for which the address of a rendition on this server may stand.
    private func source(_ text: String) throws(Problem) -> String {
        if let target = try? ownTarget(text), case .rendition(_, let source) = target.route { return source.canonical }
        if text.hasPrefix("/") { throw Self.foreignPath }
        return try translating(try SourceURL.canonicalText(of: text), to: Problem.badSourceURL)
    }

    /// Returns the canonical prefix of sources, for which the beginning of addresses of renditions on this server may stand.
    private func prefix(_ text: String) throws(Problem) -> String {
        let target = text.hasPrefix("/") ? text : publicURL.flatMap { OwnAddress.target(of: text, at: $0) }
        let own = try target.flatMap(sources)
        if own == nil, text.hasPrefix("/") { throw Self.foreignPath }
        let (sources, base) = own ?? (text, "")
        let prefix = try translating(try SourceURL.canonicalPrefix(of: sources), to: Problem.badSourceURL)
        // Dot segments lead out of a mount.
        guard prefix.hasPrefix(base) else { throw .badSourceURL("The prefix is not below the mount.") }
        return prefix
    }

    /// The beginning of the sources' URLs in the beginning of a path below a mount or a format, and the mount's root; nil for any
    /// other path.
    private func sources(below path: String) throws(Problem) -> (prefix: String, base: String)? {
        let first = path[...].droppingBytes(1).before(UInt8(ascii: "/"))
        guard first.endIndex < path.endIndex else { return nil }
        let rest = path[first.endIndex...].droppingBytes(1)
        if let mount = parser.mounts[String(first)] { return (mount.rule.base + rest, mount.rule.base) }
        let format = String(first.before(UInt8(ascii: ",")))
        let isFormat = format == Route.auto || Rendition.Format(rawValue: format) != nil
        guard isFormat, !rest.isEmpty else { return nil }
        // The beginning of a scheme would cover all its sources.
        guard rest.contains("://") else { throw .badSourceURL(SourceURLError.unsupportedScheme) }
        return (String(rest), "")
    }

    private static let foreignPath = Problem.badSourceURL("This path on the server leads to no source.")

    private static let wrongScope = Problem.badRequest(
        "DELETE /cache takes exactly one of url, prefix, host, mount and all=true, and wait.")

    /// Checks that a request has a valid token. Compares digests in constant time, so the time reveals nothing about the token
    /// or its length.
    ///
    /// - Throws: `not_found` if the admin interface is off, or `unauthorized`.
    func authorize(_ request: borrowing HTTPRequest) throws(Problem) {
        guard isOn else { throw .notFound("The admin interface is off: no admin token is configured.") }
        let words = (request.header("Authorization") ?? "").utf8.split(separator: UInt8(ascii: " "), maxSplits: 1)
        guard words.count == 2, Substring(words[0]).lowercased() == "bearer" else { throw .unauthorized }
        // RFC 9110 section 11.4 permits several spaces.
        let digest = SHA256.hash(words[1].drop { $0 == UInt8(ascii: " ") })
        // Compares all tokens, so that the time does not reveal which one matches.
        guard tokens.filter({ ConstantTime.areEqual(digest, $0) }).count > 0 else { throw .unauthorized }
    }

    /// Purges a scope, and calls the hooks for it.
    func purge(_ scope: PurgeScope, within limit: Duration?) -> HTTPReply {
        .later { [cache, purges, hooks, parser, publicURL] in
            // After the purge, the cache lists nothing.
            var stored: [ListedRendition] = []
            if hooks.isOn, case .url(let url) = scope { stored = (try? await cache.list(of: url)) ?? [] }
            do throws(CacheError) {
                let report = try await purges.purge(scope, within: limit)
                var response = HTTPResponse.json(Purged(report))
                let notice =
                    hooks.isOn ? PurgeNotice(scope, stored: stored, mounts: parser.mounts, publicURL: publicURL) : nil
                guard !report.isComplete, let id = report.id else {
                    // After the purge: a CDN that asks again must not get the old rendition.
                    if let notice { hooks.call(notice) }
                    return response
                }
                if let notice {
                    hooks.call(notice) { (try? await purges.progress(of: id))?.isComplete == true }
                }
                // Accepted, and not yet carried out everywhere (RFC 9110 section 15.3.3).
                response.status = 202
                response.headers.append("Location", "/purges/\(id)")
                return response
            } catch {
                let detail =
                    if case .purgeNotDurable = error {
                        "The purge is in effect, but not on the disk yet: a restart may undo it. Repeat it later."
                    } else {
                        "The purge could not be made."
                    }
                return ProblemDocument.response(
                    Problem(503, "overloaded", detail, retryAfter: 1, cause: error.description))
            }
        }
    }

    /// The stored sources that the block list refuses.
    private func listBlocked(after url: String) throws(Problem) -> HTTPReply {
        if pipeline.blocks == nil { throw .badRequest("The setting block.list is not set.") }
        return .attempt { [pipeline] () throws(Problem) in
            .json(try await translating(awaiting: try await pipeline.blockedSources(after: url), to: Self.problem))
        }
    }

    private func list(_ url: String) -> HTTPReply {
        .attempt { [cache] () throws(Problem) in
            let stored = try await translating(awaiting: try await cache.list(of: url), to: Self.problem)
            return .json(CacheListing(url: url, renditions: stored.map(CacheListing.Rendition.init)))
        }
    }

    static func problem(_ error: CacheError) -> Problem { Problem(.init(error)) }
}

/// How long a purge waits for the nodes of a cluster: `wait` in the query or in the field `Prefer` (RFC 7240 section 4.3), such
/// as `wait=30s`.
enum PurgeWait {
    private static let longest: Duration = .seconds(300)

    /// The time in a query.
    static func duration(_ text: String) throws(Problem) -> Duration {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let units: [Substring: Duration] = ["ms": .milliseconds(1), "s": .seconds(1), "": .seconds(1), "m": .seconds(60)]
        guard (1...6).contains(digits.count), let number = Int(digits), let unit = units[text[digits.endIndex...]],
            unit * number <= longest
        else { throw .badRequest("wait must be a time from 0s to 300s, such as 30s.") }
        return unit * number
    }

    /// Returns the time that the client prefers, bounded; nil without a preference.
    static func preferred(_ request: borrowing HTTPRequest) -> Duration? {
        var seconds: Int?
        request.forEachValue(of: "Prefer") { value in
            for member in FieldList(value) {
                let item = FieldElement(member).value
                let prefix = RouteParser.waitName.utf8.count + 1
                guard item.count > prefix, item.slice(0..<prefix).equalsIgnoringCase("wait="),
                    let number = item.slice(prefix..<item.count).decimal
                else { continue }
                seconds = seconds ?? Int(clamping: number)
            }
        }
        return seconds.map { min(.seconds(min($0, 1_000_000)), longest) }
    }
}
