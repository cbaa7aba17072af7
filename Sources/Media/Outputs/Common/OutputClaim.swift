/// The size of a picture in pixels, read from its file.
struct PictureSize: Equatable {
    var width: Int
    var height: Int
}

extension OutputClaim {
    /// Checks the size in a picture's file.
    func check(_ size: PictureSize) throws(OutputFlaw) {
        guard size.width == width, size.height == height else { throw .wrongSize }
    }
}

/// A worker's description of its file, which inspection compares with the file.
package struct OutputClaim: Sendable, Equatable {
    var format: OutputFormat
    /// The file's length.
    var bytes: Int
    /// The size of the video or picture, or else of the canvas, in pixels.
    var width: Int
    var height: Int
    /// Of a video, in units of ``timescale``; 0 for a picture.
    var duration = 0
    /// Units per second.
    var timescale = FrameClock.timescale
    /// Of a video: samples in the file; 0 for a picture.
    var samples = 0
    /// Complete frames of the source.
    var frames = 0
    /// Of a video.
    var codec: VideoCodec?
    /// The raw loop count of the source; nil without one, 0 for endless.
    var loopCount: Int?
    /// What facts have only on request.
    var facts: TranscodeOptions.Facts?
}

extension OutputClaim {
    /// Whether every number is in its range, so that no arithmetic with it overflows.
    var isInRange: Bool {
        FactRange.bytes.contains(bytes) && FactRange.side.contains(width) && FactRange.side.contains(height)
            && FactRange.duration.contains(duration) && FactRange.timescale.contains(timescale)
            && FactRange.frames.contains(samples) && FactRange.frames.contains(frames)
            && loopCount.map(FactRange.loopCount.contains) ?? true
    }

    /// The part of a worker's result that describes its file.
    package init(_ transcoder: Transcoder, _ result: TranscodeResult) {
        self.init(
            format: transcoder.output, bytes: result.bytes, width: result.width, height: result.height,
            duration: result.duration,
            timescale: result.timescale, samples: result.samples, frames: result.frames,
            codec: transcoder.output.codec(transcoder.options), loopCount: result.loopCount, facts: transcoder.options.facts)
    }
}

extension Transcoder {
    /// Whether a worker's numbers are possible within the job's limits. Readers of the output reserve memory by these numbers.
    package func allows(_ result: TranscodeResult) -> Bool {
        result.isInRange && max(result.sourceWidth, result.sourceHeight) <= limits.side
            && result.sourceWidth * result.sourceHeight <= limits.canvasPixels && result.frames <= limits.frames
            && result.samples / max(1, options.time.loops) <= limits.frames
    }
}

/// The flaw of a worker's file. The raw value is for the log.
package enum OutputFlaw: String, Error, Sendable {
    /// A number that the worker reports is outside its range or the job's limits.
    case outOfRange
    /// It cannot be read.
    case unreadable
    /// Its length is not the claimed one, or exceeds the limit.
    case wrongLength
    /// It does not begin with the signature of its format.
    case wrongSignature
    /// Its parts do not fill it exactly, or are nested wrongly.
    case malformed
    /// A required part is missing or duplicated.
    case missingPart
    /// It has a part that its writer does not write.
    case unknownPart
    /// It refers to data outside itself.
    case foreignData
    /// Its codec or profile is not the expected one.
    case wrongCodec
    /// Its width or height is not the claimed one.
    case wrongSize
    /// Its duration is not the claimed one.
    case wrongDuration
    /// Its number of samples is not the claimed one.
    case wrongSampleCount
    /// Its samples lie outside its data.
    case strayingSamples
}
