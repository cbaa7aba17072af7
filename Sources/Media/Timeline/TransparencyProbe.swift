/// Finds out whether a video or picture of an animation needs alpha.
enum TransparencyProbe {
    /// Whether a frame that is shown has a transparent pixel in the part that is shown.
    ///
    /// A frame rate limit drops frames, and which ones depends on which of the converted pictures look alike. With a limit, the samples
    /// are therefore made as well, but not encoded: once with alpha, and once without, because other pictures may look alike then. Alpha
    /// is left out only if no sample of either kind shows a transparent pixel.
    static func isTransparent<Decoder: AnimationDecoder & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer, by _: Decoder.Type, _ summary: AnimationSummary, limits: MediaLimits,
        options: TranscodeOptions
    ) throws(TranscodeError) -> Bool {
        guard try hasTransparentFrame(bytes, by: Decoder.self, summary, limits: limits, options: options) else { return false }
        if options.time.ceiling == nil { return true }
        for hasAlpha in [true, false] {
            let source = try SampleSource<Decoder>(bytes, summary, limits: limits, options: options, hasAlpha: hasAlpha)
            if try hasTransparentSample(source, bytes, limits: limits) { return true }
        }
        return false
    }

    /// Whether a frame in the requested part has a transparent pixel in the part of the canvas that is shown.
    ///
    /// Composes frames up to the first such pixel. Animations without one, which most are, are told by the heads of their frames and by
    /// the first frame, whose pixels may be fewer than its head says.
    private static func hasTransparentFrame<Decoder: AnimationDecoder & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer, by _: Decoder.Type, _ summary: AnimationSummary, limits: MediaLimits,
        options: TranscodeOptions
    ) throws(TranscodeError) -> Bool {
        let geometry = PictureGeometry(width: summary.width, height: summary.height, options: options)
        let timeline = Timeline(options.time, of: summary)
        var clock = FrameClock(timescale: summary.timescale)
        var walk = try FrameWalk<Decoder>(bytes, limits: limits)
        while !timeline.isOver(at: clock.now), walk.frames < summary.delays.count, try walk.next() {
            let shown = clock.advance(by: summary.delays[walk.frames - 1])
            let isShown = timeline.place(time: shown.start, duration: shown.duration) != nil
            if isShown && walk.canvas.hasTransparency(in: geometry.source) { return true }
            if !summary.hasTransparency && !walk.canvas.hasTransparency(in: nil) { return false }
        }
        return false
    }

    /// Whether a frame that becomes a sample has a transparent pixel in the part of the canvas that is shown.
    ///
    /// - Parameter source: At its beginning.
    private static func hasTransparentSample<Decoder: AnimationDecoder & ~Copyable>(
        _ source: SampleSource<Decoder>, _ bytes: UnsafeRawBufferPointer, limits: MediaLimits
    ) throws(TranscodeError) -> Bool {
        let memory = try UnusedPlanes(source, color: true, alpha: source.hasAlpha)
        func planes() -> PixelConverter.Planes {
            var planes = memory.planes
            if source.hasAlpha { planes.alpha = memory.alphaPlane }
            return planes
        }
        var meter = NoMeter()
        var walk = try FrameWalk<Decoder>(bytes, limits: limits)
        while let sample = try source.next(&meter, into: { () throws(TranscodeError) in planes() }) {
            while walk.frames < sample.frame, try walk.next() {}
            if walk.canvas.hasTransparency(in: source.geometry.source) { return true }
        }
        return false
    }
}
