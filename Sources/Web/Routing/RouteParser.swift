internal import Cache
internal import Fetch

/// Reads request targets (API.md §1, §5). A pure function of the target and the mounts.
package struct RouteParser: Sendable {
    package let mounts: [String: Mount]

    package init(mounts: [String: Mount]) {
        self.mounts = mounts
    }

    /// What the target asks for.
    ///
    /// - Parameters:
    ///   - target: Path and query as they were sent.
    ///   - hasBody: Whether the request brings the source itself (POST).
    ///   - fields: Options that the body brings, as a form does.
    /// - Throws: ``Problem``: `not_found`, `bad_source_url` or `bad_option`.
    package func parse(_ target: String, hasBody: Bool = false, fields: [QueryItem] = []) throws(Problem) -> ParsedTarget {
        // A mark that combines with a separator would make another character of it.
        guard target.utf8.allSatisfy({ $0 < 0x80 }) else { throw .badRequest("The target holds characters outside ASCII.") }
        let path = target.prefix { $0 != "?" }
        let query = target.dropFirst(path.count)
        let segments = path.dropFirst()
        let first = segments.prefix { $0 != "/" }
        let rest = segments.dropFirst(first.count)
        switch first {
        case "" where rest.isEmpty: return ParsedTarget(.home)
        case "oembed" where rest.isEmpty: return ParsedTarget(.oembed(try Self.items(query.dropFirst())))
        case "healthz" where rest.isEmpty: return ParsedTarget(.health)
        case "readyz" where rest.isEmpty: return ParsedTarget(.readiness)
        case "prewarm" where !rest.dropFirst().contains("/"):
            let id = rest.count > 1 ? String(rest.dropFirst()) : nil
            return ParsedTarget(.prewarm(id, try Self.items(query.dropFirst())))
        case "metrics" where rest.isEmpty: return ParsedTarget(.metrics)
        case "cache" where rest.isEmpty: return ParsedTarget(.cache(try Self.items(query.dropFirst())))
        case "object": return ParsedTarget(try object(rest.dropFirst()))
        default: break
        }
        let words = first.split(separator: ",", omittingEmptySubsequences: false)
        if let word = words.first, let format = Rendition.Format.named(word) {
            return try rendition(format, options: words.dropFirst(), rest: rest, query: query, hasBody: hasBody, fields: fields)
        }
        if let mount = mounts[String(first)], !hasBody { return try mounted(mount, path: rest, query: query) }
        throw .notFound
    }

    // MARK: Renditions

    private func rendition(
        _ format: Rendition.Format, options: ArraySlice<Substring>, rest: Substring, query: Substring, hasBody: Bool,
        fields: [QueryItem]
    ) throws(Problem) -> ParsedTarget {
        var reader = OptionReader(format: format)
        for option in options { try reader.readPair(option) }
        let source = rest.drop { $0 == "/" }
        if source.isEmpty {
            let url = try reader.readQuery(try Self.items(query.dropFirst()) + fields)
            if hasBody {
                guard url == nil else { throw .badOption("url", "does not go with a body") }
                return ParsedTarget(.upload(try reader.finish()), credentials: reader.credentials)
            }
            guard let url else { throw .badSourceURL("The source URL is missing.") }
            return try Self.parsed(&reader, url)
        }
        guard !hasBody else { throw .notFound }
        if let verbatim = Self.verbatimURL(source) {
            // The query belongs to the source.
            return try Self.parsed(&reader, verbatim + query)
        }
        guard let decoded = PercentText.decode(source) else {
            throw .badSourceURL("The source URL is not percent-encoded correctly.")
        }
        guard try reader.readQuery(try Self.items(query.dropFirst())) == nil else {
            throw .badOption("url", "is given twice")
        }
        return try Self.parsed(&reader, decoded)
    }

    private static func parsed(_ reader: inout OptionReader, _ text: String) throws(Problem) -> ParsedTarget {
        reader.credentials.source = text
        return ParsedTarget(.rendition(try reader.finish(), try source(text)), credentials: reader.credentials)
    }

    /// A URL as it stands in the path; one slash after the scheme is two that a proxy merged.
    private static func verbatimURL(_ text: Substring) -> String? {
        for scheme in ["http:/", "https:/"] where text.lowercased().hasPrefix(scheme) {
            let address = text.dropFirst(scheme.count)
            return text.prefix(scheme.count) + (address.hasPrefix("/") ? "" : "/") + address
        }
        return nil
    }

    private static func source(_ text: String) throws(Problem) -> SourceURL {
        do throws(SourceURLError) {
            return try SourceURL(text)
        } catch {
            throw .badSourceURL(error.description)
        }
    }

    // MARK: Mounts

    /// The source is the same path under the mount's origin, ending in `.gif`; the extension says what is wanted.
    private func mounted(_ mount: Mount, path: Substring, query: Substring) throws(Problem) -> ParsedTarget {
        guard let dot = path.lastIndex(of: "."), !path[dot...].contains("/") else { throw .notFound }
        let format: Rendition.Format
        switch path[dot...].dropFirst() {
        case "gif": format = .mp4
        case let name:
            guard let named = Rendition.Format.named(name) else { throw .notFound }
            format = named
        }
        var reader = OptionReader(format: format)
        guard try reader.readQuery(try Self.items(query.dropFirst())) == nil else {
            throw .badOption("url", "does not go with a mount")
        }
        reader.credentials.source = mount.base + path[..<dot].dropFirst() + ".gif"
        let source = try Self.source(reader.credentials.source)
        // Dot segments must not lead out of the mount, nor out of what is open of it; nor may a number sign, where a client
        // sends it, cut the extension off.
        guard source.canonical.hasPrefix(mount.base), source.canonical.hasSuffix(".gif"),
            mount.patterns.contains(where: { $0.matches(source) })
        else { throw .notFound }
        let isNegotiable = mount.negotiates && path[dot...] == ".gif"
        return ParsedTarget(
            .rendition(try reader.finish(), source), credentials: reader.credentials, mount: mount, isNegotiable: isNegotiable)
    }

    // MARK: Objects

    private func object(_ name: Substring) throws(Problem) -> Route {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let id = ObjectID(hex: parts[0]), Rendition.Format(rawValue: String(parts[1])) != nil else {
            throw .notFound
        }
        return .object(id, fileExtension: String(parts[1]))
    }

    private static func items(_ query: Substring) throws(Problem) -> [QueryItem] {
        var items: [QueryItem] = []
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentText.decode(parts[0]), let value = PercentText.decode(parts.count > 1 ? parts[1] : "")
            else {
                throw .badRequest("The query is not percent-encoded correctly.")
            }
            items.append(QueryItem(name: name, value: value))
        }
        return items
    }
}
