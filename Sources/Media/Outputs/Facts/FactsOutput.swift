/// Writes the facts of an animation: the delays of its whole frames as they are shown, in hundredths of a second, two bytes each
/// (little-endian).
///
/// Frames are decoded only if their headers do not determine the facts: whether a transparent pixel is ever visible, and whether
/// the last frame of a truncated file is complete.
enum FactsOutput: OutputMaker {
    static let version = "facts-1"

    static func make<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32
    ) throws(TranscodeError) -> TranscodeResult {
        let summary = try AnimationSummary(scanning: bytes, by: Decoder.self, limits: transcoder.limits)
        var frames = summary.delays.count
        var isTransparent = false
        if summary.hasTransparency || summary.isBrokenOff {
            var walk = try FrameWalk<Decoder>(bytes, limits: transcoder.limits)
            while try walk.next() {
                isTransparent = isTransparent || walk.canvas.hasTransparency(in: nil)
                if isTransparent && !summary.isBrokenOff { break }
            }
            guard walk.frames > 0 else { throw .incomplete }
            if summary.isBrokenOff { frames = walk.frames }
        }
        let delays = summary.delays.prefix(frames).map { UInt16(FrameClock.shownDelay(Int($0))).littleEndian }
        let written: Result<Void, TranscodeError> = delays.withUnsafeBytes { bytes in
            do throws(TranscodeError) {
                return .success(try FileOutput.write(bytes, to: descriptor))
            } catch {
                return .failure(error)
            }
        }
        try written.get()
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: summary.width, height: summary.height,
            frames: frames, samples: 0, duration: delays.reduce(0) { $0 + Int(UInt16(littleEndian: $1)) },
            loopCount: summary.loopCount, isTransparent: isTransparent, bytes: delays.count * MemoryLayout<UInt16>.stride)
    }

    /// Inspects a worker's file: two bytes per frame. Every value is a valid delay.
    static func inspect(_ bytes: OutputBytes, _ claim: OutputClaim) throws(OutputFlaw) {
        guard bytes.count == 2 * claim.frames else { throw .wrongLength }
    }
}
