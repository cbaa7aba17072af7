package import Fetch
package import Media
internal import Renditions

/// An origin that targets address by a configured name.
package struct Mount: Sendable, Equatable {
    /// The treatment of a query's parameters.
    package enum Query: String, Sendable, CaseIterable {
        /// Every parameter must be an option; any other is an error.
        case options
        /// A parameter that is not an option is sent to the origin as part of the source's URL, and is part of the cache key.
        case forward
    }

    /// The answer to a request whose rendition is not stored.
    package enum OnMiss: String, Sendable, CaseIterable {
        /// The rendition, as soon as it is produced.
        case wait
        /// The GIF, as it arrives from the origin. For negotiated responses and pages.
        case original
        /// An immediate problem. The rendition is produced in the background. For requests that name a rendition.
        case queue

        /// Returns the choices for requests for the format; empty if the format has no such option.
        static func choices(for format: Rendition.Format) -> [OnMiss] {
            if format == .html { return [.wait, .original] }
            return format.isSentAsStored ? [.wait, .queue] : []
        }
    }

    /// The answer to a request whose rendition cannot be produced.
    package enum OnError: String, Sendable, CaseIterable {
        /// The problem.
        case problem
        /// The GIF itself, which no cache may store.
        case original
    }

    /// The sources of the mount, and the rights of requests for them.
    package var rule: MountRule
    /// Seconds for which a source is fresh; nil for the general setting.
    package var freshFor: Int64?
    /// Seconds of `max-age` in responses; nil for the general setting.
    package var maxAge: Int?
    /// The formats of sources, whose extensions may end the mount's paths. A source's bytes determine its format, whatever its
    /// extension.
    package var sources: [SourceFormat] = [.gif]
    /// Whether a request for a source gets the source itself if its client does not prefer the video in `Accept`.
    package var negotiates = false
    package var onMiss = OnMiss.wait
    package var onError = OnError.problem
    package var query = Query.options

    /// - Parameters:
    ///   - origin: The URL to which the paths of targets are appended.
    ///   - allow: The path prefixes below the origin that are served; see ``MountRule``.
    package init(origin: SourceURL, allow: [String] = []) {
        rule = MountRule(origin, allow: allow)
    }
}

/// The address of a source below a mount. Responses show it instead of the origin's URL.
struct MountAddress: Sendable, Equatable {
    /// The path to which the name of a format is appended, such as `/media/x/a`; see ``MountPath/stem``.
    var stem: String
    /// Whether the stem is the path of the source. Otherwise the path is the stem followed by `.gif`.
    var isSourcePath = false
    /// Parameters that are sent to the origin, as the client wrote them.
    var forwarded: [String] = []
}

extension MountAddress {
    /// The address of a source below a mount; nil if it has none there.
    init?(of source: SourceURL, below mount: Mount, called name: String) {
        let base = mount.rule.base
        guard mount.rule.serves(source), source.canonical.hasPrefix(base), source.query == nil || mount.query == .forward else {
            return nil
        }
        let path = "/" + source.canonical[...].droppingBytes(base.utf8.count).before(UInt8(ascii: "?"))
        guard let named = MountPath(path[...], sources: mount.sources), named.isSource else { return nil }
        let forwarded = source.query?[...].parts(at: UInt8(ascii: "&")).map(String.init) ?? []
        // A forwarded parameter with an option's name would be read as an option of the rendition.
        if forwarded.contains(where: { OptionReader.isOption(String($0[...].before(UInt8(ascii: "=")))) }) { return nil }
        self.init(stem: "/\(name)\(named.stem)", isSourcePath: named.stem == named.source, forwarded: forwarded)
    }

    /// Returns the target of a rendition of the source.
    ///
    /// - Parameters:
    ///   - fileExtension: The name of a format.
    ///   - options: Including `expires` and `sig`, if the target is signed.
    func target(_ fileExtension: String, _ options: [QueryItem] = []) -> String {
        // Without the source's extension, `.gif` would name the source itself.
        let isAmbiguous = !isSourcePath && fileExtension == Rendition.Format.gif.rawValue
        return (isAmbiguous ? "\(stem).gif" : stem) + ".\(fileExtension)" + query(options)
    }

    /// The target of the source itself.
    var source: String { (isSourcePath ? stem : "\(stem).gif") + query([]) }

    private func query(_ options: [QueryItem]) -> String {
        let pairs = forwarded + options.map { "\($0.name)=\($0.value)" }
        return pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&")
    }
}

/// The source and the format that a path below a mount names.
struct MountPath: Equatable {
    /// The path of the source below the origin. Its extension keeps its case, because paths of origins are case-sensitive.
    let source: String
    /// The path to which the names of formats are appended.
    let stem: String
    let format: Rendition.Format
    /// Whether the path addresses the source itself.
    let isSource: Bool
    /// Whether `Accept` selects the rendition, regardless of the mount's settings.
    let isAutomatic: Bool
}

extension MountPath {
    /// Reads a path.
    ///
    /// The format's extension follows the source's, `a.gif.mp4`, or replaces that of a GIF: `a.mp4` is made from `a.gif`, unless
    /// it is a source. If the mount has only GIFs, addresses have the shorter form.
    ///
    /// - Returns: Nil if the path ends in neither a source's extension nor a format's name, or names no source.
    init?(_ path: Substring, sources: [SourceFormat]) {
        guard let (name, last) = path.splitAtExtension else { return nil }
        let extensions = sources.flatMap(\.fileExtensions)
        let hasOnlyGIFs = sources == [.gif]
        let isAutomatic = last == Route.auto
        let format = isAutomatic ? .mp4 : Rendition.Format.named(last)
        // This check comes first, because gif and webp are both extensions of sources and names of formats.
        if let format, let (_, inner) = name.splitAtExtension, extensions.contains(inner) {
            self.init(
                source: String(name), stem: String(name), format: format, isSource: false, isAutomatic: isAutomatic)
            return
        }
        // An omitted extension is always read as `.gif` in lower case.
        let source = String(name) + ".gif"
        if extensions.contains(last) {
            let stem = hasOnlyGIFs && path == source ? name : path
            self.init(source: String(path), stem: String(stem), format: .mp4, isSource: true, isAutomatic: false)
            return
        }
        guard let format, sources.contains(.gif) else { return nil }
        self.init(
            source: source, stem: hasOnlyGIFs ? String(name) : source, format: format, isSource: false, isAutomatic: isAutomatic
        )
    }

    static func isSource(_ path: String, _ sources: [SourceFormat]) -> Bool {
        guard let (_, last) = path[...].splitAtExtension else { return false }
        return sources.contains { $0.fileExtensions.contains(last) }
    }
}
