package import Renditions

/// The renditions from which a mount that negotiates selects one by `Accept`.
package struct Negotiation: Sendable, Equatable {
    /// The video, for clients that show videos as images (WebKit).
    package let video: Rendition
    /// The image sequence in AV1, for other browsers; nil if the program has no encoder for it.
    package let avif: Rendition?
    /// The animated WebP, for clients that do not accept AVIF; nil if it is not offered.
    package let webp: Rendition?
    /// The GIF itself.
    package let original: Rendition

    /// - Parameters:
    ///   - video: The rendition that the target names. The image sequences have its options.
    ///   - offered: The formats that can be produced.
    package init(_ video: Rendition, offered: [Rendition.Format] = Rendition.Format.offered) {
        self.video = video
        avif = offered.contains(.avif) ? video.inFormat(.avif) : nil
        webp = offered.contains(.awebp) ? video.inFormat(.awebp) : nil
        original = Rendition(format: .original)
    }

    /// The rendition for a client.
    func rendition(for accept: AcceptField) -> Rendition {
        switch accept.preference(offersAVIF: avif != nil, offersWebP: webp != nil) {
        case .video: video
        case .avif: avif ?? original
        case .webp: webp ?? original
        case .original: original
        }
    }
}
