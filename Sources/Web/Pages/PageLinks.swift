internal import Fetch
internal import HTTP
internal import Media
internal import Renditions
internal import Store
internal import SystemIO

/// One encoding of a page's video.
struct PageVideo: Sendable {
    let rendition: Rendition
    /// The media type, with its codecs if the rendition is stored.
    let type: String

    init(_ rendition: Rendition, _ stored: CachedRendition?) {
        self.rendition = rendition
        type = rendition.format.mediaType(codecs: stored.flatMap { RenditionFacts(stored: $0.facts)?.codecs })
    }
}

/// The addresses of a player page, its video and its poster.
struct PageLinks {
    /// The part of an absolute address before a target: scheme, host and the path of the public URL. Empty if an HTTP/1.0
    /// client sent no host.
    let base: String
    /// The part of an address in the page before a target: the path of the public URL, or nothing.
    let root: String
    /// Targets, each beginning with a slash.
    let page: String
    /// The page's target with a file name at the end of its path, for programs that infer the type from the extension.
    let namedPage: String
    let video: String
    let namedVideo: String
    /// The encodings of the video in the order in which a browser tries them. The last one is ``video``.
    let sources: [(target: String, type: String)]
    let poster: String
    let namedPoster: String
    /// The address of the GIF, shown in place of a video that is not stored yet; nil for the video.
    let original: String?
    /// The address of the image that the page shows, and that of a still picture if the image moves; nil for the video.
    let image: (address: String, still: String?)?

    /// - Parameters:
    ///   - video: The encoding that every browser can play.
    ///   - smaller: An encoding that browsers try first; nil if none is stored.
    ///   - original: The address of the GIF, if the page shows it.
    ///   - image: The image that the page shows in place of the video, and the rendition of the page.
    init(
        target: String, namedTarget: String, base: String, root: String, _ addresses: RenditionAddresses, video: PageVideo,
        smaller: PageVideo? = nil, poster: Rendition, original: String? = nil,
        image: (kind: PageFacts.Image, page: Rendition)? = nil
    ) {
        self.image = image.map { kind, page in
            // The poster is drawn on the background that the page states.
            let hasOwnBackground = page.options.background != TranscodeOptions.standard.background
            if kind == .poster || kind == .still && hasOwnBackground { return (addresses.target(poster), nil) }
            if kind == .still { return (addresses.automatic(of: page), nil) }
            return (addresses.automatic(of: page), addresses.target(page.inFormat(.webp)))
        }
        self.base = base
        self.root = root
        page = target
        namedPage = namedTarget
        self.video = addresses.target(video.rendition)
        namedVideo = addresses.target(video.rendition, isNamed: true)
        sources = [smaller, video].compactMap(\.self).map { (target: addresses.target($0.rendition), type: $0.type) }
        self.poster = addresses.target(poster)
        namedPoster = addresses.target(poster, isNamed: true)
        self.original = original
    }

    /// Returns scheme and authority of the server's public address.
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
