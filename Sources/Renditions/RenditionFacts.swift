internal import Foundation
internal import Media

/// What is kept beside a stored rendition.
struct RenditionFacts: Codable, Equatable {
    var width: Int
    var height: Int
    var sourceWidth: Int
    var sourceHeight: Int
    var sourceBytes: Int
    var frames: Int
    /// In units of ``timescale``; 0 for a poster.
    var duration: Int
    /// Units a second.
    var timescale: Int
    var loopCount: Int?

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

    var encoded: [UInt8] { JSONText.encode(self) }
}
