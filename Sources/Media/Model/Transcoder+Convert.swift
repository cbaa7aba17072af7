internal import CMedia
internal import Glibc

extension Transcoder {
    /// Prepares libraries for a process that will be confined. libav is kept from writing to standard error: errors are returned as
    /// values. The C library reads the time zone once, which it otherwise does when Little CMS asks for the date of a profile.
    package static func prepareLibraries() {
        av_log_set_level(AV_LOG_QUIET)
        tzset()
    }

    /// Makes the output. Blocks.
    ///
    /// - Parameters:
    ///   - source: The whole file; stays in place during the call.
    ///   - descriptor: An empty, seekable file, open for reading and writing. It is written by position and stays open.
    ///   - onProgress: Called on this thread after each encoded picture of a video. A second attempt at a result that was too
    ///     large counts again from the beginning.
    /// - Throws: ``TranscodeError``. The file's contents are then undefined.
    package func convert(
        _ source: UnsafeRawBufferPointer, to descriptor: Int32, onProgress: ((FrameProgress) -> Void)? = nil
    ) throws(TranscodeError) -> TranscodeResult {
        try output.traits.make(self, source, descriptor, FrameMeter(onProgress))
    }
}
