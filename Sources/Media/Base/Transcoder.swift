/// A conversion: what to make of a source, by which options and within which limits.
///
/// It has no state. It runs on the calling thread, and on x264's where there are several.
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
