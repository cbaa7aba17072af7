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
    /// In hundredths of a second.
    var duration: Int
    var loopCount: Int?

    init(_ result: TranscodeResult, sourceBytes: Int) {
        width = result.width
        height = result.height
        sourceWidth = result.sourceWidth
        sourceHeight = result.sourceHeight
        self.sourceBytes = sourceBytes
        frames = result.frames
        duration = result.duration
        loopCount = result.loopCount
    }

    var encoded: [UInt8] { JSONText.encode(self) }
}
