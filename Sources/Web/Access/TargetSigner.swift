package import Fetch
package import Renditions

/// Writes targets of this service, signed if there are keys.
package struct TargetSigner: Sendable {
    private let keys: SigningKeys

    package init(keys: SigningKeys) {
        self.keys = keys
    }

    /// Writes a target such as `/mp4,expires=…,quality=80,sig=…/https://example.com/a.gif`.
    ///
    /// - Parameters:
    ///   - options: The options with their values as the target shall contain them; they are sorted by name.
    ///   - source: Nil for an upload.
    ///   - expires: The expiry of the signature in seconds since 1970; nil for none.
    /// - Returns: Nil if an option contains a character that cannot be signed.
    package func target(
        _ format: Rendition.Format, _ options: [QueryItem] = [], of source: SourceURL?, expires: Int64? = nil
    ) -> String? {
        guard let options = signed(format, options, of: source, expires: expires) else { return nil }
        let words = [format.rawValue] + options.map { "\($0.name)=\($0.value)" }
        return "/" + words.joined(separator: ",") + (source.map { "/\($0.canonical)" } ?? "")
    }

    /// Returns the options with `expires` and `sig`, for a target of another form: a mount's query. The parameters are those of
    /// ``target(_:_:of:expires:)``.
    func signed(
        _ format: Rendition.Format, _ options: [QueryItem], of source: SourceURL?, expires: Int64?
    ) -> [QueryItem]? {
        var options = options
        if let expires { options.append(QueryItem(name: "expires", value: String(expires))) }
        options.sort { $0.name < $1.name }
        guard let text = SignedText(format: format, options: options, source: source?.canonical ?? "") else { return nil }
        if let signature = keys.signature(of: text) { options.append(QueryItem(name: "sig", value: signature)) }
        return options
    }
}

/// Writes the targets of a source's renditions in the form in which a request addressed the source: below the same mount, or
/// with the URL in the path. They are signed if the request was, with the same expiry.
struct RenditionAddresses: Sendable {
    private let source: SourceURL
    private let mounted: MountAddress?
    private let signer: TargetSigner
    private let expires: Int64?

    /// - Parameters:
    ///   - target: The target of the request, whose signature was verified.
    ///   - source: The source that the target addresses.
    ///   - keys: The service's keys.
    init(_ target: ParsedTarget, of source: SourceURL, keys: SigningKeys) {
        self.source = source
        mounted = target.address
        // A request that needs no signature must not obtain signatures for other requests.
        signer = TargetSigner(keys: target.credentials?.signature == nil ? SigningKeys() : keys)
        expires = target.credentials?.expires
    }

    /// The target of a rendition.
    func target(_ rendition: Rendition) -> String {
        let options = rendition.canonicalOptions.map { QueryItem(name: $0.name, value: $0.value) }
        // No option in canonical form contains a character that cannot be signed, so the signer returns no nil.
        guard let mounted else { return signer.target(rendition.format, options, of: source, expires: expires) ?? "/" }
        let signed = signer.signed(rendition.format, options, of: source, expires: expires) ?? options
        return mounted.target(rendition.format.rawValue, signed)
    }

    /// The source as clients know it: its URL, or its path below the mount.
    var sourceText: String { mounted?.target(Rendition.Format.gif.rawValue) ?? source.canonical }
}
