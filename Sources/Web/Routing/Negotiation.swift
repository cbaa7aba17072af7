package import Renditions

/// The renditions from which a mount that negotiates selects one by `Accept`.
package struct Negotiation: Sendable, Equatable {
    /// The video, for clients that show videos as images (WebKit).
    package let video: Rendition
    /// The image sequence, for other browsers; nil if the program has no encoder for it.
    package let sequence: Rendition?
    /// The GIF itself.
    package let original: Rendition

    /// - Parameters:
    ///   - video: The rendition that the target names. The image sequence has its options.
    ///   - sequenceFormat: The format of the image sequence; nil if it is not offered.
    package init(_ video: Rendition, sequenceFormat: Rendition.Format? = .named("avif")) {
        self.video = video
        sequence = sequenceFormat.map(video.inFormat)
        original = Rendition(format: .gif)
    }

    /// The rendition for a client.
    func rendition(for accept: AcceptField) -> Rendition {
        switch accept.preference(offersSequence: sequence != nil) {
        case .video: video
        case .sequence: sequence ?? original
        case .original: original
        }
    }
}
