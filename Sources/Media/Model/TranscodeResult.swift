/// The result of a conversion.
package struct TranscodeResult: Sendable, Equatable {
    /// The canvas of the source, in pixels.
    package var sourceWidth: Int
    package var sourceHeight: Int
    /// The video or poster, in pixels; both sides of a video are even.
    package var width: Int
    package var height: Int
    /// Complete frames that were read: all frames of the source, or those up to the last one in the output.
    package var frames: Int
    /// Samples of the video: frames that differ from the previous one. 1 for a poster.
    package var samples: Int
    /// The duration of the video or, for facts, of the source, in units of ``timescale``. 0 for a poster.
    package var duration: Int
    /// Units per second.
    package var timescale = FrameClock.timescale
    /// The repetitions after the first play: nil for none, 0 for endless.
    package var loopCount: Int?
    /// The format of the source.
    package var sourceFormat = SourceFormat.gif
    /// Whether any pixel is transparent. Known for posters and facts.
    package var isTransparent = false
    /// Whether any frame of the source is coded with alpha or a transparent colour. Known for facts.
    package var hasAlpha = false
    /// Whether the source breaks off before or within a frame, so that later frames may be missing.
    package var isBrokenOff = false
    /// Whether dither was removed from the pictures.
    package var isUndithered = false
    /// The length of the output in bytes.
    package var bytes: Int

    /// A result whose numbers are not read yet.
    package static let unread = TranscodeResult(
        sourceWidth: 0, sourceHeight: 0, width: 0, height: 0, frames: 0, samples: 0, duration: 0, bytes: 0)
}

// MARK: - Ranges

/// The ranges of the numbers of a conversion.
///
/// A worker may have read a hostile file, and a stored object may be damaged. Therefore, numbers from both are checked against
/// these ranges before use or storage. Within the ranges, no arithmetic of this program overflows.
package enum FactRange {
    /// A side of a canvas or a picture, in pixels. GIF has 16 bits for it (GIF89a §18); an odd side gets one more pixel.
    package static let side = 1...65_536
    /// A raw loop count (16 bits).
    package static let loopCount = 0...65_535
    /// Frames and samples.
    package static let frames = 0...1 << 26
    /// A duration in units of its timescale.
    package static let duration = 0...1 << 52
    /// Units per second.
    package static let timescale = 1...1 << 24
    /// Bytes of a file.
    package static let bytes = 0...1 << 48
}

extension TranscodeResult {
    /// Whether every number is in its range.
    package var isInRange: Bool {
        [sourceWidth, sourceHeight, width, height].allSatisfy(FactRange.side.contains)
            && FactRange.frames.contains(frames) && FactRange.frames.contains(samples)
            && FactRange.duration.contains(duration) && FactRange.timescale.contains(timescale)
            && loopCount.map(FactRange.loopCount.contains) ?? true && FactRange.bytes.contains(bytes)
    }
}

/// How often players show an animation.
package enum PlayCount {
    /// Returns the number of plays of a file that contains the animation `repetitions` times; nil for an endless loop.
    ///
    /// A loop count n means n repetitions after the first play, as in browsers, and 0 an endless loop. Without a loop count, an
    /// animation plays once.
    package static func of(loopCount: Int?, repetitions: Int = 1) -> Int? {
        guard let loopCount else { return 1 }
        return loopCount == 0 ? nil : (loopCount + repetitions) / repetitions
    }
}
