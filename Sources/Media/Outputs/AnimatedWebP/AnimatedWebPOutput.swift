/// Writes an animated WebP, lossless unless a quality is given, or a still WebP for a still source.
enum AnimatedWebPOutput: OutputMaker {
    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "awebp-3"

    static func make<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32,
        _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        let options = transcoder.options
        let source = try ScannedSource<Decoder>(transcoder, bytes)
        let summary = source.summary
        let pictures = try PictureSource(source, format: .rgba, .image(timescale: AnimatedWebPWriter.timescale))
        let (width, height) = (pictures.geometry.width, pictures.geometry.height)
        let encoder = try WebPFrameEncoder(width: width, height: height, quality: options.chosenQuality)
        var spool = PacketSpool(descriptor: descriptor)
        var frames: [AnimatedWebPWriter.Frame] = []
        meter.begin(total: summary.delays.count)
        while let picture = try pictures.next() {
            meter.enter(frame: picture.frame)
            if let frame = try encoder.encode(try pictures.stillPicture()) {
                let packet = try encoder.withChunks { chunks throws(TranscodeError) in try spool.append(chunks) }
                try frames.grow(
                    by: AnimatedWebPWriter.Frame(
                        time: picture.time, rectangle: frame.rectangle, blends: frame.blends, packet: packet))
            }
            meter.leave()
        }
        // A still image has no duration, and repeating it changes nothing.
        let loops = frames.count == 1 ? 1 : options.time.loops
        try HeapBuffer.check(bytes: frames.count * loops * FileLayout.mostBytes)
        let writer = AnimatedWebPWriter(
            width: width, height: height, hasAlpha: encoder.usesAlpha,
            plays: PlayCount.of(loopCount: summary.loopCount, repetitions: loops), clearPixel: try encoder.clearPixel())
        let (layout, samples) = writer.layout(frames, end: pictures.end, rounds: loops)
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: width, height: height, frames: pictures.frames,
            samples: samples, duration: samples == 1 ? 0 : pictures.end * loops, timescale: AnimatedWebPWriter.timescale,
            loopCount: summary.loopCount, sourceFormat: Decoder.format, isTransparent: encoder.hasTransparency,
            isBrokenOff: pictures.isBrokenOff, bytes: try spool.assemble(layout))
    }
}
