/// The rules for sources, compiled once per revision of the settings: which sources may be fetched, and with which rights.
///
/// All questions about a source are answered here: `sources.allow`, `sources.ports`, `sources.allow_private` for hosts that are
/// addresses, and the mounts with their paths, signatures and fields. The rules compare paths as ``PathPrefix`` does.
///
/// ```
/// let rights = rules.rights(to: source)
/// if let refusal = rights.refusal { return forbidden(refusal) }
/// if rights.needsSignature, !isSigned { return forbidden(.signature) }
/// ```
///
/// The answers neither block nor look anything up, so they also apply to sources whose renditions are cached: a source that a reload
/// forbids is refused at once. The addresses behind a *name* are known only when a connection is opened. The caller therefore
/// has every origin asked again after `sources.allow_private` was narrowed.
package struct SourceRules: Sendable {
    /// The addresses that may be connected to.
    let addresses: AddressPolicy
    /// Patterns by their host, if that has no star.
    private let patternsByHost: [String: [SourcePattern]]
    private let globs: [SourcePattern]
    /// Mounts by the host of their origin, or of the service of their bucket.
    private let mountsByHost: [String: [MountRule]]
    private let mountsOfFiles: [MountRule]

    /// - Parameters:
    ///   - allow: One of these has to match a source, unless a mount serves it.
    ///   - mounts: The mounts, whose sources may be fetched in any case.
    init(allow: [SourcePattern], addresses: AddressPolicy, mounts: [MountRule]) {
        self.addresses = addresses
        globs = allow.filter { $0.literalHost == nil }
        patternsByHost = Dictionary(grouping: allow.filter { $0.literalHost != nil }) { $0.literalHost ?? "" }
        mountsOfFiles = mounts.filter { $0.root.address == nil }
        mountsByHost = Dictionary(grouping: mounts.filter { $0.root.address != nil }) { $0.root.host }
    }

    /// The reason why a source may not be fetched.
    package enum Refusal: Hashable, Sendable {
        /// No pattern of `sources.allow` matches and no mount serves the source.
        case pattern
        /// The address or the port may not be connected to.
        case address(AddressRefusal)
    }

    /// The rights of requests for one source.
    package struct Rights: Sendable, Equatable {
        /// Nil if only the addresses of the source's host can still forbid it.
        package var refusal: Refusal?
        /// Whether requests must be signed, unless their mount has a rule of its own.
        package var needsSignature = false
        /// Whether requests must name a mount.
        package var needsMount = false
    }

    /// The rights of requests for `source`.
    package func rights(to source: SourceURL) -> Rights {
        let mounts = mounts(at: source)
        return Rights(
            refusal: refusal(of: source, mounts), needsSignature: mounts.contains { $0.needsSignature(source) },
            needsMount: mounts.contains { $0.isPrivate(source) })
    }

    /// Why `source` may not be fetched; nil if only the addresses of its host can still forbid it.
    func refusal(of source: SourceURL) -> Refusal? { refusal(of: source, mounts(at: source)) }

    private func refusal(of source: SourceURL, _ mounts: [MountRule]) -> Refusal? {
        guard mounts.contains(where: { $0.serves(source) }) || pattern(allowing: source) != nil else { return .pattern }
        return source.address.flatMap(addresses.refusal).map { .address($0) }
    }

    /// The first pattern of `sources.allow` that permits a source which any client can name; nil for none.
    package func pattern(allowing source: SourceURL) -> SourcePattern? {
        guard case .web(let address) = source else { return nil }
        return (patternsByHost[address.host] ?? []).first { $0.matches(address) } ?? globs.first { $0.matches(address) }
    }

    /// Why `source` may not redirect to `target`.
    ///
    /// The request for the source may have been without the signature or the mount that one for the target needs.
    func refusal(of target: SourceURL, redirectedFrom source: SourceURL) -> Refusal? {
        let mounts = mounts(at: target)
        let isProtected = mounts.contains {
            $0.needsSignature(target) && !$0.needsSignature(source) || $0.isPrivate(target) && !$0.isPrivate(source)
        }
        return isProtected ? .pattern : refusal(of: target, mounts)
    }

    /// The fields of a request for `url`, which is `source` or the target of a redirect.
    ///
    /// A source that redirects to a private origin must not have its credentials, and neither must a host to which that origin
    /// redirects.
    func fields(of url: SourceURL, source: SourceURL) -> [String] {
        // Mounts that lend fields overlap only with those that lend the same ones.
        mounts(at: url).first { $0.lendsFields(to: url) && $0.lendsFields(to: source) }?.fields ?? []
    }

    private func mounts(at source: SourceURL) -> [MountRule] {
        source.address.map { mountsByHost[$0.host] ?? [] } ?? mountsOfFiles
    }
}
