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
    /// Whether the numbers are such that a file could have them; whatever is reckoned with them then does not overflow.
    var isConceivable: Bool {
        bytes >= 0 && (1...65_536).contains(width) && (1...65_536).contains(height)
            && (0...1 << 40).contains(duration) && (1...1 << 24).contains(timescale) && (0...1 << 26).contains(samples)
            && (0...1 << 26).contains(frames)
    }

    /// What the worker's result says of the file it was to make.
    init(_ format: OutputFormat, _ result: TranscodeResult) {
        self.init(
            format: format, bytes: result.bytes, width: result.width, height: result.height, duration: result.duration,
            timescale: result.timescale, samples: result.samples, frames: result.frames)
    }
}
