internal import CAV
internal import Glibc

/// Makes an MP4, a poster or a list of facts of a GIF.
///
/// Synchronous and without state of its own; runs on the calling thread (and x264's, where there are several).
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

    /// The name by which the way an output is made goes into its object's name.
    package static func version(of output: OutputFormat) -> String {
        switch output {
        case .mp4: H264Settings.version
        case .jpg, .png, .webp: PosterEncoder.version
        case .facts: "facts-1"
        }
    }

    /// Keeps libav from writing to standard error; errors come back as values.
    package static func silenceLibraries() {
        av_log_set_level(AV_LOG_QUIET)
    }

    /// Makes the output.
    ///
    /// - Parameters:
    ///   - gif: The whole file; stays in place during the call.
    ///   - descriptor: An empty, seekable file, open for reading and writing. It is written by position and stays open.
    /// - Throws: ``TranscodeError``; the file's contents are then worthless.
    package func convert(_ gif: UnsafeRawBufferPointer, to descriptor: Int32) throws(TranscodeError) -> TranscodeResult {
        switch output {
        case .mp4: try makeVideo(gif, to: descriptor)
        case .jpg, .png, .webp: try makePoster(gif, to: descriptor)
        case .facts: try writeFacts(gif, to: descriptor)
        }
    }
}
