/// What a purge covers.
package enum PurgeScope: Sendable, Hashable {
    /// Every rendition of this source: its canonical URL, compared byte by byte.
    case url(String)
    /// Every rendition of a source whose canonical URL begins with these bytes.
    case prefix(String)
    /// This rendition and every alias to it.
    case object(ObjectID)
    /// Everything, uploaded renditions too.
    case all

    /// Whether a rendition is covered.
    ///
    /// - Parameters:
    ///   - sourceURL: Its source's canonical URL; nil for an upload.
    ///   - object: Its id; nil if it is not known yet.
    package func covers(_ sourceURL: String?, object: ObjectID? = nil) -> Bool {
        switch self {
        case .all: true
        case .object(let id): object == id
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
