/// A picture's size in pixels, as its file has it.
struct PictureSize: Equatable {
    var width: Int
    var height: Int
}

extension OutputClaim {
    /// Checks the size that a picture's file has.
    func check(_ size: PictureSize) throws(OutputFlaw) {
        guard size.width == width, size.height == height else { throw .wrongSize }
    }
}

/// What a worker says of the file it made, by which the file is judged.
package struct OutputClaim: Sendable, Equatable {
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
    package init(_ format: OutputFormat, _ result: TranscodeResult) {
        self.init(
            format: format, bytes: result.bytes, width: result.width, height: result.height, duration: result.duration,
            timescale: result.timescale, samples: result.samples, frames: result.frames)
    }
}

/// What is wrong with a worker's file. The raw value is for the log.
package enum OutputFlaw: String, Error, Sendable {
    /// A number that the worker reports is outside the range that it can have.
    case outOfRange
    /// It cannot be read.
    case unreadable
    /// It is not as long as the worker says, or longer than it may be.
    case wrongLength
    /// It does not begin as its format does.
    case wrongSignature
    /// Its parts do not fill it exactly, or lie within one another as they must not.
    case malformed
    /// It lacks a part that every such file has, or has it twice.
    case missingPart
    /// It refers to data outside itself.
    case foreignData
    /// It is coded otherwise than it should be.
    case wrongCodec
    /// Its width or height is not what the worker says.
    case wrongSize
    /// It does not last as long as the worker says.
    case wrongDuration
    /// It has more or fewer samples than the worker says.
    case wrongSampleCount
    /// Its samples lie outside its data.
    case strayingSamples
}
