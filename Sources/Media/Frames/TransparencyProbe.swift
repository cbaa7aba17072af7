/// Finds out whether a video or picture of an animation needs alpha.
enum TransparencyProbe {
    /// Whether a frame that is shown has a transparent pixel in the part of the canvas that is shown, or the picture has a margin. Frames that the frame rate limit
    /// drops do not count.
    ///
    /// Composes frames up to the first such pixel. The headers of the frames and the first frame, whose pixels may be fewer than its
    /// header says, show that most animations have none.
    static func isTransparent<Decoder: AnimationDecoder & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer, by _: Decoder.Type, _ summary: AnimationSummary, limits: MediaLimits,
        options: TranscodeOptions
    ) throws(TranscodeError) -> Bool {
        let geometry = PictureGeometry(width: summary.width, height: summary.height, options: options)
        if geometry.hasMargin { return true }
        var timeline = Timeline(options.time, of: summary)
        var walk = try FrameWalk<Decoder>(bytes, limits: limits)
        while !timeline.isOver, walk.frames < summary.delays.count, try walk.next() {
            let span = timeline.advance(by: summary.delays[walk.frames - 1])
            let isShown = span.flatMap { timeline.admit($0) } != nil
            if isShown && walk.canvas.hasTransparency(in: geometry.source) { return true }
            if !summary.hasTransparency && !walk.canvas.hasTransparency(in: nil) { return false }
        }
        return false
    }
}
