/// The renditions that a purge covers.
package enum PurgeScope: Sendable, Hashable {
    /// Every rendition of this source: its canonical URL, compared byte by byte.
    case url(String)
    /// Every rendition of a source whose canonical URL begins with these bytes.
    case prefix(String)
    /// Every rendition of a source on this host, by any scheme and port.
    case host(String)
    /// The rendition with this id, and every alias to it.
    case object(ObjectID)
    /// Everything, including uploaded renditions.
    case all

    /// Whether every rendition of a source is covered.
    ///
    /// - Parameter sourceURL: The source's canonical URL; nil for an upload.
    package func covers(_ sourceURL: String?) -> Bool {
        switch self {
        case .all: true
        case .object: false
        case .url(let url): sourceURL.map { $0.utf8.elementsEqual(url.utf8) } ?? false
        case .prefix(let prefix): sourceURL?.utf8.starts(with: prefix.utf8) ?? false
        case .host(let host): sourceURL.flatMap(Self.host) == host
        }
    }

    package static func host(of url: String) -> String? {
        let bytes = url.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else { return nil }
        let rest = bytes[bytes.index(colon, offsetBy: 3)...]
        let end: String.Index
        if rest.first == UInt8(ascii: "[") {
            guard let bracket = rest.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            end = bytes.index(after: bracket)
        } else {
            end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: ":") } ?? rest.endIndex
        }
        return rest.startIndex < end ? String(url[rest.startIndex..<end]) : nil
    }

    /// The prefixes of the canonical URLs that a purge by prefix or host covers; nil for other scopes.
    package var prefixes: [String]? {
        switch self {
        case .prefix(let prefix): [prefix]
        case .host(let host): ["http", "https", "s3"].flatMap { ["\($0)://\(host)/", "\($0)://\(host):"] }
        case .url, .object, .all: nil
        }
    }

    package var objectID: ObjectID? {
        if case .object(let id) = self { id } else { nil }
    }

    /// The kind as one letter, as stored and sent.
    package var kind: String {
        switch self {
        case .url: "u"
        case .prefix: "p"
        case .host: "h"
        case .object: "o"
        case .all: "a"
        }
    }

    package var argument: String {
        switch self {
        case .url(let text), .prefix(let text), .host(let text): text
        case .object(let id): id.description
        case .all: ""
        }
    }

    /// Nil for an unknown kind, or an object's id that is malformed.
    package init?(kind: String, argument: String) {
        var scopes: [PurgeScope] = [.url(argument), .prefix(argument), .host(argument), .all]
        if let id = ObjectID(hex: argument) { scopes.append(.object(id)) }
        guard let scope = scopes.first(where: { $0.kind == kind }) else { return nil }
        self = scope
    }
}

/// A purge as accepted by its node.
package struct Purge: Sendable, Equatable {
    package let scope: PurgeScope
    /// The latest time at which it may have been accepted, in milliseconds of the cluster's clock; see `SharedClock`.
    ///
    /// On a receiving node, the purge covers what may have been requested from the origin, or uploaded, up to this time.
    package let madeAt: Int64
    /// Whether this node accepted the purge. It then covers everything stored before it, regardless of the time.
    package let isLocal: Bool
    /// Identifies it on all nodes.
    package let token: String
    /// Its entry in the cluster's stream; nil until the stream contains the purge, empty for a purge of this node only.
    package var entry: String?

    package init(_ scope: PurgeScope, madeAt: Int64, isLocal: Bool, token: String, entry: String?) {
        self.scope = scope
        self.madeAt = madeAt
        self.isLocal = isLocal
        self.token = token
        self.entry = entry
    }
}

/// What purges removed, on one node or in total on several.
package struct PurgeCounts: Sendable, Equatable {
    /// Renditions: aliases, and objects without an alias.
    package var purged: Int64
    package var bytes: Int64

    package init(purged: Int64 = 0, bytes: Int64 = 0) {
        self.purged = purged
        self.bytes = bytes
    }

    /// Adds other counts, saturating on overflow.
    package mutating func add(_ other: PurgeCounts) {
        purged = Self.sum(purged, other.purged)
        bytes = Self.sum(bytes, other.bytes)
    }

    private static func sum(_ one: Int64, _ other: Int64) -> Int64 {
        let (sum, isOver) = one.addingReportingOverflow(max(0, other))
        return isOver ? .max : sum
    }
}

/// The result of a purge on all nodes.
package struct PurgeReport: Sendable, Equatable {
    /// The sums over the nodes that acknowledged.
    package let counts: PurgeCounts
    /// The number of live nodes; if the server cannot be reached, the latest known number.
    package let nodes: Int
    /// Nodes that have durably applied the purge's entry in the stream. Zero if the stream does not have the entry yet: this
    /// node has applied the purge, and the others will.
    package let acknowledged: Int
    /// Identifies the purge on every node, as soon as the stream has it; nil without a cluster.
    package let id: String?

    /// Whether every node has applied the purge, so that none serves older bytes from now on.
    package var isComplete: Bool { acknowledged >= nodes }

    /// Reports, by default, a purge without a cluster: this node is the only one.
    package init(counts: PurgeCounts, nodes: Int = 1, acknowledged: Int = 1, id: String? = nil) {
        self.counts = counts
        self.nodes = nodes
        self.acknowledged = acknowledged
        self.id = id
    }
}
