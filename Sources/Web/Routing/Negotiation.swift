internal import Renditions

/// The renditions from which `Accept` selects one, below `/auto` and at mounts that negotiate, or what stands for them.
struct Negotiation<Choice: Sendable & Equatable>: Sendable, Equatable {
    /// The video, for clients that show videos as images (WebKit), without B-frames: WebKit shows each picture of an image for the
    /// time from its decoding to the next one, and in presentation order.
    let video: Choice
    /// The image sequence in AV1, for other browsers; nil if the program has no encoder for it.
    let avif: Choice?
    /// The animated WebP, for clients that do not accept AVIF; nil if it is not offered.
    let webp: Choice?
    /// The GIF, for a source that the client cannot show.
    let gif: Choice
    let original: Choice

    /// Returns the choice for a client.
    ///
    /// - Parameter source: The facts of the source, which may rule out the video; nil if they are not known.
    func choice(for accept: AcceptField, of source: SourceFacts? = nil) -> Choice {
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

    func map<Other>(_ transform: (Choice) -> Other) -> Negotiation<Other> {
        Negotiation<Other>(
            video: transform(video), avif: avif.map(transform), webp: webp.map(transform), gif: transform(gif),
            original: transform(original))
    }
}

extension Negotiation<Rendition> {
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
}
