internal import CAV
internal import Glibc

extension Transcoder {
    /// GIFs up to this size may become larger; beyond it an MP4 that is larger than its GIF is made again, coarser.
    static var smallGIF: Int { 10_000 }
    /// x264's coarsest rate factor.
    private static var coarsest: Double { 51 }

    /// Makes an MP4: samples ▸ encoder ▸ muxer.
    func makeVideo(_ gif: UnsafeRawBufferPointer, to descriptor: Int32) throws(TranscodeError) -> TranscodeResult {
        let summary = try GIFSummary(scanning: gif, limits: limits)
        var settings = H264Settings(rateFactor: H264Settings.rateFactor(quality: options.quality), threads: threads)
        settings.hasOneKeyframe = options.time.loops > 1
        while true {
            var meter = NoMeter()
            let isBounded = gif.count > Self.smallGIF && settings.rateFactor < Self.coarsest
            switch try encode(gif, summary, settings, to: descriptor, isBounded: isBounded, &meter) {
            case .made(let result): return result
            case .tooLarge(let excess):
                // Six steps halve the bytes, roughly; two more make sure that the next attempt gets there.
                settings.rateFactor = min(Self.coarsest, settings.rateFactor + 6 * log2(excess) + 2)
                guard ftruncate(descriptor, 0) == 0 else { throw .library(.write, code: gifreel_averror(errno)) }
            }
        }
    }

    /// What came of an attempt.
    enum Attempt {
        case made(TranscodeResult)
        /// So many times the bytes that it may have, as far as could be seen when it was given up.
        case tooLarge(Double)
    }

    /// Makes the MP4 with the settings.
    ///
    /// - Parameter isBounded: Gives up as soon as a round is larger than the GIF.
    func encode(
        _ gif: UnsafeRawBufferPointer, _ summary: GIFSummary, _ settings: H264Settings, to descriptor: Int32, isBounded: Bool,
        _ meter: inout some StageMeter
    ) throws(TranscodeError) -> Attempt {
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
            if isBounded, muxer.length > gif.count {
                let share = Double(sample.frame) / Double(max(sample.frame, summary.delays.count))
                return .tooLarge(Double(muxer.length) / Double(gif.count) / share)
            }
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
        // One picture that is shown over and over is one sample that lasts longer.
        let isStill = source.samples == 1
        let bytes = try isStill ? muxer.finish(end: round * loops) : muxer.finish(end: round, rounds: loops)
        meter.worked(at: .mux)
        // Every round may be as large as the GIF.
        let excess = Double(bytes) / Double(gif.count * loops)
        if isBounded, excess > 1 { return .tooLarge(excess) }
        return .made(
            TranscodeResult(
                sourceWidth: summary.width, sourceHeight: summary.height, width: source.width, height: source.height,
                frames: source.frames, samples: isStill ? 1 : source.samples * loops, duration: round * loops,
                timescale: timeline.timescale, loopCount: summary.loopCount, bytes: bytes))
    }

    /// The next sample, its picture in the encoder's planes: from the thread, where there is one.
    private static func next(
        _ source: SampleSource, _ thread: SampleThread?, into encoder: inout H264Encoder, _ meter: inout some StageMeter
    ) throws(TranscodeError) -> SampleSource.Sample? {
        if let thread { return try thread.next(into: encoder.planes()) }
        return try source.next(&meter) { () throws(TranscodeError) in try encoder.planes() }
    }
}
