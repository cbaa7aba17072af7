/// What each stage of one conversion took of the processor, in nanoseconds, and how much work it was.
package struct StageCosts: Sendable, Equatable {
    /// Reading all records, without a pixel.
    package var scan = 0
    /// Container and LZW codes into palette indices.
    package var decode = 0
    /// Indices onto the canvas, disposal included.
    package var compose = 0
    /// The changed part of the canvas into 4:2:0 planes.
    package var convert = 0
    /// libx264, fed with frames that are ready.
    package var encode = 0
    /// Packets into the container, and its index.
    package var mux = 0

    /// Pixels of the GIF's images by their own sizes.
    package var codedPixels = 0
    /// Pixels of the video's samples.
    package var videoPixels = 0
    /// Bytes of the MP4.
    package var bytes = 0

    package init() {}

    /// All that is not the encoder's.
    package var others: Int { scan + decode + compose + convert + mux }
}
