internal import Cache
internal import Foundation
internal import Media

/// The facts of a GIF in `json` (docs/api.md).
package struct SourceFacts: Codable, Equatable, Sendable {
    /// The SHA-256 of the file as 64 hexadecimal digits.
    package var sha256: String
    package var bytes: Int
    /// The canvas, in pixels.
    package var width: Int
    package var height: Int
    /// Whole frames.
    package var frames: Int
    /// The raw loop count; null for one play, 0 for an endless loop.
    package var loopCount: Int?
    /// In seconds; the sum of ``delays``.
    package var duration: Double
    /// In seconds, as in browsers and in the video: 0 and 1 hundredths count as 10.
    package var delays: [Double]
    package var animated: Bool
    /// Whether any frame has transparent pixels.
    package var transparent: Bool

    private enum CodingKeys: String, CodingKey {
        case sha256
        case bytes
        case width
        case height
        case frames
        case loopCount = "loop_count"
        case duration
        case delays
        case animated
        case transparent
    }

    /// - Parameter delays: The file that a worker wrote for ``OutputFormat/facts``.
    /// - Returns: Nil if the file has another length than the result claims.
    init?(_ result: TranscodeResult, delays file: [UInt8], of digest: SourceDigest, bytes: Int) {
        guard result.frames > 0, file.count == 2 * result.frames else { return nil }
        let hundredths = stride(from: 0, to: file.count, by: 2).map { Int(file[$0]) | Int(file[$0 + 1]) << 8 }
        sha256 = digest.description
        self.bytes = bytes
        width = result.sourceWidth
        height = result.sourceHeight
        frames = result.frames
        loopCount = result.loopCount
        duration = Double(hundredths.reduce(0, +)) / 100
        delays = hundredths.map { Double($0) / 100 }
        animated = frames > 1
        transparent = result.isTransparent
    }

    /// Whether every number is in its range. A stored document may be damaged, and arithmetic with its numbers must not
    /// overflow.
    var isInRange: Bool {
        SourceDigest(hex: sha256) != nil && FactRange.bytes.contains(bytes) && FactRange.side.contains(width)
            && FactRange.side.contains(height) && frames > 0 && FactRange.frames.contains(frames)
            && loopCount.map(FactRange.loopCount.contains) ?? true && delays.count == frames
            && delays.allSatisfy(Self.delayRange.contains) && Self.durationRange.contains(duration)
    }

    /// In seconds: one to 65,535 hundredths.
    private static let delayRange = 0.01...655.35
    private static let durationRange = 0.01...655.35 * Double(FactRange.frames.upperBound)
}
