internal import Fetch
internal import Renditions

/// Writes the targets of a source's renditions in the form in which a request addressed the source: below the same mount, or
/// with the URL in the path. They are signed exactly where the request was, with the same expiry.
struct RenditionAddresses: Sendable {
    private let source: SourceURL
    private let mounted: MountAddress?
    private let signer: TargetSigner
    private let expires: Int64?

    /// - Parameters:
    ///   - asked: The request; its signature is verified by now.
    ///   - source: The source of its rendition.
    ///   - keys: The service's keys.
    init(_ asked: ParsedTarget, of source: SourceURL, keys: SigningKeys) {
        self.source = source
        mounted = asked.address
        // A request that needs no signature must not obtain signatures for other requests.
        signer = TargetSigner(keys: asked.credentials?.signature == nil ? SigningKeys() : keys)
        expires = asked.credentials?.expires
    }

    /// The target of a rendition.
    func target(_ rendition: Rendition) -> String {
        let options = rendition.canonicalOptions.map { QueryItem(name: $0.name, value: $0.value) }
        // No option in canonical form holds a character that cannot be signed, so neither signer fails.
        guard let mounted else { return signer.target(rendition.format, options, of: source, expires: expires) ?? "/" }
        let signed = signer.signed(rendition.format, options, of: source, expires: expires) ?? options
        return mounted.target(rendition.format.rawValue, signed)
    }

    /// The source as clients know it: its URL, or its path below the mount.
    var sourceText: String { mounted?.target(Rendition.Format.gif.rawValue) ?? source.canonical }
}
