internal import CAV
internal import Glibc

/// Writes an H.264 video in MP4: samples ▸ encoder ▸ muxer.
enum VideoOutput: OutputMaker {
    /// Bytes of a source up to which its MP4 may be larger without a second attempt.
    static let smallSource = 10_000
    /// x264's coarsest rate factor.
    private static let coarsestRateFactor = 51.0

    static func make<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _ decoder: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32
    ) throws(TranscodeError) -> TranscodeResult {
        let summary = try AnimationSummary(scanning: bytes, by: decoder, limits: transcoder.limits)
        let options = transcoder.options
        var settings = H264Settings(
            rateFactor: H264Settings.rateFactor(quality: options.quality), threads: transcoder.threads)
        settings.hasOneKeyframe = options.time.loops > 1
        var meter = NoMeter()
        let result = try encode(transcoder, decoder, bytes, summary, settings, to: descriptor, &meter)
        // Every round may be as large as the GIF.
        let excess = Double(result.bytes) / Double(bytes.count * options.time.loops)
        guard bytes.count > smallSource, let steps = H264Settings.coarserSteps(excess: excess) else { return result }
        guard ftruncate(descriptor, 0) == 0 else { throw .library(.write, code: gifreel_averror(errno)) }
        settings.rateFactor = min(coarsestRateFactor, settings.rateFactor + steps)
        return try encode(transcoder, decoder, bytes, summary, settings, to: descriptor, &meter)
    }

    /// Writes an MP4 with the settings.
    static func encode<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, _ summary: AnimationSummary,
        _ settings: H264Settings, to descriptor: Int32, _ meter: inout some StageMeter
    ) throws(TranscodeError) -> TranscodeResult {
        let options = transcoder.options
        let source = try SampleSource<Decoder>(bytes, summary, limits: transcoder.limits, options: options)
        meter.worked(at: .compose)
        let timeline = Timeline(options.time)
        var settings = settings
        settings.timescale = timeline.timescale
        let shortest = summary.delays.map { FrameClock.shownDelay(Int($0)) }.min() ?? 1
        var encoder = try H264Encoder(
            width: source.width, height: source.height, shortestFrame: timeline.shortestSample(shortest), settings: settings)
        meter.worked(at: .encode)
        var muxer = try MP4Muxer(
            descriptor: descriptor, timescale: timeline.timescale, repeats: options.time.loops > 1
        ) { parameters throws(TranscodeError) in
            try encoder.describe(parameters)
        }
        meter.worked(at: .mux)
        let thread = settings.threads > 1 && summary.delays.count > 1 ? SampleThread(source) : nil
        defer { thread?.stop() }
        while let sample = try next(source, thread, into: &encoder, &meter) {
            muxer.expect(time: sample.time)
            meter.sampled(pixels: source.width * source.height)
            try encoder.encode(at: sample.time) { packet throws(TranscodeError) in
                meter.worked(at: .encode)
                try muxer.append(packet)
                meter.worked(at: .mux)
            }
            meter.worked(at: .encode)
        }
        guard source.frames > 0 else { throw .incomplete }
        guard source.samples > 0 else { throw .startPastEnd(start: options.time.start, duration: source.elapsed) }
        try encoder.finish { packet throws(TranscodeError) in
            meter.worked(at: .encode)
            try muxer.append(packet)
            meter.worked(at: .mux)
        }
        meter.worked(at: .encode)
        let round = timeline.length(of: source.elapsed)
        let loops = options.time.loops
        // A still picture that is repeated is one sample of the whole time, unless that is more than a sample may last.
        let isOneSample = source.samples == 1 && round * loops <= Timeline.longestSample
        let length = try isOneSample ? muxer.finish(end: round * loops) : muxer.finish(end: round, rounds: loops)
        meter.worked(at: .mux)
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: source.width, height: source.height,
            frames: source.frames, samples: isOneSample ? 1 : source.samples * loops, duration: round * loops,
            timescale: timeline.timescale, loopCount: summary.loopCount, bytes: length)
    }

    /// The next sample, its picture in the encoder's planes: from the thread, where there is one.
    private static func next<Decoder: AnimationDecoder & ~Copyable>(
        _ source: SampleSource<Decoder>, _ thread: SampleThread<Decoder>?, into encoder: inout H264Encoder,
        _ meter: inout some StageMeter
    ) throws(TranscodeError) -> Sample? {
        if let thread { return try thread.next(into: encoder.planes()) }
        return try source.next(&meter) { () throws(TranscodeError) in try encoder.planes() }
    }
}

extension Transcoder {
    /// Makes the MP4 once, on one thread, and measures each stage.
    ///
    /// It reads the thread's clock after each step, which takes some hundred nanoseconds.
    ///
    /// - Parameters:
    ///   - gif: The whole file; stays in place during the call.
    ///   - descriptor: An empty, seekable file, open for reading and writing.
    /// - Throws: ``TranscodeError``.
    package func stageCosts(
        of gif: UnsafeRawBufferPointer, to descriptor: Int32
    ) throws(TranscodeError) -> StageCosts {
        var meter = CostMeter()
        let summary = try AnimationSummary(scanning: gif, by: GIFReader.self, limits: limits)
        meter.worked(at: .scan)
        let settings = H264Settings(rateFactor: H264Settings.rateFactor(quality: options.quality), threads: 1)
        let result = try VideoOutput.encode(self, GIFReader.self, gif, summary, settings, to: descriptor, &meter)
        return meter.finished(bytes: result.bytes)
    }
}
