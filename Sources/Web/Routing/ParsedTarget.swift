internal import Fetch
internal import Renditions
internal import SystemIO

/// A request target after parsing: its route, its credentials and its mount.
struct ParsedTarget: Sendable {
    var route: Route
    /// Nil for routes that need no signature.
    var credentials: RequestSignature?
    /// The key that signed the request; nil without one and before access is checked.
    var key: SigningKey?
    /// The mount of the request; nil if the target contains the URL of its source.
    var mount: Mount?
    /// The source as the mount's clients address it.
    var address: MountAddress?
    /// The renditions from which `Accept` selects; nil if the target names one rendition for all clients.
    var negotiation: Negotiation<Rendition>?

    /// The answer to a request whose rendition is not stored.
    var onMiss = Mount.OnMiss.wait
    /// The URL that receives the outcome of an asynchronous request, as the client wrote it.
    var callback: String?
    /// The default options, which addresses omit.
    var defaults = RenditionDefaults()
    /// The preset that the target names, if the settings define it.
    var preset: String?
    /// The text that describes the animation of a page; nil for the name of the source.
    var title: String?
    /// Whether the client's hints decide the width.
    var hasAutomaticWidth = false
    /// The response if the rendition cannot be produced.
    var onError = Mount.OnError.problem
    var refusesLarger = false

    var source: SourceURL? {
        if case .rendition(_, let url) = route { return url }
        return nil
    }

    private var isPage: Bool {
        if case .rendition(let rendition, _) = route { rendition.format == .html } else { false }
    }

    /// The properties on which the response's fields depend.
    var terms: ResponseTerms {
        ResponseTerms(
            maxAge: mount?.maxAge, expires: credentials?.expires, varies: negotiation != nil,
            variesByWidth: hasAutomaticWidth && !isPage)
    }
}

/// The properties of a request on which the fields of its response depend.
struct ResponseTerms: Sendable, Equatable {
    /// Seconds of `max-age`, if the mount sets them.
    var maxAge: Int?
    /// The expiry of the signature, in seconds since 1970. No cache may store the response for longer.
    var expires: Int64?
    var varies = false
    /// Whether the response depends on the client's hints about its width.
    var variesByWidth = false
    /// The maximum lifetime of the response in any cache, in seconds; nil for the configured lifetime.
    var longest: Int?

    /// The terms of most requests: no expiry, and no mount with terms of its own.
    static let plain = ResponseTerms()

    var isPlain: Bool { maxAge == nil && expires == nil && longest == nil && vary == nil }

    /// Returns the terms with an upper bound, in seconds, on how long any cache may store the response.
    func limited(to seconds: Int) -> ResponseTerms {
        var terms = self
        terms.longest = min(longest ?? seconds, seconds)
        return terms
    }

    /// The value of `Vary`; nil for none.
    var vary: String? {
        let names = (varies ? ["Accept"] : []) + (variesByWidth ? [WidthHints.names] : [])
        return names.isEmpty ? nil : names.joined(separator: ", ")
    }
}

extension ParsedTarget {
    /// Returns the text of the target without its callback, which is not part of the rendition's address. The signature covers
    /// the remaining options.
    ///
    /// - Parameters:
    ///   - text: The target as the client sent it.
    ///   - keys: The service's keys.
    func withoutCallback(_ text: String, keys: SigningKeys) -> String {
        guard callback != nil, var credentials else { return text }
        credentials.options.removeAll { $0.name == OptionReader.callback }
        let signed = SignedText(credentials.name, options: credentials.options, source: credentials.source)
        // A request that needs no signature must not obtain one.
        let signature = signed.flatMap { keys.only(key).signature(of: $0.text) }
        let (path, query) = text.pathAndQuery
        let segment = path.droppingBytes(1).before(UInt8(ascii: "/"))
        let words = RouteParser.words(segment)
        let rest = path[segment.endIndex...]
        let options = Self.rewritten(words.dropFirst(), signature)
        let first = ([String(words.first ?? "")] + options).joined(separator: ",")
        let start = "/\(first)\(rest)"
        // The query after an unencoded URL belongs to the source.
        if mount == nil, RouteParser.verbatimURL(rest.withoutLeadingSlashes) != nil { return start + query }
        let pairs = Self.rewritten(query.droppingBytes(1).parts(at: UInt8(ascii: "&"))[...], signature)
        return pairs.isEmpty ? start : start + "?" + pairs.joined(separator: "&")
    }

    /// Returns the options as the client wrote them, without the callback and with another signature.
    private static func rewritten(_ options: ArraySlice<Substring>, _ signature: String?) -> [String] {
        options.compactMap { option -> String? in
            // The equals sign may be encoded too.
            switch PercentEncoding.decode(option)?[...].before(UInt8(ascii: "=")) {
            case OptionReader.callback[...]: nil
            case OptionReader.signature[...]: signature.map { "\(OptionReader.signature)=\($0)" } ?? String(option)
            default: String(option)
            }
        }
    }
}
