internal import Foundation
internal import Media

/// The numbers that are stored beside a rendition.
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

    /// Reads what ``encoded`` wrote; nil where it is damaged, which includes a number outside its range.
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

    package var encoded: [UInt8] { JSONText.encode(self) }
}
