internal import Fetch
internal import Media
internal import Renditions
internal import Store
internal import SystemIO

/// A player page that a request names.
struct RequestedPage: Sendable {
    var rendition: Rendition
    let source: SourceURL
    /// The page's own target.
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
        let links = PageLinks(
            target: target, namedTarget: namedTarget, base: base, root: root, addresses,
            video: PageVideo(videoRendition, video),
            smaller: offeredSmallerVideo.flatMap { stored in smallerRendition.map { PageVideo($0, stored) } }, poster: poster,
            original: original, image: original == nil ? image.map { ($0, rendition) } : nil)
        return facts.contents(of: rendition, poster: poster, name: title ?? source.name, links: links)
    }
}

extension SourceURL {
    /// The name of a source in titles: the last segment of its path, or its host if the path is empty.
    fileprivate var name: String {
        let last = path[...].parts(at: UInt8(ascii: "/")).last.map { PercentEncoding.decode($0) ?? String($0) }
        return last ?? host
    }
}
