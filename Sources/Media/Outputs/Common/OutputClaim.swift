/// The size of a picture in pixels, read from its file.
struct PictureSize: Equatable {
    var width: Int
    var height: Int
}

extension OutputClaim {
    func check(_ size: PictureSize) throws(OutputFlaw) {
        guard size.width == width, size.height == height else { throw .wrongSize }
    }
}

/// A worker's description of its file, which inspection compares with the file.
package struct OutputClaim: Sendable, Equatable {
    var format: OutputFormat
    /// The file's length.
    var bytes: Int
    /// The size of the video or picture, otherwise of the canvas, in pixels.
    var width: Int
    var height: Int
    /// The duration of a video, in units of ``timescale``; 0 for a picture.
    var duration = 0
    /// Units per second.
    var timescale = FrameClock.timescale
    /// The number of samples in a video; 0 for a picture.
    var samples = 0
    /// The number of complete frames of the source.
    var frames = 0
    var codec: VideoCodec?
    /// The raw loop count of the source; nil if it has none, 0 for endless.
    var loopCount: Int?
    /// The facts that were requested.
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
    /// Whether a worker's numbers are possible within the job's limits. Readers of the output reserve memory based on them.
    package func allows(_ result: TranscodeResult) -> Bool {
        result.isInRange && max(result.sourceWidth, result.sourceHeight) <= limits.side
            && result.sourceWidth * result.sourceHeight <= limits.canvasPixels && result.frames <= limits.frames
            && result.samples / max(1, options.time.loops) <= limits.frames + mostFillers(result)
    }

    /// The most pictures that a GIF or WebP repeats because they are shown for longer than its longest delay, of 655.35 s or
    /// more.
    private func mostFillers(_ result: TranscodeResult) -> Int {
        guard output == .gif || output == .awebp else { return 0 }
        return result.duration / result.timescale / max(1, options.time.loops) / 655
    }
}

/// The flaw of a worker's file. The raw value is logged.
package enum OutputFlaw: String, Error, Sendable {
    /// A reported number is outside its range or the job's limits.
    case outOfRange
    /// The file cannot be read.
    case unreadable
    /// The length differs from the claimed one, or exceeds the limit.
    case wrongLength
    /// The file does not begin with the signature of its format.
    case wrongSignature
    /// The parts do not fill the file exactly, or are nested incorrectly.
    case malformed
    /// A required part is missing or duplicated.
    case missingPart
    /// The file has a part that its writer does not write.
    case unknownPart
    /// The file refers to external data.
    case foreignData
    /// The codec or profile is not the expected one.
    case wrongCodec
    /// The width or height differs from the claimed one.
    case wrongSize
    /// The duration differs from the claimed one.
    case wrongDuration
    /// The number of samples differs from the claimed one.
    case wrongSampleCount
    /// Samples lie outside the file's data.
    case strayingSamples
}
