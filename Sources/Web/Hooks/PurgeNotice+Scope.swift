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
            if let source = try? SourceURL(text) {
                let addresses = RenditionAddresses(of: source, mounts: mounts, keys: SigningKeys(), expires: nil)
                let pages = [Rendition(format: .json), Rendition(format: .html)]
                targets = (Rendition.listed + pages).map(addresses.target) + [addresses.sourceText].filter { $0.hasPrefix("/") }
            }
            self.init(.url, targets, publicURL, [CDNTags(text).source])
        case .prefix(let text):
            // The tag of a host covers the prefix and more; there is no smaller one. A prefix that ends within a host has none.
            let parts = text.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
            self.init(.prefix, [], publicURL, parts.count == 4 ? [CDNTags(text).host] : [])
        case .object(let id):
            targets = Rendition.Format.offered.filter(\.isSentAsStored).map { "/object/\(id).\($0.rawValue)" }
            self.init(.object, targets, publicURL, [])
        case .all: self.init(.all, [], publicURL, [])
        }
    }

    private init(_ scope: Scope, _ targets: [String], _ publicURL: String?, _ tags: [String]) {
        self.init(scope: scope, urls: publicURL.map { base in targets.map { base + $0 } } ?? [], tags: tags)
    }
}
