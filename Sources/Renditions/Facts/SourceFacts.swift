internal import Media
internal import Store

/// The facts of an animation in `json` (docs/api.md).
package struct SourceFacts: Codable, Equatable, Sendable {
    /// The format of the file: a name of ``SourceFormat``.
    package var type: String
    /// The SHA-256 of the file as 64 hexadecimal digits.
    package var sha256: String
    package var bytes: Int
    /// The canvas, in pixels.
    package var width: Int
    package var height: Int
    /// Whole frames.
    package var frames: Int
    /// The repetitions after the first play; null for none, 0 for an endless loop.
    package var loopCount: Int?
    /// In seconds; the sum of ``delays``.
    package var duration: Double
    /// In seconds, as in browsers and in the video: up to a hundredth counts as a tenth.
    package var delays: [Double]
    package var animated: Bool
    /// Whether any frame has transparent pixels.
    package var transparent: Bool
    /// Whether any frame is coded with alpha or a transparent colour, shown or not.
    package var hasAlpha: Bool
    /// False if the file breaks off before or within a frame. Nil in facts that an older version stored.
    package var complete: Bool?

    /// - Parameter delays: The delays of the frames, from the file that a worker wrote for ``OutputFormat/facts``.
    /// - Returns: Nil if the number of delays differs from the number of frames in the result.
    init?(_ result: TranscodeResult, delays file: ArraySlice<UInt8>, of digest: SourceDigest, bytes: Int) {
        guard result.frames > 0, file.count == FactsOutput.delayLength * result.frames,
            FactRange.timescale.contains(result.timescale), let units = FactsOutput.delays(file)
        else { return nil }
        let (total, overflow) = units.reduce((0, false)) { sum, delay in
            let (total, overflow) = sum.0.addingReportingOverflow(delay)
            return (total, sum.1 || overflow)
        }
        if overflow { return nil }
        type = result.sourceFormat.name
        sha256 = digest.description
        self.bytes = bytes
        width = result.sourceWidth
        height = result.sourceHeight
        frames = result.frames
        loopCount = result.loopCount
        duration = Double(total) / Double(result.timescale)
        delays = units.map { Double($0) / Double(result.timescale) }
        animated = frames > 1
        transparent = result.isTransparent
        hasAlpha = result.hasAlpha
        complete = !result.isBrokenOff
    }

    /// Whether every number is in its range. A stored document may be damaged, and arithmetic with its numbers must not
    /// overflow.
    var isInRange: Bool {
        SourceFormat.allCases.contains { $0.name == type } && SourceDigest(hex: sha256) != nil
            && FactRange.bytes.contains(bytes) && FactRange.side.contains(width)
            && FactRange.side.contains(height) && frames > 0 && FactRange.frames.contains(frames)
            && loopCount.map(FactRange.loopCount.contains) ?? true && delays.count == frames
            && delays.allSatisfy(Self.secondsRange.contains) && Self.secondsRange.contains(duration)
    }

    /// The delay of a picture of a clip may be rounded to 0, and a picture may last as long as the limits permit.
    private static let secondsRange = 0...Double(FactRange.duration.upperBound)
}
