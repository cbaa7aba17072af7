/// The rule for what an image of a page becomes (docs/api.md, “What an image becomes”).
///
/// Negotiation, player pages, `json` and `POST /facts` apply it, and `gifreel.js` and `gifreel rewrite` follow the last two.
package enum PageRule {
    /// What a page shows in place of an image.
    package enum Use: String, Codable, Sendable, CaseIterable {
        /// The same image, with the address that negotiates.
        case image
        /// A video.
        case video
        /// The image as it is.
        case stay
    }

    /// Why an image stays as it is.
    package enum Reason: String, Codable, Sendable, CaseIterable {
        /// The source has one picture.
        case still
        /// The source is a tracker, a spacer or an icon.
        case tiny
        /// The rendition saves too little.
        case saving
        /// The source cannot be converted, or not now.
        case failed
        /// The server does not accept the source.
        case refused
    }

    /// The largest area and the largest shorter side of a tiny picture, in pixels.
    private static let (tinyArea, tinySide) = (256, 4)

    /// A rendition has to save this many bytes, and a tenth of the source.
    private static let leastSaving: Int64 = 2048

    /// The pixels per second above which browsers play a video with less memory than an image (decision 46).
    private static let imageRate = 24_000_000.0

    /// Whether a rendition saves enough bytes to replace its source.
    package static func isWorthwhile(_ bytes: Int64, insteadOf sourceBytes: Int64) -> Bool {
        let saving = sourceBytes - bytes
        return saving >= leastSaving && saving >= sourceBytes / 10
    }

    /// Whether a picture has the size of a tracker, a spacer or an icon.
    package static func isTiny(width: Int, height: Int) -> Bool {
        min(width, height) <= tinySide || width * height <= tinyArea
    }

    /// Why a source stays as it is regardless of its renditions; nil if they decide.
    package static func reason(width: Int, height: Int, frames: Int, bytes: Int) -> Reason? {
        if isTiny(width: width, height: height) { return .tiny }
        if frames <= 1 { return .still }
        // No rendition can save enough.
        return Int64(bytes) < leastSaving ? .saving : nil
    }

    /// Whether a browser plays an animation with less memory as a video than as an image.
    package static func suitsVideo(_ source: Source) -> Bool {
        let pixels = Double(source.width * source.height) * Double(source.frames)
        return source.duration > 0 && pixels / source.duration > imageRate
    }
}

extension PageRule {
    /// The facts of a source that the rule reads.
    package struct Source: Sendable, Equatable {
        package var width: Int
        package var height: Int
        package var frames: Int
        /// In seconds.
        package var duration: Double
        package var bytes: Int
        /// Nil if it is not known.
        package var isTransparent: Bool?

        package init(_ facts: SourceFacts) {
            (width, height, frames) = (facts.width, facts.height, facts.frames)
            (duration, bytes, isTransparent) = (facts.duration, facts.bytes, facts.transparent)
        }

        /// - Parameter facts: The facts of the rendition `json`.
        package init(_ facts: RenditionFacts) {
            (width, height, frames) = (facts.sourceWidth, facts.sourceHeight, facts.frames)
            duration = Double(facts.duration) / Double(facts.timescale)
            (bytes, isTransparent) = (facts.sourceBytes, facts.transparent)
        }
    }

    /// Returns what an image becomes.
    ///
    /// - Parameter stored: Returns the bytes of a stored rendition; nil if it is not stored.
    /// - Returns: The verdict, with a reason if the image stays.
    package static func verdict(
        _ source: Source, stored: (Rendition.Format) -> Int64?
    ) -> (use: Use, reason: Reason?) {
        if let reason = reason(
            width: source.width, height: source.height, frames: source.frames, bytes: source.bytes)
        {
            return (.stay, reason)
        }
        func isWorthwhile(_ format: Rendition.Format) -> Bool? {
            stored(format).map { self.isWorthwhile($0, insteadOf: Int64(source.bytes)) }
        }
        if source.isTransparent == false, suitsVideo(source), isWorthwhile(.mp4) == true { return (.video, nil) }
        // Nearly all browsers negotiate this format.
        let sequence = Rendition.Format.offered.contains(.avif) ? Rendition.Format.avif : .awebp
        return isWorthwhile(sequence) == false ? (.stay, .saving) : (.image, nil)
    }
}
