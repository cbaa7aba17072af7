internal import Cache
internal import Fetch
internal import Renditions

extension PurgeNotice {
    /// The notice of a purge.
    ///
    /// - Parameters:
    ///   - mounts: The mounts by their names; one that serves a source gives it its addresses.
    ///   - publicURL: The address at which clients reach the service; without it, a notice has no URLs.
    init(_ scope: PurgeScope, mounts: [String: Mount], publicURL: String?) {
        var targets: [String] = []
        switch scope {
        case .url(let text):
            if let source = Self.source(text, mounts) { targets = Self.targets(of: source, mounts) }
            self.init(.url, targets, publicURL, [CDNTags(text).source])
        case .prefix(let text):
            // The tag of a host covers the prefix and more; there is no smaller one. A prefix that ends within a host has none.
            let parts = text.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
            self.init(.prefix, [], publicURL, parts.count == 4 ? [CDNTags(text).host] : [])
        case .object(let id):
            // The facts of an upload are composed for each request, but have an address and may be in caches.
            let formats = Rendition.Format.offered.filter { $0.isSentAsStored || $0 == .json }
            targets = formats.map { "/object/\(id).\($0.rawValue)" }
            self.init(.object, targets, publicURL, [])
        case .all: self.init(.all, [], publicURL, [])
        }
    }

    /// The source with a canonical URL. Only a mount knows where an object in S3 or a file is.
    private static func source(_ text: String, _ mounts: [String: Mount]) -> SourceURL? {
        guard [SourceURL.s3Scheme, SourceURL.fileScheme].contains(where: text.hasPrefix) else { return try? SourceURL(text) }
        return mounts.values.lazy.filter { text.hasPrefix($0.rule.base) }.compactMap { try? $0.rule.source(text) }.first
    }

    private static func targets(of source: SourceURL, _ mounts: [String: Mount]) -> [String] {
        let addresses = RenditionAddresses(of: source, mounts: mounts, keys: SigningKeys(), expires: nil)
        let path = [addresses.sourceText].filter { $0.hasPrefix("/") }
        // An object in S3 or a file has addresses below mounts only.
        if source.isOfMount, path.isEmpty { return [] }
        let pages = [Rendition(format: .json), Rendition(format: .html)]
        let renditions = Rendition.listed + pages
        // Player pages name the addresses with file names.
        let named = addresses.isMounted ? [] : renditions.map { addresses.target($0, isNamed: true) }
        return renditions.map { addresses.target($0) } + named + [addresses.automatic] + path
    }

    private init(_ scope: Scope, _ targets: [String], _ publicURL: String?, _ tags: [String]) {
        self.init(scope: scope, urls: publicURL.map { base in targets.map { base + $0 } } ?? [], tags: tags)
    }
}
