package import Fetch
package import Renditions

/// The targets of a source's renditions, in the form in which a request addressed the source: below the same mount, or with the
/// URL in the path. If the request was signed, they are signed with the same expiry.
package struct RenditionAddresses: Sendable {
    private let source: SourceURL
    private let mounted: MountAddress?
    /// The keys that sign; empty for targets without signatures.
    private let keys: SigningKeys
    private let expires: Int64?
    private let defaults: RenditionDefaults
    private let preset: String?
    private let hasAutomaticWidth: Bool

    /// - Parameters:
    ///   - target: The target of the request, whose signature was verified.
    ///   - source: The source that the target addresses.
    ///   - keys: The service's keys.
    init(_ target: ParsedTarget, of source: SourceURL, keys: SigningKeys) {
        self.source = source
        mounted = target.address
        // A request that needs no signature must not obtain signatures for other requests.
        self.keys = keys.only(target.key)
        expires = target.credentials?.expires
        defaults = target.defaults
        preset = target.preset
        hasAutomaticWidth = target.hasAutomaticWidth
    }

    /// - Parameters:
    ///   - source: A source that a page shows, addressed below a mount if one serves it.
    ///   - keys: The keys that sign; empty for targets without signatures.
    ///   - expires: The expiry of the signatures, in seconds since 1970; nil for none.
    ///   - preset: A preset of the service that addresses name where possible; nil for none.
    package init(
        of source: SourceURL, mounts: [String: Mount], keys: SigningKeys, expires: Int64?, preset: String? = nil,
        presets: RenditionPresets = RenditionPresets()
    ) {
        self.source = source
        let candidates = mounts.compactMap { name, mount in
            MountAddress(of: source, below: mount, called: name).map { (base: mount.rule.base, name: name, address: $0) }
        }
        // Selects the innermost mount; ties go to the first by name.
        mounted = candidates.max { ($0.base.utf8.count, $1.name) < ($1.base.utf8.count, $0.name) }?.address
        self.keys = keys
        self.expires = expires
        defaults = RenditionDefaults(presets: presets)
        self.preset = preset
        hasAutomaticWidth = false
    }

    /// Returns the target of a rendition.
    ///
    /// - Parameter isNamed: Whether the path ends with a file name, for programs that infer the type from the extension. A path
    ///   below a mount always does.
    package func target(_ rendition: Rendition, isNamed: Bool = false) -> String {
        target(rendition.format.rawValue, options(of: rendition), fileName: isNamed ? fileName(rendition.format) : nil)
    }

    private func options(of rendition: Rendition) -> [QueryItem] {
        var options = defaults.options(of: rendition, preset: preset).map { QueryItem(name: $0.name, value: $0.value) }
        if hasAutomaticWidth, RenditionOption.width.applies(to: rendition.format) {
            options = options.filter { $0.name != RenditionOption.width.rawValue }
            options.append(QueryItem(name: RenditionOption.width.rawValue, value: OptionReader.automatic))
            options.sort { $0.name < $1.name }
        }
        return options
    }

    private func fileName(_ format: Rendition.Format) -> String {
        FileName(of: source.canonical, format.fileExtensions).text
    }

    /// The target whose rendition `Accept` selects.
    package var automatic: String { target(Route.auto, []) }

    /// Returns the target whose rendition `Accept` selects, with those options of a page that apply to videos.
    package func automatic(of page: Rendition) -> String { target(Route.auto, options(of: page.inFormat(.mp4))) }

    /// Returns a target. Canonical options contain no character that cannot be signed, so the fallback is never used.
    private func target(_ name: String, _ options: [QueryItem], fileName: String? = nil) -> String {
        guard let mounted else {
            return keys.target(name, options, of: source, expires: expires, fileName: fileName) ?? "/"
        }
        return mounted.target(name, keys.signed(name, options, of: source, expires: expires) ?? options)
    }

    /// Whether the targets are below a mount.
    package var isMounted: Bool { mounted != nil }

    /// The name of the targets' mount; nil for targets with the URL in the path.
    package var mountName: String? { mounted?.stem.split(separator: "/").first.map(String.init) }

    /// The source as clients see it: its URL, or its path below the mount.
    var sourceText: String { mounted?.source ?? source.canonical }
}
