internal import CMedia

/// Writes an AVIF: a still image for a still source, otherwise an image sequence; with alpha where the source is transparent.
enum AVIFOutput: OutputMaker {
    static func make<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32,
        _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        var source = try ScannedSource<Decoder>(transcoder, bytes)
        let hasAlpha = try TransparencyProbe.isTransparent(source)
        let content = try source.decideByContent()
        let (summary, shortest, options) = (source.summary, source.plan.shortest, source.options)
        let tools = AV1Tools(content, AV1Tools.Work(of: content, source.geometry))
        let quantizer = try AV1Tools.search.quantizer(
            try QualityTrial(source, content), first: tools.quantizer(quality: options.quality)
        ) { AVIFSettings(tools.forTrial, quantizer: $0) }
        var streams = PictureStreams(hasAlpha: hasAlpha, descriptor: descriptor, payload: AV1Stream.withoutDelimiters)
        let samples = try streams.encode(
            frames: summary.delays.count, threads: transcoder.threads, meter, hasTwoPasses: false
        ) {
            [source] () throws(TranscodeError) in
            try SampleSource(source, hasAlpha: hasAlpha, .image(timescale: nil), chroma: tools.chroma)
        } encoder: { isAlpha, samples, pass throws(TranscodeError) in
            try VideoEncoder(
                width: samples.pictures.geometry.width, height: samples.pictures.geometry.height,
                highestRate: AVRational(
                    num: Int32(samples.pictures.timescale),
                    den: Int32(clamping: max(FrameClock.shortestDelay(timescale: samples.pictures.timescale), shortest))),
                settings: isAlpha
                    ? AVIFSettings(alphaBeside: tools, quality: options.quality) : AVIFSettings(tools, quantizer: quantizer),
                pass: pass)
        }
        let (width, height) = (samples.pictures.geometry.width, samples.pictures.geometry.height)
        guard let color = AV1Stream(streams.firstColor, isMonochrome: false) else { throw .failed(.mux, code: 0) }
        let alpha = AV1Stream(streams.firstAlpha, isMonochrome: true)
        guard !hasAlpha || alpha != nil else { throw .failed(.mux, code: 0) }
        let count = streams.pictures.count
        // A still image has no duration, and repeating it changes nothing.
        let loops = count == 1 ? 1 : options.time.loops
        let round = samples.pictures.end
        let writer = AVIFWriter(
            width: width, height: height, timescale: samples.pictures.timescale, color: color, alpha: alpha,
            plays: PlayCount.of(loopCount: summary.loopCount, repetitions: loops))
        let layout = try streams.layout(rounds: loops) { writer.layout($0, end: round, rounds: loops) }
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: width, height: height,
            frames: samples.pictures.frames,
            samples: count * loops, duration: count == 1 ? 0 : round * loops, timescale: samples.pictures.timescale,
            loopCount: summary.loopCount, sourceFormat: Decoder.format, isTransparent: hasAlpha,
            isBrokenOff: samples.pictures.isBrokenOff, isUndithered: samples.pictures.isUndithered,
            bytes: try streams.assemble(layout))
    }
}
