/// Writes a smaller GIF of the same animation, lossless unless a quality is given or the pictures have more colours than GIF
/// allows.
enum GIFOutput: OutputMaker {
    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "gif-6"

    static func make<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32,
        _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        let options = transcoder.options
        let source = try ScannedSource<Decoder>(transcoder, bytes)
        let summary = source.summary
        let (width, height) = (source.geometry.width, source.geometry.height)
        // GIF stores sides in 16 bits.
        let most = Int(UInt16.max)
        guard max(width, height) <= most else { throw .tooLarge(.side, value: max(width, height), maximum: most) }
        var file = GIFFrames(
            encoder: try GIFFrameEncoder(width: width, height: height, quality: options.chosenQuality),
            spool: PacketSpool(descriptor: descriptor))
        var round = Round()
        meter.begin(total: summary.delays.count, passes: options.time.loops)
        for number in 0..<options.time.loops {
            if number > 0 { meter.beginNextPass() }
            round = try add(source, from: round.end, to: &file, meter)
            // Repeating a still picture changes nothing.
            if file.times.count == 1 { break }
        }
        let end = round.end
        try file.finish(at: end)
        let isStill = file.frames.count == 1
        let rounds = isStill ? 1 : options.time.loops
        let writer = GIFWriter(
            width: width, height: height, palette: file.encoder.global,
            plays: PlayCount.of(loopCount: summary.loopCount, repetitions: rounds))
        let layout = writer.layout(file.frames, times: file.times, end: end)
        let (samples, hasTransparency) = (file.frames.count, file.encoder.hasTransparency)
        let isExact = file.encoder.isExact
        var result = TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: width, height: height, frames: round.frames,
            samples: samples, duration: isStill ? 0 : end, loopCount: summary.loopCount, sourceFormat: Decoder.format,
            isTransparent: hasTransparency, isBrokenOff: round.isBrokenOff, bytes: try file.assemble(layout))
        guard Decoder.format == .gif, !round.isBrokenOff, options.keepsPictures,
            let copy = GIFSourceCopy.file(bytes, summary, plays: PlayCount.of(loopCount: summary.loopCount)),
            copy.count < result.bytes || !isExact, try GIFSourceCopy.isWhole(bytes, limits: transcoder.limits)
        else { return result }
        try FileOutput.truncate(descriptor)
        try copy.span.bytes.withUnsafeBytes { bytes throws(TranscodeError) in try FileOutput.write(bytes, to: descriptor) }
        // The copy of a still picture may repeat it.
        (result.bytes, result.samples) = (copy.count, summary.delays.count)
        result.duration = result.samples == 1 ? 0 : end
        return result
    }

    /// One play of the animation.
    private struct Round {
        /// The end of the play, in hundredths of a second.
        var end = 0
        /// The number of frames in the source.
        var frames = 0
        var isBrokenOff = false
    }

    /// Adds all pictures of the animation once.
    private static func add<Decoder: AnimationDecoder & ~Copyable>(
        _ source: ScannedSource<Decoder>, from start: Int, to file: inout GIFFrames, _ meter: FrameMeter
    ) throws(TranscodeError) -> Round {
        let pictures = try PictureSource(source, format: .rgba, .image(timescale: FrameClock.timescale))
        while let picture = try pictures.next() {
            meter.enter(frame: picture.frame)
            try file.add(try pictures.stillPicture(), at: start + picture.time)
            meter.leave()
        }
        return Round(end: start + pictures.end, frames: pictures.frames, isBrokenOff: pictures.isBrokenOff)
    }
}

extension TranscodeOptions {
    /// Whether no option changes pictures or timing.
    fileprivate var keepsPictures: Bool {
        chosenQuality == nil && size == SizeOptions() && time == TimeOptions() && zoom == 1 && !undithers && preset == nil
    }
}

private struct GIFFrames: ~Copyable {
    let encoder: GIFFrameEncoder
    private var spool: PacketSpool
    private(set) var frames: [GIFWriter.Frame] = []
    /// In hundredths of a second. The last time belongs to a frame that waits for the next picture.
    private(set) var times: [Int] = []

    init(encoder: GIFFrameEncoder, spool: consuming PacketSpool) {
        self.encoder = encoder
        self.spool = spool
    }

    /// Adds a picture, unless it looks like the previous one.
    mutating func add(_ picture: borrowing StillPicture, at time: Int) throws(TranscodeError) {
        if encoder.isRepetition(picture) { return }
        try fill(until: time)
        if let frame = try encoder.add(picture) { try append(frame) }
        try times.grow(by: time)
    }

    mutating func finish(at end: Int) throws(TranscodeError) {
        if times.count > 1 { try fill(until: end) }
        try append(try encoder.finish())
        try HeapBuffer.check(bytes: frames.count * FileLayout.mostBytes)
    }

    /// Shows the waiting picture with several frames if it lasts longer than the longest delay.
    private mutating func fill(until end: Int) throws(TranscodeError) {
        while let last = times.last, end - last > GIFWriter.longest {
            try append(try encoder.repeatPicture())
            try times.grow(by: last + GIFWriter.longest - GIFWriter.shortest)
        }
    }

    private mutating func append(_ frame: GIFFrameEncoder.Frame) throws(TranscodeError) {
        try frames.grow(by: GIFWriter.Frame(frame: frame, packet: try spool.append(encoder.bytes)))
    }

    /// Writes the file. Returns its length.
    consuming func assemble(_ layout: FileLayout) throws(TranscodeError) -> Int { try spool.assemble(layout) }
}
