internal import Fetch
internal import HTTP
internal import Media
internal import Renditions
internal import Store
internal import SystemIO

struct RequestedPage: Sendable {
    var rendition: Rendition
    let source: SourceURL
    var target: String
    /// The page's own target with a file name at the end of its path.
    var namedTarget: String
    /// The text that describes the animation; nil for the name of the source.
    let title: String?
    /// The part of the page's absolute address before the target.
    let base: String
    /// The part of an address in the page before a target: the path of the public URL, or nothing.
    let root: String
    var addresses: RenditionAddresses
    var terms: ResponseTerms
    /// The address of the GIF, if the page shows it until there is a video, or because there can be none.
    var original: String?
    /// Whether the animation is known to flash, so that the page shows its poster only.
    var flashes = false
    let onMiss: Mount.OnMiss
    var onError: Mount.OnError
    /// Whether its addresses are limited to the options of unsigned requests.
    let isBounded: Bool
    /// Whether its addresses are signed.
    let isSigned: Bool
    /// Whether the request states a background, which may be the default one.
    let statesBackground: Bool
    /// The stored video in H.264, and in AV1.
    var video: CachedRendition?
    var smallerVideo: CachedRendition?

    /// The video that every browser can play.
    var videoRendition: Rendition { rendition.inFormat(.mp4) }
    /// The video in AV1; nil if the program has no encoder for it.
    var smallerRendition: Rendition? { videoRendition.encoded(by: .av1) }

    /// The stored video in AV1, if it is small enough to be offered before the stored one in H.264.
    private var offeredSmallerVideo: CachedRendition? {
        guard let video, let smallerVideo,
            Rendition.isWorthOffering(av1: smallerVideo.length, besideH264: video.length)
        else { return nil }
        return smallerVideo
    }

    /// Returns the time at which the page's content last changed, in seconds since 1970; nil for a page with the GIF or with
    /// the poster alone, which changes at an unknown time, when the video is produced or known to fail.
    func lastModified(_ facts: CachedRendition) -> Int? {
        guard original == nil, !flashes else { return nil }
        return [facts, video, offeredSmallerVideo].compactMap { $0.map { Int($0.created) } }.max()
    }

    /// Returns the poster. A bounded page uses a frame whose address is available to every client.
    func poster(_ facts: PageFacts) throws(Problem) -> Rendition {
        isBounded ? rendition.inFormat(.jpg) : try facts.poster(of: rendition)
    }

    func contents(_ facts: PageFacts, poster: Rendition) -> PlayerPage.Contents {
        let image = flashes ? .poster : facts.image(of: rendition, statesBackground: statesBackground)
        var encodings = [(videoRendition, video)]
        if let stored = offeredSmallerVideo, let smaller = smallerRendition { encodings.insert((smaller, stored), at: 0) }
        let links = PageLinks(
            target: target, namedTarget: namedTarget, base: base, root: root, addresses,
            video: videoRendition, encodings: encodings, poster: poster, original: original,
            image: original == nil ? image.map { ($0, rendition) } : nil)
        let (size, still) = (facts.size(of: rendition), facts.size(of: poster))
        return PlayerPage.Contents(
            name: title ?? source.name, links: links, width: size.evenWidth, height: size.evenHeight,
            posterWidth: still.width, posterHeight: still.height,
            blur: rendition.options.size.fit == .contain ? facts.blur : nil, playCount: facts.playCount(of: rendition))
    }
}

extension SourceURL {
    /// The name of a source in titles: the last segment of its path, or its host if the path is empty.
    fileprivate var name: String {
        let last = path[...].parts(at: UInt8(ascii: "/")).last.map { PercentEncoding.decode($0) ?? String($0) }
        return last ?? host
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
    ///   - encodings: The renditions in ``sources``, and those of them that are stored.
    ///   - original: The address of the GIF, if the page shows it.
    ///   - image: The image that the page shows in place of the video, and the rendition of the page.
    init(
        target: String, namedTarget: String, base: String, root: String, _ addresses: RenditionAddresses, video: Rendition,
        encodings: [(Rendition, CachedRendition?)], poster: Rendition, original: String? = nil,
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
        self.video = addresses.target(video)
        namedVideo = addresses.target(video, isNamed: true)
        sources = encodings.map { rendition, stored in
            let codecs = stored.flatMap { RenditionFacts(stored: $0.facts)?.codecs }
            return (addresses.target(rendition), rendition.format.mediaType(codecs: codecs))
        }
        self.poster = addresses.target(poster)
        namedPoster = addresses.target(poster, isNamed: true)
        self.original = original
    }

    /// Returns scheme and authority of the server's public address.
    static func base(publicURL: String?, scheme: HTTPScheme, host: String?) -> String {
        publicURL ?? host.map { "\(scheme.rawValue)://\($0)" } ?? ""
    }

    static func path(_ url: String) -> String {
        guard let scheme = url.firstRange(of: "://") else { return "" }
        return String(url[scheme.upperBound...].drop { $0 != "/" })
    }

    var pageAddress: String { base + page }

    var oembedAddress: String { "\(base)/oembed?url=\(PercentEncoding.encode(pageAddress))" }
}
