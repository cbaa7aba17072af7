/// The parameters of a conversion: output format, options and limits.
///
/// It has no state. The conversion runs on the calling thread. With more than one encoder thread, it starts others.
///
/// ```
/// var options = TranscodeOptions()
/// options.quality = 80
/// let result = try Transcoder(output: .webm, options: options).convert(gif, to: descriptor)
/// print(result.width, result.height, result.samples)
/// ```
package struct Transcoder: Sendable, Equatable {
    package var output: OutputFormat
    package var options: TranscodeOptions
    package var limits: MediaLimits
    /// The threads available to this job. Above 1, pictures are composed on a separate thread; the bytes are the same.
    package var threads: Int

    package init(
        output: OutputFormat = .mp4, options: TranscodeOptions = .standard, limits: MediaLimits = .standard,
        threads: Int = 1
    ) {
        self.output = output
        self.options = options
        self.limits = limits
        self.threads = threads
    }
}
