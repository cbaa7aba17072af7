/// A source file whose frames have been scanned, and the conversion to run.
struct ScannedSource<Decoder: AnimationDecoder & ~Copyable> {
    /// The whole file. It must stay valid while the source or anything created from it is in use.
    let bytes: UnsafeRawBufferPointer
    let summary: AnimationSummary
    var transcoder: Transcoder

    init(_ transcoder: Transcoder, _ bytes: UnsafeRawBufferPointer) throws(TranscodeError) {
        self.bytes = bytes
        self.transcoder = transcoder
        summary = try AnimationSummary(scanning: bytes, by: Decoder.self, limits: transcoder.limits)
    }

    var options: TranscodeOptions { transcoder.options }
    var limits: MediaLimits { transcoder.limits }

    /// The frames of the requested part.
    var plan: SamplePlan { SamplePlan(options.time, of: summary) }

    var geometry: PictureGeometry { PictureGeometry(width: summary.width, height: summary.height, options: options) }
}
