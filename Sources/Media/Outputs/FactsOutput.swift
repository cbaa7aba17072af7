/// Writes the facts of an animation: the shown delays of its complete frames in units of the result's timescale, eight bytes
/// each (little-endian), the ``Placeholder`` of its first frame, and on request each ``Fingerprint`` or the ``Flashes``.
///
/// Later frames of a GIF are decoded only if their headers do not determine the facts: whether a transparent pixel is ever
/// visible, and whether the last frame of a truncated file is complete. The other formats are decoded completely, because a
/// frame that cannot be decoded ends the animation.
package enum FactsOutput: OutputMaker {
    /// Bytes per delay.
    package static let delayLength = MemoryLayout<UInt64>.size
    static let version = "facts-8"

    static func make<Decoder: AnimationDecoder & ~Copyable>(
        _ transcoder: Transcoder, _: Decoder.Type, _ bytes: UnsafeRawBufferPointer, to descriptor: Int32,
        _: FrameMeter
    ) throws(TranscodeError) -> TranscodeResult {
        let summary = try AnimationSummary(scanning: bytes, by: Decoder.self, limits: transcoder.limits)
        // The shown delays and their bytes, and as much again while the byte array grows.
        try HeapBuffer.check(bytes: summary.delays.count * 4 * delayLength + 4096)
        var delays = summary.delays.map(summary.shownDelay)
        var requested = RequestedFacts(transcoder.options.facts, summary, delays)
        var walk = try FrameWalk<Decoder>(bytes, limits: transcoder.limits)
        guard try walk.next() else { throw .incomplete(Decoder.format) }
        requested.look(at: walk.canvas, nil)
        let placeholder = try Placeholder(walk.canvas)
        var isTransparent = walk.canvas.hasTransparency(in: nil)
        let decodesAll = summary.ending != .complete || Decoder.format != .gif
        var hasNext = true
        while hasNext, decodesAll || !requested.isComplete || summary.hasTransparency && !isTransparent {
            hasNext = try walk.next()
            guard hasNext else { break }
            requested.look(at: walk.canvas, walk.changed)
            isTransparent = isTransparent || walk.canvas.hasTransparency(in: walk.changed)
        }
        // Outputs omit the frames after a damaged frame.
        if !hasNext, walk.frames < delays.count {
            delays.removeSubrange(walk.frames...)
            // The number of frames determines which pictures are described.
            requested = RequestedFacts(transcoder.options.facts, summary, delays)
            var walk = try FrameWalk<Decoder>(bytes, limits: transcoder.limits)
            while !requested.isComplete {
                guard try walk.next() else { throw .incomplete(Decoder.format) }
                requested.look(at: walk.canvas, walk.frames == 1 ? nil : walk.changed)
            }
        }
        let frames = delays.count
        var file: [UInt8] = []
        for delay in delays { withUnsafeBytes(of: UInt64(delay).littleEndian) { file += $0 } }
        file += placeholder.bytes + requested.bytes
        try file.span.bytes.withUnsafeBytes { bytes throws(TranscodeError) in try FileOutput.write(bytes, to: descriptor) }
        return TranscodeResult(
            sourceWidth: summary.width, sourceHeight: summary.height, width: summary.width, height: summary.height,
            frames: frames, samples: 0, duration: delays.reduce(0, +), timescale: summary.timescale,
            loopCount: summary.loopCount, sourceFormat: Decoder.format, isTransparent: isTransparent,
            hasAlpha: summary.hasAlpha,
            isBrokenOff: summary.ending == .brokenOff || frames < summary.delays.count, bytes: file.count)
    }

    /// Inspects a worker's file: its length, the placeholder, and the requested facts. ``delays(_:)`` checks the delays.
    static func inspect(_ bytes: OutputBytes, _ claim: OutputClaim) throws(OutputFlaw) {
        let length =
            switch claim.facts {
            case .fingerprints: Fingerprint.byteCount(ofFrames: claim.frames)
            case .flashes: Flashes.byteCount
            case nil: 0
            }
        guard bytes.count == delayLength * claim.frames + Placeholder.byteCount + length else { throw .wrongLength }
        let end = try bytes.read(delayLength * claim.frames..<bytes.count).rest
        let requested = end.dropFirst(Placeholder.byteCount)
        guard Placeholder(end.prefix(Placeholder.byteCount)) != nil,
            claim.facts == .flashes ? Flashes(requested) != nil : Fingerprint.list(requested) != nil
        else { throw .malformed }
    }

    /// Splits a worker's file into its parts.
    package static func parts(
        _ file: [UInt8], frames: Int
    ) -> (delays: ArraySlice<UInt8>, placeholder: ArraySlice<UInt8>, requested: ArraySlice<UInt8>) {
        let delays = file.prefix(delayLength * frames)
        let rest = file.dropFirst(delays.count)
        return (delays, rest.prefix(Placeholder.byteCount), rest.dropFirst(Placeholder.byteCount))
    }

    /// Reads the delays at the start of a worker's file; nil for a value out of range.
    package static func delays(_ file: ArraySlice<UInt8>) -> [Int]? {
        var delays: [Int] = []
        delays.reserveCapacity(file.count / delayLength)
        for start in stride(from: file.startIndex, to: file.endIndex - delayLength + 1, by: delayLength) {
            let raw = file[start..<start + delayLength].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            guard let delay = Int(exactly: raw), FactRange.duration.contains(delay) else { return nil }
            delays.append(delay)
        }
        return delays
    }
}

/// The facts that are computed from an animation's pictures on request.
private struct RequestedFacts {
    private let kind: TranscodeOptions.Facts?
    private let delays: [Int]
    /// The remaining frames to fingerprint, in order.
    private var frames: ArraySlice<Int> = []
    private var fingerprints: [Fingerprint] = []
    private var flashes: FlashCounter?
    /// The number of pictures so far.
    private var pictures = 0

    /// - Parameter delays: The shown delays of all complete frames.
    init(_ kind: TranscodeOptions.Facts?, _ summary: AnimationSummary, _ delays: [Int]) {
        self.kind = kind
        self.delays = delays
        switch kind {
        case .fingerprints: frames = Fingerprint.frames(of: delays)[...]
        case .flashes:
            flashes = FlashCounter(
                width: summary.width, height: summary.height, timescale: summary.timescale,
                plays: PlayCount.of(loopCount: summary.loopCount))
        case nil: break
        }
    }

    /// Whether no further picture is needed.
    var isComplete: Bool {
        switch kind {
        case .fingerprints: frames.isEmpty
        case .flashes: pictures == delays.count
        case nil: true
        }
    }

    /// Examines the next picture.
    ///
    /// - Parameter changed: The changes since the previous picture; nil for everything.
    mutating func look(at canvas: borrowing Canvas, _ changed: Rectangle?) {
        if pictures < delays.count { flashes?.show(canvas, changed, for: delays[pictures]) }
        if frames.first == pictures {
            frames.removeFirst()
            fingerprints.append(Fingerprint(canvas))
        }
        pictures += 1
    }

    /// The encoding in a worker's file, after the last picture.
    var bytes: [UInt8] { flashes?.flashes.bytes ?? fingerprints.flatMap(\.bytes) }
}
