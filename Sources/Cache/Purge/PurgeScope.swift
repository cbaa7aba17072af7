/// What a purge covers.
package enum PurgeScope: Sendable, Hashable {
    /// Every rendition of this source: its canonical URL, compared byte by byte.
    case url(String)
    /// Every rendition of a source whose canonical URL begins with these bytes.
    case prefix(String)
    /// Everything, uploaded renditions too.
    case all

    /// Whether a source is covered; nil stands for a rendition without a source, which only ``all`` covers.
    package func covers(_ sourceURL: String?) -> Bool {
        switch self {
        case .all: true
        case .url(let url): sourceURL.map { $0.utf8.elementsEqual(url.utf8) } ?? false
        case .prefix(let prefix): sourceURL?.utf8.starts(with: prefix.utf8) ?? false
        }
    }
}

/// What a purge removed.
package struct PurgeResult: Sendable, Equatable {
    /// Renditions forgotten: aliases, and objects that had none.
    package let purged: Int64
    /// Bytes of the files removed.
    package let bytes: Int64

    package init(purged: Int64, bytes: Int64) {
        self.purged = purged
        self.bytes = bytes
    }
}
