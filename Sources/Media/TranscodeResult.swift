/// What came of a GIF.
package struct TranscodeResult: Sendable, Equatable {
    /// The GIF's canvas, in pixels.
    package var sourceWidth: Int
    package var sourceHeight: Int
    /// The video, in pixels, then even; or the poster.
    package var width: Int
    package var height: Int
    /// Whole frames that were looked at: all of the GIF, or those up to the last one that is shown.
    package var frames: Int
    /// Samples of the video: frames that look other than the one before. 1 for a poster.
    package var samples: Int
    /// Of the video, or where facts were asked for, of the GIF; in units of ``timescale``. 0 for a poster.
    package var duration: Int
    /// Units a second.
    package var timescale: Int
    /// The raw loop count; nil for «once», 0 for «for ever».
    package var loopCount: Int?
    /// Whether what is behind the picture can be seen through it; known where it is a poster or facts were asked for.
    package var isTransparent: Bool
    /// Bytes of the output.
    package var bytes: Int

    package init(
        sourceWidth: Int, sourceHeight: Int, width: Int, height: Int, frames: Int, samples: Int, duration: Int,
        timescale: Int = FrameClock.timescale, loopCount: Int?, isTransparent: Bool = false, bytes: Int
    ) {
        self.sourceWidth = sourceWidth
        self.sourceHeight = sourceHeight
        self.width = width
        self.height = height
        self.frames = frames
        self.samples = samples
        self.duration = duration
        self.timescale = timescale
        self.loopCount = loopCount
        self.isTransparent = isTransparent
        self.bytes = bytes
    }
}
