internal import Media

/// What a worker says of the file it made, by which the file is judged.
struct OutputClaim: Sendable, Equatable {
    var format: OutputFormat
    /// The file's length.
    var bytes: Int
    /// Of the video or picture, in pixels; of the canvas where there is neither.
    var width: Int
    var height: Int
    /// Of a video, in units of ``timescale``; 0 for a picture.
    var duration = 0
    /// Units a second.
    var timescale = FrameClock.timescale
    /// Of a video: samples in the file; 0 for a picture.
    var samples = 0
    /// Whole frames of the GIF.
    var frames = 0
}

extension OutputClaim {
    /// Whether every number is in its range, so that no arithmetic with it overflows.
    var isInRange: Bool {
        FactRange.bytes.contains(bytes) && FactRange.side.contains(width) && FactRange.side.contains(height)
            && FactRange.duration.contains(duration) && FactRange.timescale.contains(timescale)
            && FactRange.frames.contains(samples) && FactRange.frames.contains(frames)
    }

    /// The part of a worker's result that describes its file.
    init(_ format: OutputFormat, _ result: TranscodeResult) {
        self.init(
            format: format, bytes: result.bytes, width: result.width, height: result.height, duration: result.duration,
            timescale: result.timescale, samples: result.samples, frames: result.frames)
    }
}
