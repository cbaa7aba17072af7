/// Arranges encoded pictures as an AVIF file (AV1 image file format 1.1; ISO/IEC 23008-12; ISO/IEC 14496-12).
///
/// One picture becomes a still image. Several become an image sequence, whose first picture is also a still image for readers
/// without support for sequences. Its edit list states the number of plays, which libavformat's muxer and libavif before 1.0
/// cannot write: without it, browsers play the sequence once.
struct AVIFWriter {
    /// An endless duration: all bits are set (ISO/IEC 14496-12 §8.3.2).
    static let indefinite = -1
    static let alphaType = "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha"
    /// The highest `seq_level_idx` of the profiles with the brands `MA1B` and `MA1A`, levels 5.1 and 6.0 (AV1 image file format
    /// §8.2, §8.3). They use the Main and the High profile of AV1.
    private static let highestBaselineLevel = 13
    private static let highestAdvancedLevel = 16

    /// A plane of the pictures: an item of the still image, and a track of the sequence.
    private struct Plane {
        let number: Int
        let stream: AV1Stream
        let sizes: [Int]
        /// The positions of the chunks, from the beginning of the data. All chunks have the same number of packets.
        let chunks: [Int]

        var isAlpha: Bool { number == 2 }
    }

    let width: Int
    let height: Int
    /// Units per second.
    let timescale: Int
    let color: AV1Stream
    /// The alpha stream; nil for opaque pictures.
    let alpha: AV1Stream?
    /// The number of plays of the sequence; nil for endless.
    let plays: Int?

    /// Arranges the file. In a small file, all colours come before the alpha, so that each plane is one chunk. In a larger
    /// file, a reader that shows pictures as they arrive needs both planes together.
    ///
    /// - Parameters:
    ///   - pictures: The pictures in display order.
    ///   - end: The end of the last picture, in units.
    ///   - rounds: The number of times that the sequence contains the pictures. Their bytes are in the file once.
    func layout(_ pictures: [EncodedPicture], end: Int, rounds: Int) -> FileLayout {
        let (colors, alphas) = (pictures.map(\.color), pictures.compactMap(\.alpha))
        let data = (colors + alphas).reduce(0) { $0 + $1.count }
        let isApart = data <= PacketSpool.mostInAnyOrder
        let order = isApart ? colors + alphas : pictures.flatMap { [$0.color] + ($0.alpha.map { [$0] } ?? []) }
        var planes = [Plane(number: 1, stream: color, sizes: colors.map(\.count), chunks: [0])]
        if let alpha {
            let starts = isApart ? [colors.reduce(0) { $0 + $1.count }] : alphas.map(\.lowerBound)
            if !isApart {
                planes[0] = Plane(number: 1, stream: color, sizes: planes[0].sizes, chunks: colors.map(\.lowerBound))
            }
            planes.append(Plane(number: 2, stream: alpha, sizes: alphas.map(\.count), chunks: starts))
        }
        let isSequence = pictures.count * rounds > 1
        func head(_ offset: Int) -> [UInt8] {
            fileType(isSequence: isSequence) + meta(planes, offset)
                + (isSequence ? movie(planes, pictures, end: end, rounds: rounds, offset) : [])
                + [UInt8].number(data + 8, 4) + [UInt8].text("mdat")
        }
        var layout = FileLayout()
        // The length of the header does not depend on the positions in it.
        layout.append(head(head(0).count))
        for packet in order { layout.append(packet: packet) }
        return layout
    }

    private func fileType(isSequence: Bool) -> [UInt8] {
        let level = max(color.level, alpha?.level ?? 0)
        let profile =
            color.profile == 0 && level <= Self.highestBaselineLevel
            ? ["MA1B"] : level <= Self.highestAdvancedLevel ? ["MA1A"] : []
        let brands = (isSequence ? ["avif", "avis", "msf1", "iso8", "mif1", "miaf"] : ["avif", "mif1", "miaf"]) + profile
        return .box("ftyp", .text(isSequence ? "avis" : "avif"), .zeros(4), brands.flatMap([UInt8].text))
    }

    // MARK: Still image

    /// Returns the first picture as an item, with its alpha as an auxiliary item.
    private func meta(_ planes: [Plane], _ offset: Int) -> [UInt8] {
        let places = planes.flatMap { plane in
            [(plane.number, 2), (0, 2), (1, 2), (offset + plane.chunks[0], 4), (plane.sizes[0], 4)].flatMap([UInt8].number)
        }
        let entries = planes.flatMap { plane in
            [UInt8].fullBox("infe", version: 2, .number(plane.number, 2), .number(0, 2), .text("av01"), [0])
        }
        let reference: [UInt8] = .fullBox("iref", .box("auxl", .number(2, 2), .number(1, 2), .number(1, 2)))
        return .fullBox(
            "meta", handler("pict"), .fullBox("pitm", .number(1, 2)),
            .fullBox("iloc", [0x44, 0x00], .number(planes.count, 2), places),
            .fullBox("iinf", .number(planes.count, 2), entries), planes.count > 1 ? reference : [], properties(planes))
    }

    private func properties(_ planes: [Plane]) -> [UInt8] {
        var boxes: [[UInt8]] = [
            .fullBox("ispe", .number(width, 4), .number(height, 4)), .fullBox("pixi", [3, 8, 8, 8]), configuration(color),
            colors,
        ]
        // The number of an item, and the indices of its properties, starting at 1.
        let essential: UInt8 = 0x80
        var associations: [UInt8] = [0, 1, 4, 1, 2, essential | 3, 4]
        if let alpha {
            boxes += [
                .fullBox("pixi", [1, 8]), configuration(alpha), .fullBox("auxC", .text(Self.alphaType + "\0")),
            ]
            associations += [0, 2, 4, 1, 5, essential | 6, 7]
        }
        return .box(
            "iprp", .box("ipco", boxes.flatMap { $0 }), .fullBox("ipma", .number(planes.count, 4), associations))
    }

    /// Returns `av1C` (AV1 in ISO-BMFF §2.3). The pictures themselves contain the sequence header.
    private func configuration(_ stream: AV1Stream) -> [UInt8] {
        let format = stream.tier << 7 | (stream.isMonochrome ? 0x10 : 0) | (stream.profile == 0 ? 0x0c : 0)
        return .box("av1C", [0x81, UInt8(stream.profile << 5 | stream.level), UInt8(format), 0])
    }

    /// `colr`: BT.709 primaries and matrix, sRGB transfer, limited range (ITU-T H.273).
    private var colors: [UInt8] {
        .box("colr", .text("nclx"), .number(1, 2), .number(13, 2), .number(1, 2), [0])
    }

    private func handler(_ kind: String) -> [UInt8] {
        .fullBox("hdlr", .zeros(4), .text(kind), .zeros(12 + 1))
    }

    // MARK: Sequence

    private func movie(
        _ planes: [Plane], _ pictures: [EncodedPicture], end: Int, rounds: Int, _ offset: Int
    ) -> [UInt8] {
        let length = end * rounds
        let shown = plays.map { $0 * length } ?? Self.indefinite
        // Readers derive the number of plays from the tracks' durations. Encoders write an endless duration in 64 bits, the
        // only form that FFmpeg supports.
        let movieTime = TimeFields(largest: shown == Self.indefinite ? .max : shown)
        let header: [UInt8] = .fullBox(
            "mvhd", version: movieTime.version, movieTime.dates, .number(timescale, 4), movieTime(shown), .number(0x10000, 4),
            .number(0x100, 2), .zeros(10), .unityMatrix, .zeros(24), .number(planes.count + 1, 4))
        let times = times(pictures, end: end, rounds: rounds)
        let keys = keys(pictures, rounds: rounds)
        let tracks = planes.flatMap { plane -> [UInt8] in
            let mediaTime = TimeFields(largest: length)
            let head: [UInt8] = .fullBox(
                "tkhd", version: movieTime.version, flags: 1, movieTime.dates, .number(plane.number, 4), .zeros(4),
                movieTime(shown), .zeros(16), .unityMatrix, .number(width << 16, 4), .number(height << 16, 4))
            // Flag 1: the edit, which is the whole sequence, repeats for the track's duration (ISO/IEC 14496-12 §8.6.6).
            let edits: [UInt8] = .fullBox(
                "elst", version: mediaTime.version, flags: plays == 1 ? 0 : 1, .number(1, 4), mediaTime(length), mediaTime(0),
                .number(0x10000, 4))
            let mediaHeader: [UInt8] = .fullBox(
                "mdhd", version: mediaTime.version, mediaTime.dates, .number(timescale, 4), mediaTime(length),
                .number(0x55c4, 2), .zeros(2))
            let information: [UInt8] = .box(
                "minf", .fullBox("vmhd", flags: 1, .zeros(8)),
                .box("dinf", .fullBox("dref", .number(1, 4), .fullBox("url ", flags: 1))),
                .box("stbl", description(plane), times, keys, places(plane, rounds: rounds, offset)))
            return .box(
                "trak", head, plane.isAlpha ? .box("tref", .box("auxl", .number(1, 4))) : [], .box("edts", edits),
                .box("mdia", mediaHeader, handler(plane.isAlpha ? "auxv" : "pict"), information))
        }
        return .box("moov", header, tracks)
    }

    /// Returns `stsd`: one AV1 entry, marked if it is alpha.
    private func description(_ plane: Plane) -> [UInt8] {
        // Pictures may reference each other freely (`ccst`, ISO/IEC 23008-12 §7.2.3).
        let constraints: [UInt8] = .fullBox("ccst", [0x7c, 0, 0, 0])
        let entry: [UInt8] = .box(
            "av01", .zeros(6), .number(1, 2), .zeros(16), .number(width, 2), .number(height, 2), .number(0x48_0000, 4),
            .number(0x48_0000, 4), .zeros(4), .number(1, 2), .zeros(32), .number(0x18, 2), .number(0xffff, 2),
            configuration(plane.stream), plane.isAlpha ? [] : colors, constraints,
            plane.isAlpha ? .fullBox("auxi", .text(Self.alphaType + "\0")) : [])
        return .fullBox("stsd", .number(1, 4), entry)
    }

    /// Returns `stts`: the durations, run-length encoded.
    private func times(_ pictures: [EncodedPicture], end: Int, rounds: Int) -> [UInt8] {
        let durations = pictures.indices.map { ($0 + 1 < pictures.count ? pictures[$0 + 1].time : end) - pictures[$0].time }
        var runs: [(count: Int, duration: Int)] = []
        for _ in 0..<rounds {
            for duration in durations {
                if runs.last?.duration == duration {
                    runs[runs.count - 1].count += 1
                } else {
                    runs.append((1, duration))
                }
            }
        }
        let entries = runs.flatMap { [UInt8].number($0.count, 4) + [UInt8].number($0.duration, 4) }
        return .fullBox("stts", .number(runs.count, 4), entries)
    }

    /// Returns `stss`: the pictures from which a decoder can start.
    private func keys(_ pictures: [EncodedPicture], rounds: Int) -> [UInt8] {
        let first = pictures.indices.filter { pictures[$0].isKey }
        let all = (0..<rounds).flatMap { round in first.map { $0 + round * pictures.count + 1 } }
        return .fullBox("stss", .number(all.count, 4), all.flatMap { [UInt8].number($0, 4) })
    }

    /// Returns `stsz`, `stsc` and `stco`: the sizes and positions of the pictures.
    private func places(_ plane: Plane, rounds: Int, _ offset: Int) -> [UInt8] {
        let sizes = plane.sizes.flatMap { [UInt8].number($0, 4) }
        let positions = plane.chunks.flatMap { [UInt8].number(offset + $0, 4) }
        let perChunk = plane.sizes.count / plane.chunks.count
        let boxes: [[UInt8]] = [
            .fullBox("stsz", .zeros(4), .number(plane.sizes.count * rounds, 4), (0..<rounds).flatMap { _ in sizes }),
            .fullBox("stsc", .number(1, 4), .number(1, 4), .number(perChunk, 4), .number(1, 4)),
            .fullBox("stco", .number(plane.chunks.count * rounds, 4), (0..<rounds).flatMap { _ in positions }),
        ]
        return boxes.flatMap { $0 }
    }
}

/// The fields of a box that hold dates and durations: 32 bits each in version 0, 64 in version 1 (ISO/IEC 14496-12 §8.2.2).
struct TimeFields {
    let isLong: Bool

    /// - Parameter largest: The largest duration.
    init(largest: Int) { isLong = largest > 0xffff_fffe }

    init(version: Int) throws(OutputFlaw) {
        guard version == 0 || version == 1 else { throw .malformed }
        isLong = version == 1
    }

    var version: UInt8 { isLong ? 1 : 0 }
    /// The creation and modification dates, which are not stated.
    var dates: [UInt8] { .zeros(isLong ? 16 : 8) }

    func callAsFunction(_ duration: Int) -> [UInt8] { .number(duration, isLong ? 8 : 4) }

    /// Reads the next duration; nil for endless.
    func duration(_ content: inout ByteReader) throws(OutputFlaw) -> Int? {
        var bytes = ByteReader(try content.take(isLong ? 8 : 4))
        if bytes.rest.allSatisfy({ $0 == 0xff }) { return nil }
        if isLong { guard try bytes.number(1) == 0 else { throw .wrongDuration } }
        return try bytes.number(bytes.count)
    }
}
