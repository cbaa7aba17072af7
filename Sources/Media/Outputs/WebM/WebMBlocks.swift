/// Inspects the clusters of a WebM in order: each picture is later than the previous one, and the last ends with the video.
struct WebMBlocks {
    let clock: WebMClock
    let claim: OutputClaim
    let hasAlpha: Bool
    let chroma: ChromaFormat
    /// The duration of every block, in ticks; nil if the track states none.
    let durationOfEach: Int?

    private var samples = 0
    /// The time of the last block, and its duration if stated by it or the track.
    private var time = -1
    private var duration: Int?
    /// The shortest time between two pictures, or from the last one to the end, in ticks.
    private var shortestInTicks = Int.max
    /// The bytes of all pictures, of the last ones, and the most in sequence.
    private var (bytes, recentBytes, mostBytes): (Int, [Int], Int) = (0, [], 0)
    /// The positions and times of the clusters that begin with a keyframe.
    private var keys: [(position: Int, time: Int)] = []

    init(clock: WebMClock, claim: OutputClaim, hasAlpha: Bool, _ chroma: ChromaFormat, durationOfEach: Int?) {
        self.clock = clock
        self.claim = claim
        self.hasAlpha = hasAlpha
        self.chroma = chroma
        self.durationOfEach = durationOfEach
    }

    mutating func inspect(_ cluster: EBMLSpan, of bytes: OutputWindow, segment: Range<Int>) throws(OutputFlaw) {
        var walk = EBMLWalk(bytes, cluster.range)
        guard let first = try walk.next(), first.element == .timestamp else { throw .missingPart }
        let start = try first.number(in: bytes)
        var isFirst = true
        while let part = try walk.next() {
            let block = try Block(part, bytes, hasAlpha: hasAlpha, chroma)
            let next = start + block.offset
            guard next > time, samples < claim.samples else { throw .wrongSampleCount }
            guard samples > 0 || (next == 0 && block.isKey) else { throw .wrongDuration }
            // A player derives a block's duration from the next block, so a stated duration must agree.
            if let duration { guard time + duration == next else { throw .wrongDuration } }
            if samples > 0 { shortestInTicks = min(shortestInTicks, next - time) }
            if isFirst && block.isKey { keys.append((cluster.start - segment.lowerBound, next)) }
            isFirst = false
            samples += 1
            self.bytes += block.bytes
            recentBytes = recentBytes.suffix(VP9Load.window - 1) + [block.bytes]
            mostBytes = max(mostBytes, recentBytes.reduce(0, +))
            time = next
            duration = block.duration ?? durationOfEach
            guard durationOfEach == nil || duration == durationOfEach else { throw .wrongDuration }
        }
        guard !isFirst else { throw .malformed }
    }

    /// Checks what is known only at the end.
    func finish() throws(OutputFlaw) {
        guard samples == claim.samples else { throw .wrongSampleCount }
        guard let duration, time + duration == clock.ticks(claim.duration) else { throw .wrongDuration }
    }

    /// What the pictures demand of a decoder. Known at the end.
    var load: VP9Load {
        let (product, overflow) = min(shortestInTicks, duration ?? .max).multipliedReportingOverflow(by: clock.scale)
        let bits = Double(8 * bytes) * Double(claim.timescale) / Double(max(1, claim.duration))
        return VP9Load(
            shortest: overflow ? .max : max(1, product), bitsPerSecond: Int(min(bits, Double(Int32.max))),
            mostBits: 8 * mostBytes)
    }

    /// Checks that the index lists every cluster that begins with a keyframe, with its position and time.
    func inspectCues(_ cues: EBMLSpan, of bytes: OutputWindow) throws(OutputFlaw) {
        var walk = EBMLWalk(bytes, cues.range)
        for key in keys {
            guard let span = try walk.next(), span.element == .cuePoint else { throw .missingPart }
            let point = try span.contents(of: bytes)
            let place = try point.children(.cueTrackPositions)
            guard try point.number(.cueTime) == key.time, try place.number(.cueTrack) == 1,
                try place.number(.cueClusterPosition) == key.position, point.count == 2, place.count == 2
            else { throw .malformed }
        }
        guard try walk.next() == nil else { throw .malformed }
    }

    /// A block: one picture.
    private struct Block {
        let offset: Int
        let isKey: Bool
        /// Those of the picture without its alpha.
        let bytes: Int
        /// In ticks; nil for a block outside a group.
        var duration: Int?

        init(_ part: EBMLSpan, _ file: OutputWindow, hasAlpha: Bool, _ chroma: ChromaFormat) throws(OutputFlaw) {
            switch part.element {
            case .simpleBlock:
                guard !hasAlpha else { throw .missingPart }
                let flags: Int
                (offset, flags) = try Self.head(part.range, file, chroma)
                guard flags & 0x7f == 0 else { throw .malformed }
                isKey = flags == 0x80
                bytes = part.range.count - Self.headLength
            case .blockGroup:
                var walk = EBMLWalk(file, part.range)
                guard let block = try walk.next(), block.element == .block else { throw .missingPart }
                let flags: Int
                (offset, flags) = try Self.head(block.range, file, chroma)
                guard flags == 0 else { throw .malformed }
                var next = try walk.next()
                if hasAlpha {
                    guard let additions = next, additions.element == .blockAdditions else { throw .missingPart }
                    try Self.inspectAlpha(additions, file)
                    next = try walk.next()
                }
                guard let length = next, length.element == .blockDuration else { throw .missingPart }
                duration = try length.number(in: file)
                let reference = try walk.next()
                guard reference == nil || reference?.element == .referenceBlock, try walk.next() == nil else {
                    throw .malformed
                }
                isKey = reference == nil
                bytes = block.range.count - Self.headLength
            default: throw .malformed
            }
        }

        /// Track, time and flags.
        private static let headLength = 4

        /// Reads the time and the flags in front of a picture, which must be VP9.
        private static func head(
            _ range: Range<Int>, _ bytes: OutputWindow, _ chroma: ChromaFormat
        ) throws(OutputFlaw) -> (offset: Int, flags: Int) {
            guard range.count > headLength else { throw .malformed }
            var head = try bytes.read(range.lowerBound..<range.lowerBound + headLength + 1)
            guard try head.number(1) == 0x81 else { throw .malformed }
            let offset = try head.number(2)
            guard offset < 1 << 15 else { throw .malformed }
            let flags = try head.number(1)
            try inspectPicture(try head.number(1), chroma)
            return (offset, flags)
        }

        /// Checks the first byte of a picture or superframe: the frame marker, and profile 0, or 1 for 4:4:4 (VP9 bitstream
        /// specification §6.2).
        private static func inspectPicture(_ first: Int, _ chroma: ChromaFormat) throws(OutputFlaw) {
            guard first & 0xf0 == (chroma == .half ? 0x80 : 0xa0) else { throw .wrongCodec }
        }

        private static func inspectAlpha(_ additions: EBMLSpan, _ bytes: OutputWindow) throws(OutputFlaw) {
            var walk = EBMLWalk(bytes, additions.range)
            guard let more = try walk.next(), more.element == .blockMore, try walk.next() == nil else { throw .malformed }
            var parts = EBMLWalk(bytes, more.range)
            guard let number = try parts.next(), number.element == .blockAddID,
                try number.number(in: bytes) == WebMWriter.alphaAddition,
                let addition = try parts.next(), addition.element == .blockAdditional, !addition.range.isEmpty,
                try parts.next() == nil
            else { throw .malformed }
            var first = try bytes.read(addition.range.lowerBound..<addition.range.lowerBound + 1)
            try inspectPicture(try first.number(1), .half)
        }
    }
}
