/// What came of a GIF.
package struct TranscodeResult: Sendable, Equatable {
    /// The GIF's canvas, in pixels.
    package var sourceWidth: Int
    package var sourceHeight: Int
    /// The video, in pixels; even.
    package var width: Int
    package var height: Int
    /// Whole frames of the GIF.
    package var frames: Int
    /// Samples of the video: frames that look other than the one before.
    package var samples: Int
    /// In hundredths of a second.
    package var duration: Int
    /// The raw loop count; nil for «once», 0 for «for ever».
    package var loopCount: Int?
    /// Bytes of the MP4.
    package var bytes: Int

    package init(
        sourceWidth: Int, sourceHeight: Int, width: Int, height: Int, frames: Int, samples: Int, duration: Int,
        loopCount: Int?, bytes: Int
    ) {
        self.sourceWidth = sourceWidth
        self.sourceHeight = sourceHeight
        self.width = width
        self.height = height
        self.frames = frames
        self.samples = samples
        self.duration = duration
        self.loopCount = loopCount
        self.bytes = bytes
    }
}
