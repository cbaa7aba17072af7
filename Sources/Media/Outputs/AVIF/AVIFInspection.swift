/// Inspects an AVIF. The boxes that ``AVIFWriter`` writes, and no others, must fill the file. Items and tracks must be AV1 with
/// the claimed size, duration and pictures, all in `mdat`. The number of plays must match the source.
enum AVIFInspection {
    static func inspect(_ bytes: OutputBytes, _ claim: OutputClaim) throws(OutputFlaw) {
        let outline = try MP4Outline(bytes, samples: claim.samples)
        let isSequence = claim.samples != 1
        let parts = isSequence ? ["ftyp", "meta", "moov", "mdat"] : ["ftyp", "meta", "mdat"]
        guard outline.parts.map(\.kind) == parts else { throw .missingPart }
        var brands = try outline.contents(of: "ftyp")
        guard brands.skip(isSequence ? "avis\0\0\0\0avif" : "avif\0\0\0\0avif") else { throw .wrongSignature }
        let data = try outline.range(of: "mdat")
        let meta = MP4Box(kind: "meta", content: try outline.contents(of: "meta"))
        let hasAlpha = try AVIFItemInspection.inspect(meta, within: data, claim)
        if isSequence {
            try inspectMovie(try outline.contents(of: "moov"), within: data, hasAlpha: hasAlpha, claim)
        } else {
            guard claim.duration == 0 else { throw .wrongDuration }
        }
    }

    private static func inspectMovie(
        _ movie: ByteReader, within data: Range<Int>, hasAlpha: Bool, _ claim: OutputClaim
    ) throws(OutputFlaw) {
        let boxes = try MP4Box.all(in: movie)
        guard boxes.map(\.kind) == ["mvhd", "trak"] + (hasAlpha ? ["trak"] : []) else { throw .missingPart }
        var header = try boxes[0].versioned()
        try header.content.skip(try TimeFields(version: header.version).dates.count)
        guard try header.content.number(4) == claim.timescale else { throw .wrongDuration }
        let shown = try TimeFields(version: header.version).duration(&header.content)
        for (index, track) in boxes.dropFirst().enumerated() {
            try inspectTrack(track, isAlpha: index == 1, shown: shown, within: data, claim)
        }
    }

    /// - Parameter shown: The total playing time of the sequence; nil for endless.
    private static func inspectTrack(
        _ track: MP4Box, isAlpha: Bool, shown: Int?, within data: Range<Int>, _ claim: OutputClaim
    ) throws(OutputFlaw) {
        let parts = try track.children()
        guard parts.map(\.kind) == (isAlpha ? ["tkhd", "tref", "edts", "mdia"] : ["tkhd", "edts", "mdia"]) else {
            throw .missingPart
        }
        var head = try parts[0].versioned()
        try head.content.skip(try TimeFields(version: head.version).dates.count)
        guard try head.content.number(4) == (isAlpha ? 2 : 1) else { throw .malformed }
        try head.content.skip(4)
        guard try TimeFields(version: head.version).duration(&head.content) == shown else { throw .wrongDuration }
        try head.content.skip(16 + 36)
        guard try head.content.number(4) == claim.width << 16, try head.content.number(4) == claim.height << 16 else {
            throw .wrongSize
        }
        if isAlpha {
            var reference = try parts[1].child("auxl").content
            guard try reference.number(4) == 1, reference.isAtEnd else { throw .malformed }
        }
        try inspectEdits(try MP4Box.only("edts", in: parts).child("elst"), shown: shown, claim)
        try inspectMedia(try MP4Box.only("mdia", in: parts), isAlpha: isAlpha, within: data, claim)
    }

    /// Inspects `elst`: one edit of the whole sequence, which repeats unless the sequence plays once.
    private static func inspectEdits(
        _ box: MP4Box, shown: Int?, _ claim: OutputClaim
    ) throws(OutputFlaw) {
        let plays = try plays(shown, claim)
        var content = box.content
        let fields = try TimeFields(version: try content.number(1))
        // The flags say whether the edit repeats.
        guard try content.number(3) == (plays == 1 ? 0 : 1), try content.number(4) == 1,
            try fields.duration(&content) == claim.duration, try fields.duration(&content) == 0,
            try content.number(4) == 0x10000, content.isAtEnd
        else { throw .wrongDuration }
    }

    /// Returns the number of plays of the sequence; nil for endless.
    private static func plays(_ shown: Int?, _ claim: OutputClaim) throws(OutputFlaw) -> Int? {
        guard let shown else {
            guard claim.loopCount == 0 else { throw .wrongDuration }
            return nil
        }
        guard claim.loopCount != 0 else { throw .wrongDuration }
        let (plays, rest) = shown.quotientAndRemainder(dividingBy: max(1, claim.duration))
        // Several rounds in the file reduce the number of plays, down to one.
        guard rest == 0, (1...(claim.loopCount ?? 0) + 1).contains(plays) else { throw .wrongDuration }
        return plays
    }

    private static func inspectMedia(
        _ media: MP4Box, isAlpha: Bool, within data: Range<Int>, _ claim: OutputClaim
    ) throws(OutputFlaw) {
        try MP4Inspection.inspectHeader(try media.child("mdhd"), claim)
        var handler = try media.child("hdlr").versioned().content
        try handler.skip(4)
        guard handler.skip(isAlpha ? "auxv" : "pict") else { throw .malformed }
        let information = try media.child("minf")
        try MP4Inspection.inspectReferences(try information.child("dinf").child("dref"))
        let table = try information.child("stbl").children()
        let properties = try MP4Inspection.entry(of: "av01", in: try MP4Box.only("stsd", in: table), claim)
        try inspectConfiguration(try MP4Box.only("av1C", in: properties), isAlpha: isAlpha)
        if isAlpha { try inspectAlphaType(try MP4Box.only("auxi", in: properties)) }
        try MP4Inspection.inspectTimes(try MP4Box.only("stts", in: table), claim)
        try inspectKeys(try MP4Box.only("stss", in: table), claim)
        try MP4SampleTable(table, samples: claim.samples).inspect(within: data)
    }

    /// Inspects `stss`: ascending picture numbers, starting with the first picture.
    private static func inspectKeys(_ box: MP4Box, _ claim: OutputClaim) throws(OutputFlaw) {
        var (_, content) = try box.versioned()
        let count = try content.number(4)
        guard content.count == 4 * count else { throw .malformed }
        var last = 0
        for _ in 0..<count {
            let number = try content.number(4)
            guard last > 0 ? number > last : number == 1, number <= claim.samples else { throw .wrongSampleCount }
            last = number
        }
        guard last > 0 else { throw .missingPart }
    }

    /// Inspects `av1C`: Main profile in 4:2:0 (monochrome for alpha), or High profile in 4:4:4; 8 bit (AV1 in ISO-BMFF §2.3).
    static func inspectConfiguration(_ box: MP4Box, isAlpha: Bool) throws(OutputFlaw) {
        var content = box.content
        guard content.count == 4, try content.number(1) == 0x81 else { throw .wrongCodec }
        let profile = try content.number(1) >> 5
        guard profile == 0 || (profile == 1 && !isAlpha),
            try content.number(1) & 0x7c == (isAlpha ? 0x1c : profile == 0 ? 0x0c : 0), try content.number(1) == 0
        else { throw .wrongCodec }
    }

    /// Inspects the type of an auxiliary picture: alpha (ISO/IEC 23008-12 §6.5.8, §7.5.3).
    static func inspectAlphaType(_ box: MP4Box) throws(OutputFlaw) {
        var (_, content) = try box.versioned()
        guard content.skip(AVIFWriter.alphaType + "\0"), content.isAtEnd else { throw .malformed }
    }
}

/// Inspects the still image of an AVIF (ISO/IEC 23008-12 §6, §9): one colour item and at most one alpha item.
enum AVIFItemInspection {
    /// Returns whether there is alpha.
    static func inspect(_ meta: MP4Box, within data: Range<Int>, _ claim: OutputClaim) throws(OutputFlaw) -> Bool {
        let boxes = try MP4Box.all(in: try meta.versioned().content)
        let hasAlpha = boxes.contains { $0.kind == "iref" }
        guard boxes.map(\.kind) == ["hdlr", "pitm", "iloc", "iinf"] + (hasAlpha ? ["iref"] : []) + ["iprp"] else {
            throw .missingPart
        }
        let count = hasAlpha ? 2 : 1
        var handler = try boxes[0].versioned().content
        try handler.skip(4)
        var primary = try boxes[1].versioned().content
        guard handler.skip("pict"), try primary.number(2) == 1, primary.isAtEnd else { throw .malformed }
        try inspectPlaces(boxes[2], count, within: data)
        try inspectNames(boxes[3], count)
        if hasAlpha { try inspectReference(boxes[4]) }
        try inspectProperties(try MP4Box.only("iprp", in: boxes), hasAlpha: hasAlpha, claim)
        return hasAlpha
    }

    /// Inspects `iloc`: each item is one part of the data (ISO/IEC 14496-12 §8.11.3).
    private static func inspectPlaces(_ box: MP4Box, _ count: Int, within data: Range<Int>) throws(OutputFlaw) {
        var (version, content) = try box.versioned()
        guard version == 0, try content.number(2) == 0x4400, try content.number(2) == count else { throw .malformed }
        for item in 1...count {
            guard try content.number(2) == item, try content.number(2) == 0, try content.number(2) == 1 else {
                throw .malformed
            }
            let begin = try content.number(4)
            let length = try content.number(4)
            guard length > 0, begin >= data.lowerBound, begin + length <= data.upperBound else { throw .strayingSamples }
        }
        guard content.isAtEnd else { throw .malformed }
    }

    /// Inspects `iinf`: the items are AV1.
    private static func inspectNames(_ box: MP4Box, _ count: Int) throws(OutputFlaw) {
        var (_, content) = try box.versioned()
        guard try content.number(2) == count else { throw .malformed }
        let entries = try MP4Box.all(in: content)
        guard entries.count == count else { throw .malformed }
        for (index, entry) in entries.enumerated() {
            var (version, fields) = try entry.versioned()
            guard entry.kind == "infe", version == 2, try fields.number(2) == index + 1, try fields.number(2) == 0,
                fields.skip("av01")
            else { throw .wrongCodec }
        }
    }

    /// Inspects `iref`: the second item is the alpha of the first.
    private static func inspectReference(_ box: MP4Box) throws(OutputFlaw) {
        let references = try MP4Box.all(in: try box.versioned().content)
        var content = try MP4Box.only("auxl", in: references).content
        guard references.count == 1, try content.number(2) == 2, try content.number(2) == 1, try content.number(2) == 1,
            content.isAtEnd
        else { throw .malformed }
    }

    /// Inspects `iprp`: the properties and their items, in the only order in which they are written.
    private static func inspectProperties(_ box: MP4Box, hasAlpha: Bool, _ claim: OutputClaim) throws(OutputFlaw) {
        let parts = try box.children()
        guard parts.map(\.kind) == ["ipco", "ipma"] else { throw .missingPart }
        let properties = try parts[0].children()
        let kinds = ["ispe", "pixi", "av1C", "colr"] + (hasAlpha ? ["pixi", "av1C", "auxC"] : [])
        guard properties.map(\.kind) == kinds else { throw .missingPart }
        var size = try properties[0].versioned().content
        guard try size.number(4) == claim.width, try size.number(4) == claim.height, size.isAtEnd else { throw .wrongSize }
        try AVIFInspection.inspectConfiguration(properties[2], isAlpha: false)
        var colors = properties[3].content
        guard colors.skip("nclx"), colors.rest.elementsEqual([0, 1, 0, 13, 0, 1, 0]) else { throw .wrongCodec }
        if hasAlpha {
            try AVIFInspection.inspectConfiguration(properties[5], isAlpha: true)
            try AVIFInspection.inspectAlphaType(properties[6])
        }
        let associations: [UInt8] = [0, 1, 4, 1, 2, 0x83, 4] + (hasAlpha ? [0, 2, 4, 1, 5, 0x86, 7] : [])
        var list = try parts[1].versioned().content
        guard try list.number(4) == (hasAlpha ? 2 : 1), list.rest.elementsEqual(associations) else { throw .malformed }
    }
}
