internal import CAV
internal import Glibc

extension Transcoder {
    /// Bytes up to which an MP4 may be larger than its GIF without a second attempt.
    static var smallGIF: Int { 10_000 }
    /// x264's coarsest rate factor.
    private static var coarsestRateFactor: Double { 51 }

    /// Writes an MP4: samples ▸ encoder ▸ muxer.
    func makeVideo(_ gif: UnsafeRawBufferPointer, to descriptor: Int32) throws(TranscodeError) -> TranscodeResult {
        let summary = try GIFSummary(scanning: gif, limits: limits)
        var settings = H264Settings(rateFactor: H264Settings.rateFactor(quality: options.quality), threads: threads)
        settings.hasOneKeyframe = options.time.loops > 1
        var meter = NoMeter()
        let result = try encode(gif, summary, settings, to: descriptor, &meter)
        // Every round may be as large as the GIF.
        let excess = Double(result.bytes) / Double(gif.count * options.time.loops)
        guard gif.count > Self.smallGIF, let steps = H264Settings.coarserSteps(excess: excess) else { return result }
        guard ftruncate(descriptor, 0) == 0 else { throw .library(.write, code: gifreel_averror(errno)) }
        settings.rateFactor = min(Self.coarsestRateFactor, settings.rateFactor + steps)
        return try encode(gif, summary, settings, to: descriptor, &meter)
    }

    /// Writes an MP4 with the settings.
    func encode(
        _ gif: UnsafeRawBufferPointer, _ summary: GIFSummary, _ settings: H264Settings, to descriptor: Int32,
        _ meter: inout some StageMeter
    ) throws(TranscodeError) -> TranscodeResult {
        let source = try SampleSource(gif, summary, limits: limits, options: options)
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
        while let sample = try Self.next(source, thread, into: &encoder, &meter) {
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
        let bytes = try isOneSample ? muxer.finish(end: round * loops) : muxer.finish(end: round, rounds: loops)
        meter.worked(at: .mux)
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: source.width, height: source.height,
            frames: source.frames, samples: isOneSample ? 1 : source.samples * loops, duration: round * loops,
            timescale: timeline.timescale, loopCount: summary.loopCount, bytes: bytes)
    }

    /// The next sample, its picture in the encoder's planes: from the thread, where there is one.
    private static func next(
        _ source: SampleSource, _ thread: SampleThread?, into encoder: inout H264Encoder, _ meter: inout some StageMeter
    ) throws(TranscodeError) -> SampleSource.Sample? {
        if let thread { return try thread.next(into: encoder.planes()) }
        return try source.next(&meter) { () throws(TranscodeError) in try encoder.planes() }
    }
}
