/// The parameters of a conversion: output format, options and limits.
///
/// It has no state. The conversion runs on the calling thread. With more than one encoder thread, it starts others.
package struct Transcoder: Sendable, Equatable {
    package var output: OutputFormat
    package var options: TranscodeOptions
    package var limits: MediaLimits
    /// Encoder threads; above 1 the bytes that come out may differ, the picture hardly.
    package var threads: Int

    package init(
        output: OutputFormat = .mp4, options: TranscodeOptions = TranscodeOptions(), limits: MediaLimits = MediaLimits(),
        threads: Int = 1
    ) {
        self.output = output
        self.options = options
        self.limits = limits
        self.threads = threads
    }
}
