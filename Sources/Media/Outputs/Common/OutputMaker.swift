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
        // Each decoder is named here, so that the whole pipeline is compiled for it.
        guard let format = SourceFormat(of: bytes) else { throw .notAGIF }
        guard format.isAnimation(bytes) else { throw .still(format) }
        return switch format {
        case .gif: try make(transcoder, GIFReader.self, bytes, to: descriptor, meter)
        case .apng: try make(transcoder, APNGReader.self, bytes, to: descriptor, meter)
        case .webp: try make(transcoder, WebPReader.self, bytes, to: descriptor, meter)
        }
    }
}
