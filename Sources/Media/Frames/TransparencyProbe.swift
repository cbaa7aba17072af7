/// Finds out whether a video or picture of an animation needs alpha.
enum TransparencyProbe {
    /// Whether a shown frame has a transparent pixel in the shown part of the canvas, or the picture has a margin. Frames
    /// dropped by the frame rate limit do not count.
    ///
    /// Composes frames up to the first transparent pixel. For most animations, the frame headers and the first frame, which may
    /// have fewer pixels than its header states, show that there is none.
    static func isTransparent<Decoder: AnimationDecoder & ~Copyable>(
        _ source: ScannedSource<Decoder>
    ) throws(TranscodeError) -> Bool {
        let (geometry, summary) = (source.geometry, source.summary)
        if geometry.hasMargin { return true }
        var timeline = Timeline(source.options.time, of: summary)
        var walk = try FrameWalk<Decoder>(source.bytes, limits: source.limits)
        while !timeline.isOver, walk.frames < summary.delays.count, try walk.next() {
            let span = timeline.advance(by: summary.delays[walk.frames - 1])
            let isShown = span.flatMap { timeline.admit($0) } != nil
            if isShown && walk.canvas.hasTransparency(in: geometry.source) { return true }
            if !summary.hasTransparency && !walk.canvas.hasTransparency(in: nil) { return false }
        }
        return false
    }
}
