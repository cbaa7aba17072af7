/// The rules for sources, compiled once per revision of the settings: which sources may be fetched, and with which rights.
///
/// Answers all questions about a source: `sources.allow`, `sources.ports`, `sources.allow_private` for hosts that are
/// addresses, and the mounts with their paths, signatures and fields. ``PathPrefix`` defines how paths are compared.
///
/// ```
/// let rights = rules.rights(to: source)
/// if let refusal = rights.refusal { return forbidden(refusal) }
/// if rights.needsSignature, !isSigned { return forbidden(.signature) }
/// ```
///
/// The answers neither block nor need a lookup, so they apply even to sources with cached renditions: a source that a reload
/// forbids is refused at once. The addresses of a host *name* are known only when a connection is opened. The caller therefore
/// revalidates every source with its origin after `sources.allow_private` is narrowed.
package struct SourceRules: Sendable {
    /// The addresses that may be connected to.
    let addresses: AddressPolicy
    /// The patterns whose host contains no star, by host.
    private let patternsByHost: [String: [SourcePattern]]
    private let globs: [SourcePattern]
    private let mounts: [MountRule]
    /// The mounts, by the host of their origin or of their bucket's service.
    private let mountsByHost: [String: [MountRule]]
    private let mountsOfFiles: [MountRule]

    /// - Parameters:
    ///   - allow: The patterns. At least one must match a source that no mount serves.
    ///   - mounts: The mounts. Their sources need no matching pattern.
    init(allow: [SourcePattern], addresses: AddressPolicy, mounts: [MountRule]) {
        self.addresses = addresses
        globs = allow.filter { $0.literalHost == nil }
        patternsByHost = Dictionary(grouping: allow.filter { $0.literalHost != nil }) { $0.literalHost ?? "" }
        self.mounts = mounts
        mountsOfFiles = mounts.filter { $0.root.address == nil }
        mountsByHost = Dictionary(grouping: mounts.filter { $0.root.address != nil }) { $0.root.host }
    }

    /// The reason why a source may not be fetched.
    package enum Refusal: Hashable, Sendable {
        /// No pattern of `sources.allow` matches and no mount serves the source.
        case pattern
        /// The source redirects to a URL of this host, which no pattern or mount permits for the source.
        case redirect(host: String)
        /// The address or the port may not be connected to.
        case address(AddressRefusal)
    }

    /// The rights of requests for one source.
    package struct Rights: Sendable, Equatable {
        /// The reason for a refusal; nil if only the addresses of the source's host can still forbid the source.
        package var refusal: Refusal?
        /// Whether requests must be signed, unless their mount overrides this.
        package var needsSignature = false
        /// Whether requests must name a mount.
        package var needsMount = false
    }

    /// Returns the source with a URL, which may be a `file://` or `s3://` URL below a mount.
    ///
    /// - Parameter text: The URL as an operator spells it. Clients name sources by `http` and `https` URLs and by mounts.
    package func source(_ text: String) throws(SourceURLError) -> SourceURL {
        let canonical = try SourceURL.canonicalText(of: text)
        if let source = MountRule.source(canonical, below: mounts) { return source }
        return try SourceURL(text)
    }

    /// Returns the rights of requests for `source`.
    package func rights(to source: SourceURL) -> Rights {
        let mounts = mounts(at: source)
        return Rights(
            refusal: refusal(of: source, mounts), needsSignature: mounts.contains { $0.needsSignature(source) },
            needsMount: mounts.contains { $0.isPrivate(source) })
    }

    /// Returns why `source` may not be fetched; nil if only the addresses of its host can still forbid it.
    func refusal(of source: SourceURL) -> Refusal? { refusal(of: source, mounts(at: source)) }

    private func refusal(of source: SourceURL, _ mounts: [MountRule]) -> Refusal? {
        guard mounts.contains(where: { $0.serves(source) }) || pattern(allowing: source) != nil else { return .pattern }
        return source.address.flatMap(addresses.refusal).map { .address($0) }
    }

    /// Returns the first pattern of `sources.allow` that matches `source`; nil if none does or only mounts can name `source`.
    package func pattern(allowing source: SourceURL) -> SourcePattern? {
        guard case .web(let address) = source else { return nil }
        return (patternsByHost[address.host] ?? []).first { $0.matches(address) } ?? globs.first { $0.matches(address) }
    }

    /// Returns why `source` may not redirect to `target`; nil if it may.
    ///
    /// The request for the source may lack the signature or the mount that a request for the target needs.
    func refusal(of target: SourceURL, redirectedFrom source: SourceURL) -> Refusal? {
        let mounts = mounts(at: target)
        let isProtected = mounts.contains {
            $0.needsSignature(target) && !$0.needsSignature(source) || $0.isPrivate(target) && !$0.isPrivate(source)
        }
        let reason: Refusal? = isProtected ? .pattern : refusal(of: target, mounts)
        return reason == .pattern && target != source ? .redirect(host: target.host) : reason
    }

    /// Returns the mount's header fields for a request for `url`, which is `source` or the target of a redirect.
    ///
    /// Both URLs must belong to the mount. Neither a source that redirects to a private origin nor a host to which that origin
    /// redirects may get the origin's credentials.
    func fields(of url: SourceURL, source: SourceURL) -> [String] {
        // Mounts with fields overlap only with mounts that have the same fields.
        mounts(at: url).first { $0.lendsFields(to: url) && $0.lendsFields(to: source) }?.fields ?? []
    }

    private func mounts(at source: SourceURL) -> [MountRule] {
        source.address.map { mountsByHost[$0.host] ?? [] } ?? mountsOfFiles
    }
}
