/// Writes the facts of an animation: the delays of its whole frames as they are shown, in units of the result's timescale, eight bytes
/// each (little-endian).
///
/// Frames are decoded only if their headers do not determine the facts: whether a transparent pixel is ever visible, and whether
/// the last frame of a truncated file is complete.
package enum FactsOutput: OutputMaker {
    /// Bytes of a delay.
    package static let delayLength = MemoryLayout<UInt64>.size
    static let version = "facts-2"

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
            guard walk.frames > 0 else { throw .incomplete(Decoder.format) }
            if summary.isBrokenOff { frames = walk.frames }
        }
        let delays = summary.delays.prefix(frames).map { FrameClock.shownDelay($0, timescale: summary.timescale) }
        let words = delays.map { UInt64($0).littleEndian }
        let written: Result<Void, TranscodeError> = words.withUnsafeBytes { bytes in
            do throws(TranscodeError) {
                return .success(try FileOutput.write(bytes, to: descriptor))
            } catch {
                return .failure(error)
            }
        }
        try written.get()
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: summary.width, height: summary.height,
            frames: frames, samples: 0, duration: delays.reduce(0, +), timescale: summary.timescale,
            loopCount: summary.loopCount, sourceFormat: Decoder.format, isTransparent: isTransparent,
            hasAlpha: summary.hasAlpha, bytes: words.count * delayLength)
    }

    /// Inspects a worker's file: its length. Values are checked when they are read; see ``delays(_:)``.
    static func inspect(_ bytes: OutputBytes, _ claim: OutputClaim) throws(OutputFlaw) {
        guard bytes.count == delayLength * claim.frames else { throw .wrongLength }
    }

    /// Reads the delays from a worker's file; nil for a value out of range.
    package static func delays(_ file: [UInt8]) -> [Int]? {
        var delays: [Int] = []
        delays.reserveCapacity(file.count / delayLength)
        for start in stride(from: 0, to: file.count - delayLength + 1, by: delayLength) {
            let raw = file[start..<start + delayLength].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            guard let delay = Int(exactly: raw), FactRange.duration.contains(delay) else { return nil }
            delays.append(delay)
        }
        return delays
    }
}
