extension Transcoder {
    /// Makes the MP4 once, on one thread however large it becomes, and tells what each stage took.
    ///
    /// For measurements: it reads the thread's clock at every border between two stages, some hundred nanoseconds each.
    ///
    /// - Parameters:
    ///   - gif: The whole file; stays in place during the call.
    ///   - descriptor: An empty, seekable file, open for reading and writing.
    /// - Throws: ``TranscodeError``.
    package func stageCosts(
        of gif: UnsafeRawBufferPointer, to descriptor: Int32
    ) throws(TranscodeError) -> StageCosts {
        var meter = CostMeter()
        let summary = try GIFSummary(scanning: gif, limits: limits)
        meter.worked(at: .scan)
        let settings = H264Settings(rateFactor: H264Settings.rateFactor(quality: options.quality), threads: 1)
        let result = try encode(gif, summary, settings, to: descriptor, &meter)
        return meter.finished(bytes: result.bytes)
    }
}
