/// Writes a VP9 video in WebM, with an alpha plane where the source is transparent.
enum WebMOutput: OutputMaker {
    static func make<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32,
        _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        var source = try ScannedSource<Decoder>(transcoder, bytes)
        var content = try source.decideByContent()
        // Messengers may not decode 4:4:4, and Chromium does not support alpha with 4:4:4.
        let hasRoom = VP9Settings.hasRoomForFullChroma(width: source.geometry.width, height: source.geometry.height)
        if source.options.preset == .sticker || !hasRoom { content.chroma = .half }
        if content.chroma == .full, try TransparencyProbe.isTransparent(source) { content.chroma = .half }
        do throws(TranscodeError) {
            return try encode(source, content, isRealtime: false, to: descriptor, meter)
        } catch .failed(.encode, _) {
            // libvpx fails, or loses the last pictures, if a hidden picture takes more than half of its buffer, as noise does. In
            // real-time mode there are no hidden pictures.
            try FileOutput.truncate(descriptor)
            return try encode(source, content, isRealtime: true, to: descriptor, meter)
        }
    }

    private static func encode<Decoder: AnimationDecoder & ~Copyable>(
        _ source: ScannedSource<Decoder>, _ content: PictureContent, isRealtime: Bool, to descriptor: Int32,
        _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        var source = source
        guard source.options.preset == .sticker else {
            let level = try level(source, content, isRealtime: isRealtime)
            return try encode(source, content, isRealtime: isRealtime, level: level, to: descriptor, meter)
        }
        var rules = StickerRules(source.options, level: 0)
        if content.isPixelArt { rules.enlargePixels(longerSide: max(source.summary.width, source.summary.height)) }
        source.transcoder.options = rules.options
        rules.level = try level(source, content, isRealtime: isRealtime)
        while true {
            let result = try encode(source, content, isRealtime: isRealtime, level: rules.level, to: descriptor, meter)
            guard rules.adjust(after: result.bytes) else { return result }
            source.transcoder.options = rules.options
            try FileOutput.truncate(descriptor)
        }
    }

    /// Returns the quality level for the colours.
    private static func level<Decoder: AnimationDecoder & ~Copyable>(
        _ source: ScannedSource<Decoder>, _ content: PictureContent, isRealtime: Bool
    ) throws(TranscodeError) -> Int {
        let trial = try QualityTrial(source, content)
        let speed = isRealtime ? .realtime : VP9Settings.Speed(content, pixels: trial.pixels * source.plan.count)
        let first = VP9Settings.level(quality: source.options.quality, isDrawing: content.isDrawing)
        let keyInterval = KeyInterval(pixels: trial.pixels, changedShare: content.changedShare)
        return try VP9Settings.search.quantizer(trial, first: first) {
            VP9Settings(plane: .color(content.chroma), level: $0, speed: speed, keyInterval: keyInterval)
        }
    }

    private static func encode<Decoder: AnimationDecoder & ~Copyable>(
        _ source: ScannedSource<Decoder>, _ content: PictureContent, isRealtime: Bool, level: Int, to descriptor: Int32,
        _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        let hasAlpha = try TransparencyProbe.isTransparent(source)
        var streams = PictureStreams(hasAlpha: hasAlpha, descriptor: descriptor)
        let (summary, geometry, loops) = (source.summary, source.geometry, source.options.time.loops)
        let pixels = geometry.evenWidth * geometry.evenHeight
        let speed = isRealtime ? .realtime : VP9Settings.Speed(content, pixels: pixels * source.plan.count)
        let keyInterval = KeyInterval(pixels: pixels, changedShare: content.changedShare)
        let samples = try streams.encode(
            frames: summary.delays.count, threads: source.transcoder.threads, meter, hasTwoPasses: speed.hasTwoPasses
        ) {
            () throws(TranscodeError) in
            try SampleSource(source, hasAlpha: hasAlpha, chroma: content.chroma)
        } encoder: { isAlpha, _, pass throws(TranscodeError) in
            try VideoEncoder(
                width: geometry.width, height: geometry.height,
                settings: VP9Settings(
                    plane: isAlpha ? .alpha : .color(content.chroma), level: level, speed: speed, keyInterval: keyInterval),
                pass: pass)
        }
        let round = samples.pictures.end
        // A repeated still picture is one picture for the whole time.
        let rounds = streams.pictures.count == 1 ? 1 : loops
        let (width, height) = (geometry.width, geometry.height)
        let writer = WebMWriter(
            width: width, height: height, timescale: samples.pictures.timescale, siting: samples.siting, hasAlpha: hasAlpha,
            chroma: content.chroma)
        let count = streams.pictures.count * rounds
        let layout = try streams.layout(rounds: rounds) {
            writer.layout($0, end: rounds == loops ? round : round * loops, rounds: rounds)
        }
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: width, height: height,
            frames: samples.pictures.frames, samples: count, duration: round * loops, timescale: samples.pictures.timescale,
            loopCount: summary.loopCount, sourceFormat: Decoder.format, isTransparent: hasAlpha,
            isBrokenOff: samples.pictures.isBrokenOff, isUndithered: samples.pictures.isUndithered,
            bytes: try streams.assemble(layout))
    }
}
