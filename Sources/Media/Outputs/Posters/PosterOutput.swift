/// Writes a poster. Decodes frames up to the requested one; if the content decides, decodes all frames first.
enum PosterOutput: OutputMaker {
    static func make<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32,
        _: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        let options = transcoder.options
        let frame: Int
        switch options.frame {
        case .number(let number): frame = number
        case .auto:
            frame = try RepresentativeFrame.index(
                in: bytes, by: Decoder.self, limits: transcoder.limits, background: options.background)
        }
        // The animation is examined only if the frame has dither.
        let mayLoseDither = options.undither == .automatic && Decoder.format == .gif
        var walk = try FrameWalk<Decoder>(bytes, limits: transcoder.limits, undithers: options.undithers || mayLoseDither)
        while walk.frames <= frame, try walk.next() {}
        guard walk.frames > 0 else { throw .incomplete(Decoder.format) }
        // The scan throws if no later frame has a pixel either.
        if !walk.hasPixels { _ = try AnimationSummary(scanning: bytes, by: Decoder.self, limits: transcoder.limits) }
        let (width, height) = (walk.canvas.width, walk.canvas.height)
        let geometry = PictureGeometry(width: width, height: height, options: options)
        try geometry.check(transcoder.limits, frames: 1)
        let background = transcoder.output == .jpg ? options.background : nil
        var picture = try walk.withPicture { canvas throws(TranscodeError) in
            try StillPicture(canvas, geometry, background: background)
        }
        var isUndithered = walk.hasRemovedDither
        if isUndithered, mayLoseDither, !(try videoLosesDither(transcoder, Decoder.self, bytes)) {
            picture = try StillPicture(walk.canvas, geometry, background: background)
            isUndithered = false
        }
        var length = 0
        try PosterEncoder.encode(picture, as: transcoder.output, quality: options.quality) { file throws(TranscodeError) in
            try FileOutput.write(file, to: descriptor)
            length = file.count
        }
        return TranscodeResult(
            sourceWidth: width, sourceHeight: height, width: picture.width, height: picture.height,
            frames: walk.frames, samples: 1, duration: 0, loopCount: walk.loopCount, sourceFormat: Decoder.format,
            isTransparent: picture.hasTransparency, isBrokenOff: walk.breaksOff(), isUndithered: isUndithered,
            bytes: length)
    }

    /// Whether a video of the whole animation, which also shows the poster's frame, loses its dither.
    private static func videoLosesDither<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer
    ) throws(TranscodeError) -> Bool {
        var transcoder = transcoder
        transcoder.options.time = TimeOptions()
        // If the scan fails, the frames up to the poster keep the limits: composing them throws otherwise.
        guard let source = try? ScannedSource<Decoder>(transcoder, bytes) else { return false }
        return try ContentProbe.content(of: source).losesDither
    }
}
