internal import CMedia
internal import Glibc

extension Transcoder {
    /// Prepares libraries for a process that will be confined. Silences libav on standard error, because errors are returned as
    /// values. Makes the C library read the time zone now instead of when Little CMS asks for the date of a profile.
    package static func prepareLibraries() {
        av_log_set_level(AV_LOG_QUIET)
        tzset()
    }

    /// Creates the output. Blocks.
    ///
    /// - Parameters:
    ///   - source: The whole file; stays in place during the call.
    ///   - descriptor: An empty, seekable file, open for reading and writing. It is written by position and stays open.
    ///   - onProgress: Called on this thread after each encoded picture of a video. The number never falls: it pauses during a
    ///     second attempt at a result that was too large.
    /// - Throws: ``TranscodeError``. The file's contents are then undefined.
    package func convert(
        _ source: UnsafeRawBufferPointer, to descriptor: Int32, onProgress: ((FrameProgress) -> Void)? = nil
    ) throws(TranscodeError) -> TranscodeResult {
        try output.traits.make(self, source, descriptor, FrameMeter(onProgress))
    }
}
