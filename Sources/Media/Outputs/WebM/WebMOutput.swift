/// Writes a VP9 video in WebM, with an alpha plane where the source is transparent.
enum WebMOutput: OutputMaker {
    static func make<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32,
        _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        let summary = try AnimationSummary(scanning: bytes, by: Decoder.self, limits: transcoder.limits)
        var plan = SamplePlan(transcoder.options.time, of: summary)
        var content = try ContentProbe.content(
            of: bytes, by: Decoder.self, summary, plan, limits: transcoder.limits, options: transcoder.options)
        var transcoder = transcoder.decided(by: content)
        // Messengers may not decode 4:4:4, and Chromium does not support alpha with 4:4:4.
        if transcoder.options.preset == .sticker { content.chroma = .half }
        if content.chroma == .full, try hasAlpha(transcoder, Decoder.self, bytes, summary) { content.chroma = .half }
        guard transcoder.options.preset == .sticker else {
            let level = try level(transcoder, Decoder.self, bytes, summary, plan, content)
            return try encode(transcoder, Decoder.self, bytes, summary, plan, content, level: level, to: descriptor, meter)
        }
        var rules = StickerRules(transcoder.options, level: 0)
        if content.isPixelArt { rules.enlargePixels(longerSide: max(summary.width, summary.height)) }
        transcoder.options = rules.options
        plan = SamplePlan(rules.options.time, of: summary)
        rules.level = try level(transcoder, Decoder.self, bytes, summary, plan, content)
        while true {
            let result = try encode(
                transcoder, Decoder.self, bytes, summary, plan, content, level: rules.level, to: descriptor, meter)
            guard rules.adjust(after: result.bytes) else { return result }
            transcoder.options = rules.options
            plan = SamplePlan(rules.options.time, of: summary)
            try FileOutput.truncate(descriptor)
        }
    }

    private static func hasAlpha<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, _ summary: AnimationSummary
    ) throws(TranscodeError) -> Bool {
        try TransparencyProbe.isTransparent(
            bytes, by: Decoder.self, summary, limits: transcoder.limits, options: transcoder.options)
    }

    /// Returns the quality level for the colours.
    private static func level<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, _ summary: AnimationSummary,
        _ plan: SamplePlan, _ content: PictureContent
    ) throws(TranscodeError) -> Int {
        let trial = try QualityTrial(transcoder, Decoder.self, bytes, summary, content)
        let speed = VP9Settings.Speed(content, pixels: trial.pixels * plan.count)
        let first = VP9Settings.level(quality: transcoder.options.quality, isDrawing: content.isDrawing)
        let keyInterval = KeyInterval(pixels: trial.pixels, changedShare: content.changedShare)
        return try VP9Settings.search.quantizer(trial, first: first) {
            VP9Settings(plane: .color(content.chroma), level: $0, speed: speed, keyInterval: keyInterval)
        }
    }

    private static func encode<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, _ summary: AnimationSummary,
        _ plan: SamplePlan, _ content: PictureContent, level: Int, to descriptor: Int32, _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        let options = transcoder.options
        let hasAlpha = try hasAlpha(transcoder, Decoder.self, bytes, summary)
        var streams = PictureStreams(hasAlpha: hasAlpha, descriptor: descriptor)
        let geometry = PictureGeometry(width: summary.width, height: summary.height, options: options)
        let speed = VP9Settings.Speed(content, pixels: geometry.evenWidth * geometry.evenHeight * plan.count)
        let keyInterval = KeyInterval(
            pixels: geometry.evenWidth * geometry.evenHeight, changedShare: content.changedShare)
        let source = try streams.encode(
            frames: summary.delays.count, threads: transcoder.threads, meter,
            hasTwoPasses: speed.hasTwoPasses
        ) {
            () throws(TranscodeError) in
            try SampleSource<Decoder>(
                bytes, summary, limits: transcoder.limits, options: options, hasAlpha: hasAlpha, chroma: content.chroma)
        } encoder: { isAlpha, source, pass throws(TranscodeError) in
            try VideoEncoder(
                width: source.geometry.width, height: source.geometry.height,
                settings: VP9Settings(
                    plane: isAlpha ? .alpha : .color(content.chroma), level: level, speed: speed, keyInterval: keyInterval),
                pass: pass)
        }
        let round = source.end
        let loops = options.time.loops
        // A repeated still picture is one picture for the whole time.
        let rounds = streams.pictures.count == 1 ? 1 : loops
        let (width, height) = (source.geometry.width, source.geometry.height)
        let writer = WebMWriter(
            width: width, height: height, timescale: source.timescale, siting: source.siting, hasAlpha: hasAlpha,
            chroma: content.chroma)
        let samples = streams.pictures.count * rounds
        let layout = try streams.layout(rounds: rounds) {
            writer.layout($0, end: rounds == loops ? round : round * loops, rounds: rounds)
        }
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: width, height: height,
            frames: source.frames, samples: samples, duration: round * loops, timescale: source.timescale,
            loopCount: summary.loopCount, sourceFormat: Decoder.format, isTransparent: hasAlpha,
            isBrokenOff: source.isBrokenOff, isUndithered: source.isUndithered, bytes: try streams.assemble(layout))
    }
}
