internal import SystemIO

/// Inspects an MP4 (ISO/IEC 14496-12): `ftyp`, `moov` and `mdat` fill the file in this order, and the only track has the
/// claimed codec, size, duration and samples, all in `mdat`. Boxes that the muxer does not write are refused by name, because
/// players act on boxes that the inspection does not read.
enum MP4Inspection {
    static func inspect(_ bytes: OutputBytes, _ claim: OutputClaim) throws(OutputFlaw) -> String? {
        let outline = try MP4Outline(bytes, samples: claim.samples)
        guard outline.parts.map(\.kind) == ["ftyp", "moov", "mdat"] else { throw .missingPart }
        let movie = try children(of: MP4Box(kind: "moov", content: try outline.contents(of: "moov")))
        let media = try children(of: try MP4Box.only("mdia", in: children(of: try MP4Box.only("trak", in: movie))))
        try inspectHeader(try MP4Box.only("mdhd", in: media), claim)
        let information = try children(of: try MP4Box.only("minf", in: media))
        try inspectReferences(try MP4Box.only("dref", in: children(of: try MP4Box.only("dinf", in: information))))
        let table = try children(of: try MP4Box.only("stbl", in: information))
        let codecs = try inspectEntry(try MP4Box.only("stsd", in: table), claim)
        try inspectTimes(try MP4Box.only("stts", in: table), claim)
        try MP4SampleTable(table, samples: claim.samples).inspect(within: try outline.range(of: "mdat"))
        return codecs
    }

    /// The kinds of boxes that are allowed in each kind.
    private static let allowed: [String: Set<String>] = [
        "moov": ["mvhd", "trak"], "trak": ["tkhd", "mdia"], "mdia": ["mdhd", "hdlr", "minf"],
        "minf": ["vmhd", "dinf", "stbl"], "dinf": ["dref"],
        "stbl": ["stsd", "stts", "ctts", "stss", "sdtp", "stsc", "stsz", "stco", "co64"],
        "avc1": ["avcC", "colr"], "av01": ["av1C", "colr"],
    ]

    /// Returns the children of a box, after checking that each kind is allowed.
    private static func children(of box: MP4Box) throws(OutputFlaw) -> [MP4Box] {
        try checked(try box.children(), in: box.kind)
    }

    private static func checked(_ boxes: [MP4Box], in kind: String) throws(OutputFlaw) -> [MP4Box] {
        let allowed = Self.allowed[kind] ?? []
        guard boxes.allSatisfy({ allowed.contains($0.kind) }) else { throw .unknownPart }
        return boxes
    }

    /// Inspects `mdhd`: timescale and duration (§8.4.2).
    static func inspectHeader(_ box: MP4Box, _ claim: OutputClaim) throws(OutputFlaw) {
        var (version, content) = try box.versioned()
        try content.skip(version == 1 ? 16 : 8)
        let timescale = try content.number(4)
        if version == 1 { guard try content.number(1) == 0 else { throw .wrongDuration } }
        let duration = try content.number(version == 1 ? 7 : 4)
        guard timescale == claim.timescale, duration == claim.duration else { throw .wrongDuration }
    }

    /// Inspects `dref`: all data lies in this file (§8.7.2), so that no player fetches anything.
    static func inspectReferences(_ box: MP4Box) throws(OutputFlaw) {
        var (_, content) = try box.versioned()
        try content.skip(4)
        for reference in try MP4Box.all(in: content) {
            var content = reference.content
            guard reference.kind == "url ", try content.number(4) == 1, content.isAtEnd else { throw .foreignData }
        }
    }

    /// Inspects `stsd`: one entry of the claimed codec and size (§8.5.2, §12.1.3). Returns the entry's name in `codecs` (RFC
    /// 6381).
    private static func inspectEntry(_ box: MP4Box, _ claim: OutputClaim) throws(OutputFlaw) -> String {
        let kind: String
        switch claim.codec {
        case .h264: kind = "avc1"
        case .av1: kind = "av01"
        case nil: throw .wrongCodec
        }
        let boxes = try checked(try entry(of: kind, in: box, claim), in: kind)
        if kind == "avc1" {
            return kind + "." + (try inspectH264(try MP4Box.only("avcC", in: boxes).content))
        } else {
            return kind + "." + (try inspectAV1(try MP4Box.only("av1C", in: boxes).content))
        }
    }

    /// Returns the boxes in the only entry of `stsd`, which must have this kind and the claimed size.
    static func entry(of kind: String, in box: MP4Box, _ claim: OutputClaim) throws(OutputFlaw) -> [MP4Box] {
        var (_, content) = try box.versioned()
        guard try content.number(4) == 1 else { throw .wrongCodec }
        let entries = try MP4Box.all(in: content)
        guard entries.count == 1, let entry = entries.first, entry.kind == kind else { throw .wrongCodec }
        var fields = entry.content
        try fields.skip(24)
        guard try fields.number(2) == claim.width, try fields.number(2) == claim.height else { throw .wrongSize }
        try fields.skip(50)
        return try MP4Box.all(in: fields)
    }

    /// Inspects `avcC`: version 1, and a profile that every player supports (ISO/IEC 14496-15 §5.3.3.1). Returns profile,
    /// constraints and level in hexadecimal digits (RFC 6381 §3.3).
    private static func inspectH264(_ configuration: ByteReader) throws(OutputFlaw) -> String {
        var configuration = configuration
        guard try configuration.number(1) == 1 else { throw .wrongCodec }
        let stream = try configuration.take(3)
        guard H264Profile.playable.contains(stream.first ?? 0) else { throw .wrongCodec }
        return Hex.encode(stream)
    }

    /// Inspects `av1C`: version 1, Main profile in 4:2:0 or High profile in 4:4:4, Main tier, 8 bits, and one sequence header
    /// (AV1 Codec ISO Media File Format Binding §2.3.3; AV1 Bitstream §5.3). Returns profile, level, tier and bit depth (§5),
    /// and for 4:4:4 also chroma, primaries, transfer, matrix and range: without these fields, chroma is 4:2:0.
    private static func inspectAV1(_ configuration: ByteReader) throws(OutputFlaw) -> String {
        var configuration = configuration
        guard try configuration.number(1) == 0x81 else { throw .wrongCodec }
        let profileAndLevel = try configuration.number(1)
        let profile = profileAndLevel >> 5
        guard profile <= 1 else { throw .wrongCodec }
        // Tier, high bit depth, twelve bits, monochrome, and subsampling of both axes, before the position of chroma samples.
        guard try configuration.number(1) >> 2 == (profile == 0 ? 0b000011 : 0), try configuration.number(1) == 0 else {
            throw .wrongCodec
        }
        // A unit of type 1 that has a size field of one byte and no extension.
        guard try configuration.number(1) == 0x0a else { throw .wrongCodec }
        let size = try configuration.number(1)
        guard size < 0x80, size > 0, configuration.count == size else { throw .malformed }
        let level = profileAndLevel & 31
        return "\(profile).\(level < 10 ? "0" : "")\(level)M.08" + (profile == 0 ? "" : ".0.000.01.13.01.0")
    }

    /// Inspects `stts`: the samples' durations add up to the claimed duration (§8.6.1.2).
    static func inspectTimes(_ box: MP4Box, _ claim: OutputClaim) throws(OutputFlaw) {
        var (_, content) = try box.versioned()
        var samples = 0
        var duration = 0
        for _ in 0..<(try content.number(4)) {
            let count = try content.number(4)
            samples += count
            guard samples <= claim.samples else { throw .wrongSampleCount }
            duration += try content.number(4) * count
            guard duration <= claim.duration else { throw .wrongDuration }
        }
        guard samples == claim.samples else { throw .wrongSampleCount }
        guard duration == claim.duration else { throw .wrongDuration }
    }
}

/// Profiles of H.264 by their numbers (ITU-T H.264 annex A).
enum H264Profile {
    /// Baseline, Main and High: 8 bits, and at most 4:2:0 chroma. Encoded videos use High.
    static let playable: Set<UInt8> = [66, 77, 100]
}
