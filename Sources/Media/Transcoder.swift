internal import CAV
internal import Glibc

/// Makes an MP4 of a GIF: reader ▸ canvas ▸ clock ▸ converter ▸ encoder ▸ muxer.
///
/// Synchronous and without state of its own; runs on the calling thread (and x264's, where there are several).
package struct Transcoder: Sendable, Equatable {
    package var output: OutputFormat
    package var options: TranscodeOptions
    package var limits: MediaLimits
    /// Encoder threads; above 1 the bytes that come out may differ, the picture hardly.
    package var threads: Int

    /// GIFs up to this size may become larger; beyond it an MP4 that is larger than its GIF is made again, coarser.
    static let smallGIF = 10_000
    /// x264's coarsest rate factor.
    private static let coarsest = 51.0

    package init(
        output: OutputFormat = .mp4, options: TranscodeOptions = TranscodeOptions(), limits: MediaLimits = MediaLimits(),
        threads: Int = 1
    ) {
        self.output = output
        self.options = options
        self.limits = limits
        self.threads = threads
    }

    /// Checks that the libraries can do what is asked of them here, once, before the first job.
    ///
    /// - Throws: ``TranscodeError/encoderMissing``.
    package static func checkLibraries() throws(TranscodeError) {
        guard avcodec_find_encoder_by_name("libx264") != nil else { throw .encoderMissing }
    }

    /// Keeps libav from writing to standard error; errors come back as values.
    package static func silenceLibraries() {
        av_log_set_level(AV_LOG_QUIET)
    }

    /// Converts the GIF.
    ///
    /// - Parameters:
    ///   - gif: The whole file; stays in place during the call.
    ///   - descriptor: An empty, seekable file, open for reading and writing. It is written by position and stays open.
    /// - Throws: ``TranscodeError``; the file's contents are then worthless.
    package func convert(_ gif: UnsafeRawBufferPointer, to descriptor: Int32) throws(TranscodeError) -> TranscodeResult {
        let summary = try GIFSummary(scanning: gif, limits: limits)
        var settings = H264Settings(rateFactor: H264Settings.rateFactor(quality: options.quality), threads: threads)
        while true {
            let result = try encode(gif, summary, settings, to: descriptor)
            let excess = Double(result.bytes) / Double(gif.count)
            if gif.count <= Self.smallGIF || excess <= 1 || settings.rateFactor >= Self.coarsest { return result }
            // Six steps halve the bytes, roughly; two more make sure that the next attempt gets there.
            settings.rateFactor = min(Self.coarsest, settings.rateFactor + 6 * log2(excess) + 2)
            guard ftruncate(descriptor, 0) == 0 else { throw .library(.write, code: gifreel_averror(errno)) }
        }
    }

    private func encode(
        _ gif: UnsafeRawBufferPointer, _ summary: GIFSummary, _ settings: H264Settings, to descriptor: Int32
    ) throws(TranscodeError) -> TranscodeResult {
        var reader = try GIFReader(gif, limits: limits)
        var canvas = try Canvas(
            width: summary.width, height: summary.height, format: .yuv(background: options.background))
        let width = (summary.width + 1) & ~1
        let height = (summary.height + 1) & ~1
        let shortest = summary.delays.map { FrameClock.shownDelay(Int($0)) }.min() ?? 1
        var encoder = try H264Encoder(width: width, height: height, shortestFrame: shortest, settings: settings)
        var muxer = try MP4Muxer(descriptor: descriptor) { parameters throws(TranscodeError) in
            try encoder.describe(parameters)
        }
        var clock = FrameClock()
        var frames = 0
        var samples = 0
        while try reader.next(), let indices = try reader.readPixels() {
            let drawn = try canvas.draw(reader, indices: indices)
            let time = clock.advance(by: reader.frame.delay)
            let isFirst = frames == 0
            let area = isFirst ? Rectangle(x: 0, y: 0, width: canvas.width, height: canvas.height) : drawn
            let hasChanged = PixelConverter.convert(canvas, area, into: try encoder.planes())
            frames += 1
            // A frame that looks like the one before lengthens its sample.
            guard hasChanged || isFirst else { continue }
            samples += 1
            muxer.expect(time: time.start)
            try encoder.encode(at: time.start) { packet throws(TranscodeError) in try muxer.append(packet) }
        }
        guard frames > 0 else { throw .incomplete }
        try encoder.finish { packet throws(TranscodeError) in try muxer.append(packet) }
        let bytes = try muxer.finish(end: clock.now)
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: width, height: height, frames: frames,
            samples: samples, duration: clock.now, loopCount: reader.loopCount, bytes: bytes)
    }
}
