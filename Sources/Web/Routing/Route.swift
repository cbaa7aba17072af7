package import Cache
package import Fetch
package import Renditions

/// What a request's target asks for.
package enum Route: Sendable, Equatable {
    /// A rendition of a source.
    case rendition(Rendition, SourceURL)
    /// A rendition of the GIF in the request's body.
    case upload(Rendition)
    /// A stored rendition by its content id.
    case object(ObjectID, fileExtension: String)
    /// The cache as a whole, with the query's parameters.
    case cache([QueryItem])
    /// The page at `/`.
    case home
    /// What may be embedded for an address, with the query's parameters.
    case oembed([QueryItem])
    /// Renditions wanted before anybody asks, with the query's parameters; nil for a new list, else a job's id.
    case prewarm(String?, [QueryItem])
    /// What is measured.
    case metrics
    case health
    case readiness

    /// First path segments that mean something, so that no mount can have them.
    package static let reservedNames = Set(Rendition.Format.allCases.map(\.rawValue)).union([
        "object", "cache", "prewarm", "metrics", "healthz", "readyz", "oembed",
    ])

    /// Bytes of a mount's name.
    package static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// One parameter of a query, decoded.
package struct QueryItem: Sendable, Hashable {
    package var name: String
    package var value: String
}
