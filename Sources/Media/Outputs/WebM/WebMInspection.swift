/// Inspects a WebM (RFC 9559): one segment that fills the file, whose parts fill it in the order in which ``WebMWriter``
/// arranges them; one VP9 track of the claimed size; and blocks of the claimed number and times.
enum WebMInspection {
    static func inspect(_ file: OutputBytes, _ claim: OutputClaim) throws(OutputFlaw) -> String? {
        let bytes = OutputWindow(file)
        var walk = EBMLWalk(bytes, 0..<bytes.count)
        guard let header = try walk.next(), header.element == .header else { throw .wrongSignature }
        try inspectHeader(try header.contents(of: bytes))
        guard let segment = try walk.next(), segment.element == .segment else { throw .missingPart }
        guard try walk.next() == nil else { throw .malformed }
        return try inspectSegment(bytes, segment.range, claim)
    }

    private static func inspectHeader(_ contents: EBMLContents) throws(OutputFlaw) {
        let expected: [(EBMLElement, Int)] = [
            (.version, 1), (.readVersion, 1), (.maxIDLength, 4), (.maxSizeLength, 8), (.docTypeVersion, 4),
            (.docTypeReadVersion, 2),
        ]
        for (element, value) in expected {
            guard try contents.number(element) == value else { throw .wrongSignature }
        }
        guard try contents.only(.docType).rest.elementsEqual("webm".utf8), contents.count == expected.count + 1 else {
            throw .wrongSignature
        }
    }

    private static func inspectSegment(
        _ bytes: OutputWindow, _ range: Range<Int>, _ claim: OutputClaim
    ) throws(OutputFlaw) -> String {
        var walk = EBMLWalk(bytes, range)
        let order: [EBMLElement] = [.seekHead, .info, .tracks, .cues]
        var heads: [EBMLSpan] = []
        for element in order {
            guard let head = try walk.next(), head.element == element else { throw .missingPart }
            heads.append(head)
        }
        try inspectSeekHead(try heads[0].contents(of: bytes), heads, segment: range)
        let clock = try inspectInformation(try heads[1].contents(of: bytes), claim)
        let (hasAlpha, chroma, durationOfEach) = try inspectTracks(try heads[2].contents(of: bytes), claim)
        guard (durationOfEach ?? 0) % clock.scale == 0 else { throw .wrongDuration }
        var blocks = WebMBlocks(
            clock: clock, claim: claim, hasAlpha: hasAlpha, chroma, durationOfEach: durationOfEach.map { $0 / clock.scale })
        while let cluster = try walk.next() {
            guard cluster.element == .cluster else { throw .malformed }
            try blocks.inspect(cluster, of: bytes, segment: range)
        }
        try blocks.finish()
        try blocks.inspectCues(heads[3], of: bytes)
        // The level is derived from the pictures, because the stream does not declare it. Without further fields, chroma is
        // 4:2:0 (VP9 codec ISO media file format binding, codecs parameter). 4:4:4 states chroma, primaries, transfer, matrix
        // and range.
        let level = VP9Level.of(width: claim.width, height: claim.height, blocks.load).number
        return chroma == .half ? "vp09.00.\(level).08" : "vp09.01.\(level).08.03.01.13.01.00"
    }

    /// Checks the positions in the index of parts.
    private static func inspectSeekHead(
        _ contents: EBMLContents, _ heads: [EBMLSpan], segment: Range<Int>
    ) throws(OutputFlaw) {
        guard contents.count == heads.count - 1 else { throw .malformed }
        for (index, head) in heads.dropFirst().enumerated() {
            let seek = try contents.children(.seek, at: index)
            guard try seek.only(.seekID).rest.elementsEqual(head.element.bytes),
                try seek.number(.seekPosition) == head.start - segment.lowerBound, seek.count == 2
            else { throw .malformed }
        }
    }

    /// Returns the clock that the segment states.
    private static func inspectInformation(
        _ contents: EBMLContents, _ claim: OutputClaim
    ) throws(OutputFlaw) -> WebMClock {
        guard let clock = WebMClock(timescale: claim.timescale, scale: try contents.number(.timestampScale)) else {
            throw .wrongDuration
        }
        guard try contents.float(.duration) == Double(clock.ticks(claim.duration)) else { throw .wrongDuration }
        _ = try contents.only(.muxingApp)
        _ = try contents.only(.writingApp)
        guard contents.count == 4 else { throw .malformed }
        return clock
    }

    /// Inspects the only track: VP9 of the claimed size, without anything that a player must fetch or decrypt. Returns whether
    /// it has alpha, its chroma, and the duration of every picture in nanoseconds, if stated.
    private static func inspectTracks(
        _ contents: EBMLContents, _ claim: OutputClaim
    ) throws(OutputFlaw) -> (hasAlpha: Bool, chroma: ChromaFormat, durationOfEach: Int?) {
        let entry = try contents.children(.trackEntry, at: 0)
        guard contents.count == 1 else { throw .malformed }
        guard try entry.number(.trackNumber) == 1, try entry.number(.trackType) == 1, try entry.number(.flagLacing) == 0
        else { throw .malformed }
        _ = try entry.number(.trackUID)
        _ = try entry.only(.language)
        guard try entry.only(.codecID).rest.elementsEqual("V_VP9".utf8) else { throw .wrongCodec }
        let video = try entry.children(.video)
        guard try video.number(.pixelWidth) == claim.width, try video.number(.pixelHeight) == claim.height else {
            throw .wrongSize
        }
        let hasAlpha = video.has(.alphaMode)
        if hasAlpha {
            guard try video.number(.alphaMode) == 1, try entry.number(.maxBlockAdditionID) == WebMWriter.alphaAddition else {
                throw .malformed
            }
        }
        let colour = try video.children(.colour)
        let chroma = try colour.number(.chromaSubsamplingHorizontal) == 0 && !hasAlpha ? ChromaFormat.full : .half
        for (element, value) in [
            (EBMLElement.matrixCoefficients, 1), (.bitsPerChannel, 8), (.range, 1), (.transferCharacteristics, 13),
            (.primaries, 1), (.chromaSubsamplingHorizontal, chroma.shift), (.chromaSubsamplingVertical, chroma.shift),
        ] {
            guard try colour.number(element) == value else { throw .wrongCodec }
        }
        if chroma == .half {
            guard try colour.number(.chromaSitingVertical) == 2, (1...2).contains(try colour.number(.chromaSitingHorizontal))
            else { throw .wrongCodec }
        }
        let durationOfEach: Int? = try entry.has(.defaultDuration) ? entry.number(.defaultDuration) : nil
        guard entry.count == (hasAlpha ? 8 : 7) + (durationOfEach == nil ? 0 : 1), video.count == (hasAlpha ? 4 : 3),
            colour.count == (chroma == .half ? 9 : 7)
        else { throw .malformed }
        return (hasAlpha, chroma, durationOfEach)
    }
}
