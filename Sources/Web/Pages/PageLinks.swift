internal import Fetch
internal import HTTP
internal import Renditions

/// The addresses of a player page, its video and its poster.
struct PageLinks: Equatable {
    /// What precedes a target in an absolute address: scheme, host and the path of the public URL. Empty where a client of
    /// HTTP/1.0 sent no host.
    let base: String
    /// What precedes a target on the page itself: the path of the public URL, or nothing.
    let root: String
    /// Targets, each beginning with a slash.
    let page: String
    let video: String
    let poster: String

    /// - Parameters:
    ///   - target: The target of the page.
    ///   - addresses: Of the source.
    ///   - video: The rendition that the page plays.
    ///   - poster: The rendition shown until the video plays.
    init(
        target: String, base: String, root: String, _ addresses: RenditionAddresses, video: Rendition, poster: Rendition
    ) {
        self.base = base
        self.root = root
        page = target
        self.video = addresses.target(video)
        self.poster = addresses.target(poster)
    }

    /// What precedes a target in an absolute address.
    static func base(publicURL: String?, scheme: HTTPScheme, host: String?) -> String {
        publicURL ?? host.map { "\(scheme.rawValue)://\($0)" } ?? ""
    }

    /// The path of an absolute URL.
    static func path(_ url: String) -> String {
        guard let scheme = url.firstRange(of: "://") else { return "" }
        return String(url[scheme.upperBound...].drop { $0 != "/" })
    }

    /// The page's address.
    var pageAddress: String { base + page }

    /// The oEmbed address of the page.
    var oembedAddress: String { "\(base)/oembed?url=\(PercentEncoding.encode(pageAddress))" }
}
