internal import Media
internal import Renditions

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

    /// Whether a path ends in the extension of a source.
    static func isSource(_ path: String, _ sources: [SourceFormat]) -> Bool {
        guard let (_, last) = path[...].splitAtExtension else { return false }
        return sources.contains { $0.fileExtensions.contains(last) }
    }
}
