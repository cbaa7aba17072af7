package import Fetch
internal import HTTP
package import Renditions
package import Store

/// The resource that a request's target names.
package enum Route: Sendable, Equatable {
    /// A rendition of a source.
    case rendition(Rendition, SourceURL)
    /// A rendition of the GIF in the request's body.
    case upload(Rendition)
    /// A stored rendition by its content id.
    case object(ObjectID, fileExtension: String)
    /// The cache, with the query's parameters.
    case cache([QueryItem])
    /// Why a source is or is not converted, with the query's parameters.
    case explain([QueryItem])
    /// The largest consumers, with the query's parameters.
    case top([QueryItem])
    /// A purge by its id.
    case purge(String)
    /// The page at `/`.
    case home
    /// The description of the interface.
    case openAPI
    case file(SiteFile)
    /// The oEmbed document of a page, with the query's parameters.
    case oembed([QueryItem])
    /// The facts of a list of sources, with the query's parameters.
    case facts([QueryItem])
    /// The facts of a list as a module for `gifreel.js`, with the query's parameters.
    case factsModule([QueryItem])
    /// A prewarm job by its id, or nil for a new job, with the query's parameters.
    case prewarm(String?, [QueryItem])
    /// The status of an asynchronous request.
    case status(UInt128)
    case metrics
    case health
    case readiness

    /// The name of the route whose rendition `Accept` selects, and the extension of its addresses below a mount.
    package static let auto = "auto"
    /// The name of the route of lists of facts.
    package static let facts = "facts"
    static let factsModule = "facts.js"

    /// The first path segments of routes, which mounts cannot use as names.
    package static let reservedNames = Set(Rendition.Format.allCases.map(\.rawValue)).union([
        auto, facts, factsModule, "object", "cache", "explain", "purges", "top", "prewarm", "metrics", "healthz", "readyz",
        "oembed",
        "openapi.json", "status",
    ]).union(SiteFile.allCases.map(\.rawValue))

    /// The methods of the route, including those of the admin interface.
    var methods: [HTTPMethod] {
        switch self {
        case .rendition, .object: [.get, .head, .options, .purge]
        case .explain, .top, .purge, .metrics, .health, .readiness, .home, .file, .openAPI, .oembed, .factsModule:
            [.get, .head, .options]
        case .prewarm(let id, _): id == nil ? [.get, .head, .post, .options] : [.get, .head, .delete, .options]
        case .status: [.get, .head, .delete, .options]
        case .upload, .facts: [.post, .options]
        case .cache: [.get, .head, .delete, .options]
        }
    }

    /// Whether every request needs the admin token.
    var needsToken: Bool {
        switch self {
        case .cache, .explain, .top, .purge, .prewarm: true
        default: false
        }
    }

    /// Whether a mount's name may contain the byte.
    package static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// A parameter of a query, percent-decoded.
package struct QueryItem: Sendable, Hashable {
    var name: String
    var value: String
}
