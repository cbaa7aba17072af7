internal import Fetch
internal import Media
package import Renditions
internal import Store
internal import SystemIO

/// Parses request targets. A pure function of the target and the mounts.
package struct RouteParser: Sendable {
    let mounts: [String: Mount]
    /// The values of options that requests omit.
    var defaults = RenditionDefaults()
    /// The formats that can be produced.
    var offered = Rendition.Format.offered

    /// Throws the problem of a target outside mounts on a server with the presets, whatever encoders it has.
    package static func check(_ target: String, hasBody: Bool, _ presets: RenditionPresets) throws(Problem) {
        let defaults = RenditionDefaults(presets: presets)
        _ = try RouteParser(mounts: [:], defaults: defaults, offered: Rendition.Format.allCases).parse(target, hasBody: hasBody)
    }

    /// Returns the path below a mount of a source that only a mount can name; nil if no mount has the source.
    ///
    /// - Parameters:
    ///   - text: The `file://` or `s3://` URL.
    ///   - name: The name of a format, or ``Route/auto``.
    func path(ofMountedSource text: String, _ name: String) -> String? {
        guard [SourceURL.fileScheme, SourceURL.s3Scheme].contains(where: text.hasPrefix) else { return nil }
        let addresses = mounts.sorted { $0.key < $1.key }.lazy.compactMap { mount in
            (try? mount.value.rule.source(text)).flatMap { MountAddress(of: $0, below: mount.value, called: mount.key) }
        }
        return addresses.first?.target(name)
    }

    /// Parses a target.
    ///
    /// - Parameters:
    ///   - target: Path and query as the client sent them.
    ///   - hasBody: Whether the body may be the source (POST). Ignored if the target names a source.
    ///   - fields: Options in the body, if that is a form; nil before the form is read, when combinations are not checked yet.
    /// - Throws: ``Problem``: `not_found`, `bad_source_url` or `bad_option`.
    func parse(_ target: String, hasBody: Bool = false, fields: [QueryItem]? = []) throws(Problem) -> ParsedTarget {
        // A combining mark would merge with a preceding separator into another character.
        guard target.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw .badRequest("The request target has characters outside ASCII.")
        }
        let (path, query) = target.pathAndQuery
        let first = path.droppingBytes(1).before(UInt8(ascii: "/"))
        let rest = path[first.endIndex...]
        switch first {
        case "" where path == "/": return ParsedTarget(route: .home)
        case "openapi.json" where rest.isEmpty: return ParsedTarget(route: .openAPI)
        case "oembed" where rest.isEmpty: return ParsedTarget(route: .oembed(try Self.items(query)))
        case Route.facts[...] where rest.isEmpty: return ParsedTarget(route: .facts(try Self.items(query)))
        case Route.factsModule[...] where rest.isEmpty: return ParsedTarget(route: .factsModule(try Self.items(query)))
        case "healthz" where rest.isEmpty: return ParsedTarget(route: .health)
        case "readyz" where rest.isEmpty: return ParsedTarget(route: .readiness)
        case "prewarm" where !rest.droppingBytes(1).utf8.contains(UInt8(ascii: "/")):
            let id = rest.utf8.count > 1 ? String(rest.droppingBytes(1)) : nil
            return ParsedTarget(route: .prewarm(id, try Self.items(query)))
        case "status": return ParsedTarget(route: .status(try status(rest.droppingBytes(1))))
        case "metrics" where rest.isEmpty: return ParsedTarget(route: .metrics)
        case "purges" where rest.utf8.count > 1 && !rest.droppingBytes(1).utf8.contains(UInt8(ascii: "/")):
            return ParsedTarget(route: .purge(String(rest.droppingBytes(1))))
        case "top" where rest.isEmpty: return ParsedTarget(route: .top(try Self.items(query)))
        case "explain" where rest.isEmpty: return ParsedTarget(route: .explain(try Self.items(query)))
        case "cache" where rest.isEmpty: return ParsedTarget(route: .cache(try Self.items(query)))
        case "object": return ParsedTarget(route: try object(rest.droppingBytes(1)))
        default:
            if rest.isEmpty, let file = SiteFile(rawValue: String(first)) { return ParsedTarget(route: .file(file)) }
        }
        let words = Self.words(first)
        if let word = words.first, let format = Rendition.Format.named(word) {
            try checkOffer(format)
            return try rendition(format, options: words.dropFirst(), rest: rest, query: query, hasBody: hasBody, fields: fields)
        }
        if words.first == Route.auto[...] { return try automatic(words.dropFirst(), rest: rest, query: query) }
        if let mount = mounts[String(first)] {
            return try mounted(mount, called: String(first), path: rest, query: query)
        }
        guard PercentEncoding.isValid(target) else {
            throw .badRequest("The request target has a percent sign that two hexadecimal digits do not follow.")
        }
        throw Self.unknownPath(words, rest)
    }

    /// The parameters, besides `utm_…` and `gad_…`, by which other sites follow the visitors of their links.
    private static let trackers: Set<Substring> = [
        "fbclid", "gclid", "gclsrc", "gbraid", "wbraid", "dclid", "srsltid", "_gl", "msclkid", "twclid", "ttclid", "yclid",
        "igsh", "igshid", "li_fat_id", "mc_cid", "mc_eid", "_hsenc", "_hsmi",
    ]

    /// Returns the target without the parameters at its end that other sites append to links; nil if it has none.
    static func withoutTrackers(_ target: String) -> String? {
        let (path, query) = target.pathAndQuery
        let pairs = query.droppingBytes(1).parts(at: UInt8(ascii: "&"), keepingEmpty: true)
        let kept = pairs.lastIndex { pair in
            let name = pair.before(UInt8(ascii: "="))
            return !trackers.contains(name) && !name.hasPrefix("utm_") && !name.hasPrefix("gad_")
        }
        let count = kept.map { $0 + 1 } ?? 0
        guard count < pairs.count else { return nil }
        return count == 0 ? String(path) : "\(path)?\(pairs[..<count].joined(separator: "&"))"
    }

    /// The parameter of purges that sets how long to wait for other nodes.
    static let waitName = "wait"

    /// Splits the parameter `wait` off the target of a purge. The query after an unencoded source belongs to the source, and so
    /// does the one that a mount forwards.
    func splitWait(_ target: String) throws(Problem) -> (target: String, wait: String?) {
        let (path, query) = target.pathAndQuery
        let first = path.droppingBytes(1).before(UInt8(ascii: "/"))
        let rest = path[first.endIndex...].withoutLeadingSlashes
        let isOfSource = mounts[String(first)].map { $0.query == .forward } ?? (Self.verbatimURL(rest) != nil)
        if isOfSource { return (target, nil) }
        var wait: String?
        var kept: [Substring] = []
        for pair in try Self.pairs(query) {
            let item = try Self.item(pair)
            guard item.name == Self.waitName else {
                kept.append(pair)
                continue
            }
            guard wait == nil else { throw .badRequest("wait is given twice.") }
            wait = item.value
        }
        guard wait != nil else { return (target, nil) }
        return (path + (kept.isEmpty ? "" : "?" + kept.joined(separator: "&")), wait)
    }

    /// The format and the options in the first segment of a path. Some clients encode the commas.
    static func words(_ segment: Substring) -> [Substring] {
        let separator = UInt8(ascii: ",")
        let words = segment.parts(at: separator, maxSplits: maxOptions, keepingEmpty: true)
        guard words.count == 1, segment.utf8.contains(UInt8(ascii: "%")),
            let decoded = PercentEncoding.decode(segment), decoded.utf8.allSatisfy({ $0 < 0x80 })
        else { return words }
        return decoded[...].parts(at: separator, maxSplits: maxOptions, keepingEmpty: true)
    }

    /// The maximum number of options in a path, which exceeds the number of existing options. The last option contains the rest
    /// of the text.
    private static let maxOptions = 64

    /// Whether the target has the form of a player page's address, valid or not.
    func namesPage(_ target: String) -> Bool {
        let path = target.pathAndQuery.path
        let first = path.droppingBytes(1).before(UInt8(ascii: "/"))
        let page = Rendition.Format.html.rawValue
        if mounts[String(first)] != nil { return path.splitAtExtension?.fileExtension == page }
        return Self.words(first).first == page[...]
    }

    /// Whether the target has the form of a path that a mount negotiates, valid or not.
    func namesNegotiation(_ target: String) -> Bool {
        let path = target.pathAndQuery.path
        let first = path.droppingBytes(1).before(UInt8(ascii: "/"))
        guard let mount = mounts[String(first)] else { return Self.words(first).first == Route.auto[...] }
        return MountPath(path, sources: mount.sources).map { $0.isAutomatic || mount.negotiates && $0.isSource } ?? false
    }

    /// Returns the problem for an unknown path, which names the valid forms.
    private static func unknownPath(_ words: [Substring], _ rest: Substring) -> Problem {
        let name = words.first?.prefix(64) ?? ""
        // The response repeats only text that could be a name: never markup.
        if name.utf8.allSatisfy(Route.isNameByte) {
            if words.count > 1 || verbatimURL(rest.withoutLeadingSlashes) != nil {
                return .notFound("There is no format “\(name)”. The formats are \(formatNames).")
            }
            if !rest.isEmpty { return .notFound("There is no mount “\(name)”, and no format of that name: \(formatNames).") }
        }
        return .notFound(
            "There is no resource at this path. A rendition is at /{format}/{source}, with one of the formats \(formatNames).")
    }

    /// Parses a target whose rendition `Accept` selects. Its options are those of videos, as at mounts that negotiate.
    private func automatic(
        _ options: ArraySlice<Substring>, rest: Substring, query: Substring
    ) throws(Problem) -> ParsedTarget {
        var reader = OptionReader(format: .mp4, named: Route.auto, defaults: defaults)
        for option in options { try reader.readPair(option) }
        guard let url = try readSource(rest, query, into: &reader) else {
            throw .badSourceURL("The source URL is missing: request /\(Route.auto)/{URL} or /\(Route.auto)?url={URL}.")
        }
        guard reader.onMiss == nil else { throw .badOption("on_miss", "has no effect where Accept selects the rendition") }
        var target = try parsed(&reader, url)
        try negotiate(&target, reader)
        target.onMiss = .original
        target.onError = .original
        return target
    }

    private func negotiate(_ target: inout ParsedTarget, _ reader: OptionReader) throws(Problem) {
        guard reader.onLarger == nil else {
            throw .badOption("on_larger", "has no effect where Accept selects the rendition")
        }
        guard case .rendition(let rendition, _) = target.route else { return }
        target.negotiation = Negotiation(rendition, offered: offered)
    }

    private static let formatNames = Rendition.Format.offered.map(\.rawValue).joined(separator: ", ")

    // MARK: Renditions

    private func checkOffer(_ format: Rendition.Format) throws(Problem) {
        guard !offered.contains(format), let encoder = format.encoder else { return }
        throw .notFound(
            "The format “\(format.rawValue)” is not available here: the encoder \(encoder) is missing from libavcodec.")
    }

    private func rendition(
        _ format: Rendition.Format, options: ArraySlice<Substring>, rest: Substring, query: Substring, hasBody: Bool,
        fields: [QueryItem]?
    ) throws(Problem) -> ParsedTarget {
        var reader = OptionReader(format: format, defaults: defaults)
        for option in options { try reader.readPair(option) }
        if rest.withoutLeadingSlashes.isEmpty {
            let url = try reader.readQuery(try Self.items(query) + (fields ?? []))
            if hasBody {
                guard format != .html else { throw .badRequest("A page needs the URL of a GIF; uploads have no pages.") }
                guard url == nil else { throw .badOption("url", "is for GET; POST takes the GIF itself") }
                guard reader.onMiss == nil else { throw .badOption("on_miss", "has no effect on uploads") }
                guard reader.onLarger == nil else { throw .badOption("on_larger", "has no effect on uploads") }
                var target = ParsedTarget(
                    route: .upload(try reader.finish(awaitsFields: fields == nil)), credentials: reader.credentials)
                target.hasAutomaticWidth = reader.hasAutomaticWidth
                target.callback = reader.callback
                return target
            }
            guard let url else {
                throw .badSourceURL(
                    "The source URL is missing: request /\(format.rawValue)/{URL} or /\(format.rawValue)?url={URL}, or send a GIF with POST."
                )
            }
            return try parsed(&reader, url)
        }
        guard let text = try readSource(rest, query, into: &reader, fileExtensions: format.fileExtensions) else {
            throw .badSourceURL("The source URL is missing.")
        }
        return try parsed(&reader, text)
    }

    /// Reads the source and the options of the query: `/{URL}`, `?url={URL}` or `/{file name}?url={URL}`. The name is for
    /// programs that infer the type from the extension, and has no other meaning.
    ///
    /// - Parameter fileExtensions: The permitted extensions of a file name; nil for all.
    /// - Returns: The text of the URL; nil if there is none.
    private func readSource(
        _ rest: Substring, _ query: Substring, into reader: inout OptionReader, fileExtensions: [String]? = nil
    ) throws(Problem) -> String? {
        let path = rest.withoutLeadingSlashes
        // The query after an unencoded source belongs to the source.
        if let verbatim = Self.verbatimURL(path) { return verbatim + query }
        guard let decoded = PercentEncoding.decode(path) else {
            throw .badSourceURL("The source URL is not percent-encoded correctly.")
        }
        let url = try reader.readQuery(try Self.items(query))
        if path.isEmpty { return url }
        // A proxy may have merged the slashes of an encoded URL, too.
        guard let url else { return Self.verbatimURL(decoded[...]) ?? decoded }
        guard Self.verbatimURL(decoded[...]) == nil else { throw .badOption("url", "is given twice") }
        guard !path.utf8.contains(UInt8(ascii: "/")), let (_, last) = path.splitAtExtension,
            fileExtensions?.contains(last) ?? true
        else {
            let names = (fileExtensions ?? ["gif"]).map { ".\($0)" }.joined(separator: " or ")
            throw .notFound("Before ?url= the path has no other segment than a file name that ends in \(names).")
        }
        return url
    }

    private func parsed(_ reader: inout OptionReader, _ text: String) throws(Problem) -> ParsedTarget {
        reader.credentials.source = text
        var target = ParsedTarget(
            route: .rendition(try reader.finish(), try translating(try SourceURL(text), to: Problem.badSourceURL)),
            credentials: reader.credentials)
        adopt(reader, in: &target)
        target.onMiss = reader.onMiss ?? .wait
        target.onError = reader.onError ?? .problem
        return target
    }

    /// Copies the options that do not concern the rendition to a target, except those with a default in the mount.
    private func adopt(_ reader: OptionReader, in target: inout ParsedTarget) {
        target.callback = reader.callback
        target.title = reader.title
        target.refusesLarger = reader.onLarger == .problem
        target.defaults = defaults
        target.preset = reader.preset
        target.hasAutomaticWidth = reader.hasAutomaticWidth
    }

    /// The URL in a path that contains it without encoding. A single slash after the scheme is read as two that a proxy merged.
    static func verbatimURL(_ text: Substring) -> String? {
        let start = text.prefix(8).lowercased()
        guard let scheme = ["http:/", "https:/"].first(where: start.hasPrefix) else { return nil }
        let address = text.droppingBytes(scheme.utf8.count)
        let slash = address.utf8.first == UInt8(ascii: "/") ? "" : "/"
        return "\(text[..<address.startIndex])\(slash)\(address)"
    }

    // MARK: Mounts

    /// Parses a target below a mount; see ``MountPath``.
    private func mounted(
        _ mount: Mount, called name: String, path: Substring, query: Substring
    ) throws(Problem) -> ParsedTarget {
        guard let named = MountPath(path, sources: mount.sources) else {
            let sources = mount.sources.flatMap(\.fileExtensions).map { ".\($0)" }.joined(separator: ", ")
            // Only the extension of a GIF may be left out.
            let format = mount.sources.contains(.gif) ? "the name of a format" : "one of these and the name of a format"
            throw .notFound("A path of the mount “\(name)” ends in \(sources), or in \(format): \(Self.formatNames).")
        }
        try checkOffer(named.format)
        var reader = OptionReader(
            format: named.format, named: named.isAutomatic ? Route.auto : nil, defaults: defaults)
        let forwarded = try Self.readQuery(query, of: mount, called: name, into: &reader)
        reader.credentials.source =
            mount.rule.base + named.source[...].droppingBytes(1)
            + (forwarded.isEmpty ? "" : "?" + forwarded.joined(separator: "&"))
        let source = try translating(try mount.rule.source(reader.credentials.source), to: Problem.badSourceURL)
        // Dot segments must not lead out of the mount or its allowed paths, and a number sign must not cut off the extension.
        guard MountPath.isSource(source.path, mount.sources), mount.rule.serves(source) else {
            throw .notFound("The mount “\(name)” does not serve this path.")
        }
        let rendition = try reader.finish()
        let isNegotiated = named.isAutomatic || mount.negotiates && named.isSource
        guard !isNegotiated || reader.onMiss != .queue else {
            throw .badOption("on_miss", "cannot be queue where Accept selects the rendition")
        }
        guard !named.isAutomatic || reader.onMiss == nil else {
            throw .badOption("on_miss", "has no effect where Accept selects the rendition")
        }
        var target = ParsedTarget(
            route: .rendition(rendition, source), credentials: reader.credentials, mount: mount,
            address: MountAddress(
                stem: "/\(name)\(named.stem)", isSourcePath: named.stem == named.source, forwarded: forwarded))
        if isNegotiated { try negotiate(&target, reader) }
        adopt(reader, in: &target)
        target.onMiss = named.isAutomatic ? .original : reader.onMiss ?? mount.onMiss
        target.onError = named.isAutomatic ? .original : reader.onError ?? mount.onError
        return target
    }

    /// Reads the options of a mount's query.
    ///
    /// - Returns: The parameters that are sent to the origin, as the client wrote them.
    private static func readQuery(
        _ query: Substring, of mount: Mount, called name: String, into reader: inout OptionReader
    ) throws(Problem) -> [String] {
        var forwarded: [String] = []
        for pair in try pairs(query) {
            let item = try item(pair)
            if reader.hasOption(item.name) {
                try reader.read(item.name, item.value)
            } else if mount.query == .forward {
                forwarded.append(String(pair))
            } else if item.name == "url" {
                throw .badOption("url", "cannot be combined with a mount")
            } else {
                throw .badOption(
                    item.name,
                    "\(RenditionOption.isUnknown(item.name)); with mounts.\(name).query: forward it would be sent to the origin"
                )
            }
        }
        return forwarded
    }

    // MARK: Objects

    private func object(_ name: Substring) throws(Problem) -> Route {
        let parts = name.parts(at: UInt8(ascii: "."), maxSplits: 2, keepingEmpty: true)
        guard parts.count == 2, let id = ObjectID(hex: parts[0]), Rendition.Format(rawValue: String(parts[1])) != nil else {
            throw .notFound("The address of an object is /object/{id}.{extension}, with an id of 64 hexadecimal digits.")
        }
        return .object(id, fileExtension: String(parts[1]))
    }

    // MARK: Statuses

    private func status(_ name: Substring) throws(Problem) -> UInt128 {
        guard name.utf8.count == 32, Hex.decode(name.utf8) != nil, let id = UInt128(name, radix: 16) else {
            throw .notFound("The address of a status is /status/{id}, with an id of 32 hexadecimal digits.")
        }
        return id
    }

    private static func items(_ query: Substring) throws(Problem) -> [QueryItem] {
        var items: [QueryItem] = []
        for pair in try pairs(query) { items.append(try item(pair)) }
        return items
    }

    /// The maximum number of parameters in a query, which bounds the time for parsing them.
    private static let maxParameters = 256

    /// The parameters of a query.
    ///
    /// - Parameter query: The query with its question mark.
    private static func pairs(_ query: Substring) throws(Problem) -> [Substring] {
        let pairs = query.droppingBytes(1).parts(at: UInt8(ascii: "&"), maxSplits: maxParameters)
        guard pairs.count <= maxParameters else {
            throw .badRequest("The query has more than \(maxParameters) parameters.")
        }
        return pairs
    }

    private static func item(_ pair: Substring) throws(Problem) -> QueryItem {
        let parts = pair.parts(at: UInt8(ascii: "="), maxSplits: 1, keepingEmpty: true)
        guard let name = PercentEncoding.decode(parts[0]), let value = PercentEncoding.decode(parts.count > 1 ? parts[1] : "")
        else {
            throw .badRequest("The query is not percent-encoded correctly.")
        }
        return QueryItem(name: name, value: value)
    }
}

extension Problem {
    static func badSourceURL(_ error: SourceURLError) -> Problem { badSourceURL(error.description) }
}
