internal import CMedia
internal import Glibc

/// A producer of one output format from any source format.
protocol OutputMaker {
    /// - Parameters:
    ///   - bytes: The whole source file. It must stay valid during the call.
    ///   - descriptor: An empty, seekable file, open for reading and writing.
    ///   - meter: Receives the progress of a video; other outputs report none.
    static func make<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _ decoder: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32,
        _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult
}

extension OutputMaker {
    /// Produces the output of a file with the decoder of its format.
    static func convert(
        _ transcoder: Transcoder, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        // Each decoder is named here so that the whole pipeline is specialized for it.
        guard let format = SourceFormat(of: bytes) else { throw .notAnAnimation }
        guard format.isAnimation(bytes) else { throw .still(format) }
        guard transcoder.limits.formats.contains(format) else { throw .refused(format) }
        switch format {
        case .gif: return try makeWithinBudget(transcoder, GIFReader.self, bytes, to: descriptor, meter)
        case .apng: return try makeWithinBudget(transcoder, APNGReader.self, bytes, to: descriptor, meter)
        case .webp: return try makeWithinBudget(transcoder, WebPReader.self, bytes, to: descriptor, meter)
        case .mp4, .mov, .webm, .avif:
            // One decoder reads all of these formats.
            do throws(TranscodeError) {
                var result = try makeWithinBudget(transcoder, ClipReader.self, bytes, to: descriptor, meter)
                result.sourceFormat = format
                return result
            } catch {
                throw error.of(format)
            }
        }
    }

    /// Produces the output, at a lower quality if the options limit its bytes.
    private static func makeWithinBudget<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        var transcoder = transcoder
        let options = transcoder.options
        var result = try attempt(transcoder, Decoder.self, bytes, to: descriptor, meter)
        let mostBytes = options.maxBytes ?? MediaLimits.outputBytes
        if let result, result.bytes <= mostBytes || options.maxBytes == nil { return result }
        guard options.maxBytes != nil else { throw .tooLarge(.outputBytes, value: mostBytes + 1, maximum: mostBytes) }
        let content = try ContentProbe.content(of: try ScannedSource<Decoder>(transcoder, bytes))
        var budget = ByteBudget(mostBytes, isDrawing: content.isDrawing)
        let isLossless = options.chosenQuality == nil && transcoder.output.traits.options.contains(.lossless)
        var quality = isLossless ? 100 : options.quality
        while true {
            // Without a result, the file has at least this length.
            let length = result?.bytes ?? MediaLimits.outputBytes + 1
            guard let lower = try budget.next(after: length, at: quality) else { break }
            quality = lower
            transcoder.options.quality = quality
            try FileOutput.truncate(descriptor)
            result = try attempt(transcoder, Decoder.self, bytes, to: descriptor, meter)
        }
        guard let result else { throw .tooLarge(.outputBytes, value: mostBytes + 1, maximum: mostBytes) }
        return result
    }

    /// Produces the output once; returns nil if the file would be longer than the process may write.
    private static func attempt<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, _ meter: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult? {
        do throws(TranscodeError) {
            return try make(transcoder, Decoder.self, bytes, to: descriptor, meter)
        } catch {
            guard case .failed(let stage, let code) = error, stage == .mux || stage == .write, code == gifreel_averror(EFBIG)
            else { throw error }
            return nil
        }
    }
}
