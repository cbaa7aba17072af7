internal import CMedia

/// Writes a video in MP4: samples ▸ encoder ▸ muxer.
enum MP4Output: OutputMaker {
    static func make<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32,
        _ progress: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        var source = try ScannedSource<Decoder>(transcoder, bytes)
        if let copy = try ClipCopy(transcoder, bytes), let result = try copy.write(source.summary, to: descriptor, progress) {
            return result
        }
        let content = try source.decideByContent()
        switch source.options.codec {
        case .h264:
            // The times of B-frames, and of what they are predicted from, are stated as offsets.
            if source.plan.lastButOne > MP4Muxer.mostOffset { source.transcoder.options.bframes = .never }
            return try attempt(source, H264Settings(source.options, content), to: descriptor, progress)
        case .av1:
            let tools = AV1Tools(content, AV1Tools.Work(of: content, source.geometry))
            let quantizer = try AV1Tools.search.quantizer(
                try QualityTrial(source, content), first: tools.quantizer(quality: source.options.quality)
            ) { AV1Settings(tools.forTrial, quantizer: $0) }
            return try attempt(source, AV1Settings(tools, quantizer: quantizer), to: descriptor, progress)
        }
    }

    /// Writes an MP4 with the settings. If it is too large, writes it again with coarser settings.
    private static func attempt<Decoder: AnimationDecoder & ~Copyable, Settings: MP4EncoderSettings>(
        _ source: ScannedSource<Decoder>, _ settings: Settings, to descriptor: Int32, _ progress: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        let result = try encode(source, settings, to: descriptor, progress)
        let round = result.bytes / source.options.time.loops
        guard let coarser = try settings.coarser(after: round, of: source) else { return result }
        try FileOutput.truncate(descriptor)
        return try encode(source, coarser, to: descriptor, progress)
    }

    static func encode<Decoder: AnimationDecoder & ~Copyable, Settings: MP4EncoderSettings>(
        _ source: ScannedSource<Decoder>, _ settings: Settings, to descriptor: Int32, _ progress: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        let (summary, plan, loops) = (source.summary, source.plan, source.options.time.loops)
        // The encoder must know the last two samples when they come, so they are those of the last two frames.
        let samples = try SampleSource(
            source, chroma: settings.plane.chroma, ending: settings.reordersFrames ? plan.lastButOne : .max)
        let size =
            Settings.needsEvenSides
            ? (samples.width, samples.height) : (samples.pictures.geometry.width, samples.pictures.geometry.height)
        let encoder = try VideoEncoder(
            width: size.0, height: size.1,
            highestRate: AVRational(num: Int32(samples.pictures.timescale), den: Int32(clamping: max(1, plan.shortest))),
            settings: settings, siting: samples.siting)
        var muxer = try MP4Muxer(
            descriptor: descriptor, timescale: samples.pictures.timescale, repeats: loops > 1
        ) { parameters throws(TranscodeError) in
            try encoder.describe(parameters)
            let shortest = min(plan.shortest, plan.lastDuration)
            try stateDuration(of: max(1, shortest), timescale: samples.pictures.timescale, in: parameters)
        }
        progress.begin(total: summary.delays.count)
        let thread = source.transcoder.threads > 1 && summary.delays.count > 1 ? SampleThread(samples) : nil
        defer { thread?.stop() }
        while let sample = try samples.nextSample(on: thread, into: { () throws(TranscodeError) in try encoder.planes() }) {
            muxer.expect(time: sample.time)
            progress.enter(frame: sample.frame)
            // The last frame is thus decoded last. If the source breaks off, the last sample is an earlier one, as the muxer
            // allows.
            let isNearEnd = sample.time >= plan.lastButOne
            let steps = sample.gain * Settings.temporalMeanOffset
            try encoder.encode(decodedInOrder: isNearEnd, coarserBy: steps) { packet throws(TranscodeError) in
                try muxer.append(packet)
                progress.leave()
            }
        }
        let round = samples.pictures.end
        // A repeated still picture is one sample for the whole time, unless this exceeds the longest sample.
        let isStill = samples.samples == 1
        let isOneSample = isStill && round * loops <= Timeline.longestSample
        if isStill && !isOneSample { try encodeAgain(encoder, every: round, rounds: loops, into: &muxer) }
        try encoder.finish { packet throws(TranscodeError) in
            try muxer.append(packet)
            progress.leave()
        }
        let length = try isStill ? muxer.finish(end: round * loops) : muxer.finish(end: round, rounds: loops)
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: size.0, height: size.1,
            frames: samples.pictures.frames, samples: isOneSample ? 1 : samples.samples * loops, duration: round * loops,
            timescale: samples.pictures.timescale, loopCount: summary.loopCount, sourceFormat: Decoder.format,
            isBrokenOff: samples.pictures.isBrokenOff, isUndithered: samples.pictures.isUndithered, bytes: length)
    }

    /// States in the parameters of H.264 how long a picture lasts at least. The encoder is told otherwise for its rate control, and
    /// GStreamer takes each picture for one of the stated duration, regardless of the container.
    private static func stateDuration(
        of units: Int, timescale: Int, in parameters: UnsafeMutablePointer<AVCodecParameters>
    ) throws(TranscodeError) {
        guard parameters.pointee.codec_id == AV_CODEC_ID_H264 else { return }
        var filter: UnsafeMutablePointer<AVBSFContext>?
        defer { av_bsf_free(&filter) }
        // A picture lasts two ticks (ITU-T H.264 §E.2.1).
        var code = av_bsf_list_parse_str("h264_metadata=tick_rate=\(2 * timescale)/\(units)", &filter)
        if code >= 0, let filter {
            code = avcodec_parameters_copy(filter.pointee.par_in, parameters)
            if code >= 0 { code = av_bsf_init(filter) }
            if code >= 0 { code = avcodec_parameters_copy(parameters, filter.pointee.par_out) }
        }
        guard code >= 0 else { throw .library(.openMuxer, code: code) }
    }

    /// Encodes the last picture again for each round after the first. Copies of one packet would be consecutive IDR pictures
    /// with the same `idr_pic_id`, which ITU-T H.264 §7.4.3 forbids.
    private static func encodeAgain<Settings: MP4EncoderSettings>(
        _ encoder: VideoEncoder<Settings>, every round: Int, rounds: Int, into muxer: inout MP4Muxer
    ) throws(TranscodeError) {
        for number in 1..<rounds {
            muxer.expect(time: number * round)
            try encoder.encode(decodedInOrder: true) { packet throws(TranscodeError) in
                try muxer.append(packet)
            }
        }
    }
}
