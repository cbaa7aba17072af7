internal import Foundation
internal import Media

/// The facts that are stored with a rendition.
package struct RenditionFacts: Codable, Equatable {
    package var width: Int
    package var height: Int
    package var sourceWidth: Int
    package var sourceHeight: Int
    package var sourceBytes: Int
    package var frames: Int
    /// In units of ``timescale``; 0 for a poster.
    package var duration: Int
    /// Units per second.
    package var timescale: Int
    package var loopCount: Int?

    init(_ result: TranscodeResult, sourceBytes: Int) {
        width = result.width
        height = result.height
        sourceWidth = result.sourceWidth
        sourceHeight = result.sourceHeight
        self.sourceBytes = sourceBytes
        frames = result.frames
        duration = result.duration
        timescale = result.timescale
        loopCount = result.loopCount
    }

    /// Decodes the stored form; nil if it is damaged or a number is outside its range.
    package init?(stored bytes: [UInt8]) {
        guard let facts = try? JSONDecoder().decode(RenditionFacts.self, from: Data(bytes)), facts.isInRange else { return nil }
        self = facts
    }

    private var isInRange: Bool {
        [width, height, sourceWidth, sourceHeight].allSatisfy(FactRange.side.contains)
            && FactRange.bytes.contains(sourceBytes) && FactRange.frames.contains(frames)
            && FactRange.duration.contains(duration) && FactRange.timescale.contains(timescale)
            && loopCount.map(FactRange.loopCount.contains) ?? true
    }

    /// The stored form: JSON.
    package var encoded: [UInt8] { JSONText.encode(self) }
}
