internal import Fetch
internal import HTTP
internal import Renditions
internal import SystemIO

/// The addresses of a player page, its video and its poster.
struct PageLinks: Equatable {
    /// The part of an absolute address before a target: scheme, host and the path of the public URL. Empty if an HTTP/1.0 client
    /// sent no host.
    let base: String
    /// The part of an address in the page before a target: the path of the public URL, or nothing.
    let root: String
    /// Targets, each beginning with a slash.
    let page: String
    let video: String
    let poster: String
    /// The address of the GIF, shown in place of a video that is not stored yet; nil for the video.
    let original: String?

    /// - Parameters:
    ///   - target: The target of the page.
    ///   - addresses: The addresses of the source's renditions.
    ///   - video: The rendition that the page plays.
    ///   - poster: The rendition shown until the video plays.
    ///   - original: The address of the GIF, if the page shows it.
    init(
        target: String, base: String, root: String, _ addresses: RenditionAddresses, video: Rendition, poster: Rendition,
        original: String? = nil
    ) {
        self.base = base
        self.root = root
        page = target
        self.video = addresses.target(video)
        self.poster = addresses.target(poster)
        self.original = original
    }

    /// Returns the part of an absolute address before a target.
    static func base(publicURL: String?, scheme: HTTPScheme, host: String?) -> String {
        publicURL ?? host.map { "\(scheme.rawValue)://\($0)" } ?? ""
    }

    /// The path of an absolute URL.
    static func path(_ url: String) -> String {
        guard let scheme = url.firstRange(of: "://") else { return "" }
        return String(url[scheme.upperBound...].drop { $0 != "/" })
    }

    /// The absolute address of the page.
    var pageAddress: String { base + page }

    /// The absolute address of the page's oEmbed document.
    var oembedAddress: String { "\(base)/oembed?url=\(PercentEncoding.encode(pageAddress))" }
}
