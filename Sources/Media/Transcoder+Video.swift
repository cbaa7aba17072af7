internal import CAV
internal import Glibc

extension Transcoder {
    /// GIFs up to this size may become larger; beyond it an MP4 that is larger than its GIF is made again, coarser.
    static var smallGIF: Int { 10_000 }
    /// x264's coarsest rate factor.
    private static var coarsest: Double { 51 }

    /// Makes an MP4: reader ▸ canvas ▸ clock ▸ converter ▸ encoder ▸ muxer.
    func makeVideo(_ gif: UnsafeRawBufferPointer, to descriptor: Int32) throws(TranscodeError) -> TranscodeResult {
        let summary = try GIFSummary(scanning: gif, limits: limits)
        var settings = H264Settings(rateFactor: H264Settings.rateFactor(quality: options.quality), threads: threads)
        settings.hasOneKeyframe = options.time.loops > 1
        while true {
            var meter = NoMeter()
            let result = try encode(gif, summary, settings, to: descriptor, &meter)
            // Every round may be as large as the GIF.
            let excess = Double(result.bytes) / Double(gif.count * options.time.loops)
            if gif.count <= Self.smallGIF || excess <= 1 || settings.rateFactor >= Self.coarsest { return result }
            // Six steps halve the bytes, roughly; two more make sure that the next attempt gets there.
            settings.rateFactor = min(Self.coarsest, settings.rateFactor + 6 * log2(excess) + 2)
            guard ftruncate(descriptor, 0) == 0 else { throw .library(.write, code: gifreel_averror(errno)) }
        }
    }

    /// Makes the MP4 with the settings, however large it becomes.
    func encode(
        _ gif: UnsafeRawBufferPointer, _ summary: GIFSummary, _ settings: H264Settings, to descriptor: Int32,
        _ meter: inout some StageMeter
    ) throws(TranscodeError) -> TranscodeResult {
        var reader = try GIFReader(gif, limits: limits)
        meter.worked(at: .decode)
        var canvas = try Canvas(width: summary.width, height: summary.height, format: .yuv(background: options.background))
        meter.worked(at: .compose)
        let geometry = PictureGeometry(width: summary.width, height: summary.height, options: options.size)
        let scaler = geometry.isIdentity ? nil : try VideoScaler(geometry)
        let width = (geometry.width + 1) & ~1
        let height = (geometry.height + 1) & ~1
        var timeline = Timeline(options.time)
        var settings = settings
        settings.timescale = timeline.timescale
        let shortest = summary.delays.map { FrameClock.shownDelay(Int($0)) }.min() ?? 1
        var encoder = try H264Encoder(
            width: width, height: height, shortestFrame: timeline.shortestSample(shortest), settings: settings)
        meter.worked(at: .encode)
        var muxer = try MP4Muxer(
            descriptor: descriptor, timescale: timeline.timescale, repeats: options.time.loops > 1
        ) { parameters throws(TranscodeError) in
            try encoder.describe(parameters)
        }
        meter.worked(at: .mux)
        var clock = FrameClock()
        var frames = 0
        var samples = 0
        // What the planes do not have yet: all at first, later what frames changed that did not become samples.
        var area = Rectangle(x: 0, y: 0, width: canvas.width, height: canvas.height)
        while !timeline.isOver(at: clock.now), try reader.next(), let indices = try reader.readPixels() {
            meter.decoded(pixels: reader.frame.rectangle.width * reader.frame.rectangle.height)
            meter.worked(at: .decode)
            area = area.union(try canvas.draw(reader, indices: indices))
            meter.worked(at: .compose)
            let shown = clock.advance(by: reader.frame.delay)
            frames += 1
            guard let time = timeline.place(time: shown.start, duration: shown.duration), timeline.admits(time) else { continue }
            let planes = try encoder.planes()
            let hasChanged =
                if let scaler { try scaler.convert(canvas, area, into: planes) } else {
                    PixelConverter.convert(canvas, area, into: planes)
                }
            area = .empty
            meter.worked(at: .convert)
            // A frame that looks like the one before lengthens its sample.
            guard hasChanged || samples == 0 else { continue }
            samples += 1
            timeline.note(time)
            muxer.expect(time: time)
            meter.sampled(pixels: width * height)
            try encoder.encode(at: time) { packet throws(TranscodeError) in
                meter.worked(at: .encode)
                try muxer.append(packet)
                meter.worked(at: .mux)
            }
            meter.worked(at: .encode)
        }
        guard frames > 0 else { throw .incomplete }
        guard samples > 0 else { throw .startPastEnd(start: options.time.start, duration: clock.now) }
        try encoder.finish { packet throws(TranscodeError) in
            meter.worked(at: .encode)
            try muxer.append(packet)
            meter.worked(at: .mux)
        }
        meter.worked(at: .encode)
        let round = timeline.length(of: clock.now)
        let loops = options.time.loops
        // One picture that is shown over and over is one sample that lasts longer.
        let isStill = samples == 1
        let bytes = try isStill ? muxer.finish(end: round * loops) : muxer.finish(end: round, rounds: loops)
        meter.worked(at: .mux)
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: width, height: height, frames: frames,
            samples: isStill ? 1 : samples * loops, duration: round * loops, timescale: timeline.timescale,
            loopCount: summary.loopCount, bytes: bytes)
    }
}
