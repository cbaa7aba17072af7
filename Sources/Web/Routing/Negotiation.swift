internal import Renditions

/// The renditions from which `Accept` selects one, below `/auto` and at mounts that negotiate.
struct Negotiation: Sendable, Equatable {
    /// The video, for clients that show videos as images (WebKit), without B-frames: WebKit shows each picture of an image for the
    /// time from its decoding to the next one, and in presentation order.
    let video: Rendition
    /// The image sequence in AV1, for other browsers; nil if the program has no encoder for it.
    let avif: Rendition?
    /// The animated WebP, for clients that do not accept AVIF; nil if it is not offered.
    let webp: Rendition?
    /// The GIF, for a source that the client cannot show.
    let gif: Rendition
    /// The source itself.
    let original: Rendition

    /// - Parameters:
    ///   - video: The rendition that the target names. The other renditions share its options.
    ///   - offered: The formats that can be produced.
    init(_ video: Rendition, offered: [Rendition.Format] = Rendition.Format.offered) {
        self.video = video.withoutBFrames
        avif = offered.contains(.avif) ? video.inFormat(.avif) : nil
        webp = offered.contains(.awebp) ? video.inFormat(.awebp) : nil
        gif = video.inFormat(.gif)
        original = Rendition(format: .original)
    }

    /// Returns the rendition for a client.
    ///
    /// - Parameter source: The facts of the source, which may rule out the video; nil if they are not known.
    func rendition(for accept: AcceptField, of source: SourceFacts? = nil) -> Rendition {
        let (offersAVIF, offersWebP) = (avif != nil, webp != nil)
        var preference = accept.preference(offersAVIF: offersAVIF, offersWebP: offersWebP)
        if preference == .video, let source {
            preference = accept.preference(insteadOfVideo: source, offersAVIF: offersAVIF, offersWebP: offersWebP)
        }
        return switch preference {
        case .video: video
        case .avif: avif ?? original
        case .webp: webp ?? original
        case .original: original
        }
    }
}
