internal import CMedia

/// Writes an AVIF: a still image for a still source, otherwise an image sequence; with alpha where the source is transparent.
enum AVIFOutput: OutputMaker {
    static func make<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32,
        _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        let summary = try AnimationSummary(scanning: bytes, by: Decoder.self, limits: transcoder.limits)
        let hasAlpha = try TransparencyProbe.isTransparent(
            bytes, by: Decoder.self, summary, limits: transcoder.limits, options: transcoder.options)
        let plan = SamplePlan(transcoder.options.time, of: summary)
        let content = try ContentProbe.content(
            of: bytes, by: Decoder.self, summary, plan, limits: transcoder.limits, options: transcoder.options)
        let transcoder = transcoder.decided(by: content)
        let options = transcoder.options
        let tools = AV1Tools(content, AV1Tools.Work(of: content, summary, options))
        let quantizer = try AV1Tools.search.quantizer(
            try QualityTrial(transcoder, Decoder.self, bytes, summary, content),
            first: tools.quantizer(quality: options.quality)
        ) { AVIFSettings(tools.forTrial, quantizer: $0) }
        var streams = PictureStreams(hasAlpha: hasAlpha, descriptor: descriptor, payload: AV1Stream.withoutDelimiters)
        let source = try streams.encode(
            frames: summary.delays.count, threads: transcoder.threads, meter, hasTwoPasses: false
        ) {
            () throws(TranscodeError) in
            try SampleSource<Decoder>(
                bytes, summary, limits: transcoder.limits, options: options, hasAlpha: hasAlpha, .image(timescale: nil),
                chroma: tools.chroma)
        } encoder: { isAlpha, source, pass throws(TranscodeError) in
            try VideoEncoder(
                width: source.geometry.width, height: source.geometry.height,
                highestRate: AVRational(
                    num: Int32(source.timescale),
                    den: Int32(clamping: max(FrameClock.shortestDelay(timescale: source.timescale), plan.shortest))),
                settings: isAlpha
                    ? AVIFSettings(alphaBeside: tools, quality: options.quality) : AVIFSettings(tools, quantizer: quantizer),
                pass: pass)
        }
        let (width, height) = (source.geometry.width, source.geometry.height)
        guard let color = AV1Stream(streams.firstColor, isMonochrome: false) else { throw .failed(.mux, code: 0) }
        let alpha = AV1Stream(streams.firstAlpha, isMonochrome: true)
        guard !hasAlpha || alpha != nil else { throw .failed(.mux, code: 0) }
        let count = streams.pictures.count
        // A still image has no duration, and repeating it changes nothing.
        let loops = count == 1 ? 1 : options.time.loops
        let round = source.end
        let writer = AVIFWriter(
            width: width, height: height, timescale: source.timescale, color: color, alpha: alpha,
            plays: plays(loopCount: summary.loopCount, rounds: loops))
        let layout = try streams.layout(rounds: loops) { writer.layout($0, end: round, rounds: loops) }
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: width, height: height, frames: source.frames,
            samples: count * loops, duration: count == 1 ? 0 : round * loops, timescale: source.timescale,
            loopCount: summary.loopCount, sourceFormat: Decoder.format, isTransparent: hasAlpha,
            isBrokenOff: source.isBrokenOff, isUndithered: source.isUndithered, bytes: try streams.assemble(layout))
    }
}
