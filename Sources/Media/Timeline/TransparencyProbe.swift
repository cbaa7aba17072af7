/// Finds out whether a video or picture of an animation needs alpha.
enum TransparencyProbe {
    /// Whether a frame that is shown has a transparent pixel in the part that is shown.
    ///
    /// Composes frames up to the first such pixel. Animations without one, which most are, are told by the heads of their frames and by
    /// the first frame, whose pixels may be fewer than its head says.
    static func isTransparent<Decoder: AnimationDecoder & ~Copyable>(
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
}
