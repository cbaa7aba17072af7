import TestSupport

/// APNGs with false sides, lengths and sequences, and streams that are far longer than what they show.
enum HostileAPNGs {
    static let all = files + bombs + pictures + frames + floods

    private static let files: [HostileFile] = [
        HostileFile("apng_plain", .accepted, tiny),
        HostileFile("apng_still", .refused, .joined(signature, header(), picture, end)),
        HostileFile("apng_signature_only", .refused, signature),
        HostileFile("apng_cut", .refused, Array(tiny.prefix(90))),
        HostileFile("apng_cut_in_second", .accepted, Array(tiny.dropLast(30))),
        HostileFile("apng_chunk_beyond_end", .refused, .joined(start, [0x7f, 0xff, 0xff, 0xff], .text("IDATx"))),
        HostileFile(
            "apng_chunk_longest", .refused, .joined(start, .repeated(.joined([255, 255, 255, 255], .text("IDATx")), 9))),
        HostileFile("apng_in_apng", .either, .joined(firstOfTwo, tiny)),
    ]

    /// Streams that unpack to much more, or to less, than the picture has.
    private static let bombs: [HostileFile] = {
        let packed: [UInt8] = .joined(.text("x"), [0, 0], ZlibStream.zeros(100 << 20))
        let pixels = chunk("IDAT", ZlibStream.zeros(64 << 20))
        return [
            HostileFile(
                "apng_pixels_missing", .refused,
                .joined(
                    signature, header(4000, 2000), frameCount(1), control(0, 4000, 2000), chunk("IDAT", ZlibStream.zeros(9)),
                    end)),
            HostileFile("apng_pixels_surplus", .accepted, .joined(start, control(0), pixels, end)),
            HostileFile("apng_profile_bomb", .accepted, tiny(afterHeader: chunk("iCCP", packed))),
            HostileFile("apng_text_bomb", .accepted, tiny(afterHeader: .repeated(chunk("zTXt", packed), 3))),
        ]
    }()

    private static let pictures: [HostileFile] = [
        HostileFile(
            "apng_canvas_huge", .refused,
            .joined(signature, header(0x7fff_ffff, 0x7fff_ffff), frameCount(1), chunk("IDAT", .text("x")))),
        HostileFile(
            "apng_canvas_none", .refused, .joined(signature, header(0, 4), frameCount(1), chunk("IDAT", .text("x")))),
        HostileFile("apng_side_long", .refused, blank(5000, 1, frames: 1)),
        HostileFile("apng_blank_one", .either, blank(2000, 2000, frames: 1, coding: .init(type: 0, depth: 1))),
        HostileFile("apng_16_bits", .accepted, blank(1000, 1000, frames: 3, coding: .init(depth: 16))),
        HostileFile(
            "apng_first_checksum_wrong", .refused,
            .joined(start, control(0), chunk("IDAT", pixels, isSound: false), end)),
        HostileFile("apng_palette_missing", .refused, blank(4, 4, frames: 1, coding: .init(type: 3))),
        // Pixels of colours that the palette does not have.
        HostileFile(
            "apng_palette_short", .either,
            .joined(
                signature, header(4, 1, type: 3), chunk("PLTE", [255, 0, 0]), frameCount(1), control(0, 4, 1),
                chunk("IDAT", ZlibStream.compressed([0, 0, 255, 128, 1])), end)),
        HostileFile("apng_coding_wrong", .refused, blank(4, 4, frames: 1).with(header(depth: 3), at: signature.count)),
    ]

    private static let frames: [HostileFile] = [
        HostileFile("apng_frames_claimed", .accepted, blank(4, 4, frames: 2, claimed: 0x7fff_ffff)),
        HostileFile("apng_frame_outside", .either, .joined(firstOfTwo, control(1, x: 1), data(2, pixels))),
        HostileFile("apng_frame_far", .either, .joined(firstOfTwo, control(1, x: 0xffff_ffff, y: 0xffff_ffff), data(2))),
        HostileFile("apng_frame_empty", .either, .joined(firstOfTwo, control(1, 0, 0), data(2))),
        HostileFile("apng_sequence_wrong", .either, .joined(firstOfTwo, control(7), data(8, pixels))),
        HostileFile("apng_data_short", .either, .joined(firstOfTwo, control(1), chunk("fdAT", [0]))),
        HostileFile("apng_checksum_wrong", .accepted, blank(4, 4, frames: 3, isSound: false)),
        // Fractions of seconds without a small common denominator.
        HostileFile(
            "apng_delays_odd", .accepted,
            .joined(
                signature, header(), frameCount(6),
                [65_521, 65_519, 65_497, 65_479, 65_449, 1].enumerated().flatMap { index, denominator -> [UInt8] in
                    let sequence = max(0, 2 * index - 1)
                    return .joined(
                        control(sequence, delay: (65_535 - index, denominator)),
                        index == 0 ? picture : data(sequence + 1, pixels))
                },
                end)),
    ]

    private static let floods: [HostileFile] = [
        HostileFile(
            "apng_blank_many", .refused, blank(2800, 2800, frames: 200, coding: .init(type: 0, depth: 1))),
        HostileFile("apng_frames_many", .refused, blank(16, 16, frames: 6000, others: (1, 1))),
        // A chunk for each byte, and many without any.
        HostileFile(
            "apng_chunks_tiny", .accepted,
            .joined(
                firstOfTwo, control(1), pixels.indices.flatMap { data(2 + $0, [pixels[$0]]) },
                (0..<100_000).flatMap { data(2 + pixels.count + $0) }, end)),
        HostileFile(
            "apng_texts_many", .accepted, tiny(afterHeader: .repeated(chunk("tEXt", [0x61, 0, 0x62]), 200_000))),
    ]

    // MARK: Parts

    private static let signature = APNGBuilder.signature
    /// An animation of one frame of 4 × 4 pixels, without the frame.
    private static let start: [UInt8] = .joined(signature, header(), frameCount(1))
    private static let pixels = stream(4, 4, coding: .init())
    private static let picture = chunk("IDAT", pixels)
    private static let firstOfTwo: [UInt8] = .joined(signature, header(), frameCount(2), control(0), picture)
    private static let end = chunk("IEND")
    private static let tiny = blank(4, 4, frames: 2)

    private static func tiny(afterHeader chunks: [UInt8]) -> [UInt8] {
        let head = signature.count + header().count
        return .joined(Array(tiny.prefix(head)), chunks, Array(tiny.dropFirst(head)))
    }

    private static func chunk(_ type: String, _ data: [UInt8] = [], isSound: Bool = true) -> [UInt8] {
        var chunk = APNGBuilder.Chunk(type, data)
        chunk.isSound = isSound
        return APNGBuilder.bytes(chunk)
    }

    private static func header(_ width: Int = 4, _ height: Int = 4, type: UInt8 = 6, depth: UInt8 = 8) -> [UInt8] {
        chunk("IHDR", .joined(.big(width), .big(height), [depth, type, 0, 0, 0]))
    }

    private static func frameCount(_ count: Int) -> [UInt8] { chunk("acTL", .joined(.big(count), .big(0))) }

    private static func control(
        _ sequence: Int, _ width: Int = 4, _ height: Int = 4, x: Int = 0, y: Int = 0, delay: (Int, Int) = (1, 10)
    ) -> [UInt8] {
        let rectangle: [UInt8] = .joined(.big(width), .big(height), .big(x), .big(y))
        return chunk("fcTL", .joined(.big(sequence), rectangle, .big(delay.0, 2), .big(delay.1, 2), [0, 0]))
    }

    private static func data(_ sequence: Int, _ bytes: [UInt8] = []) -> [UInt8] {
        chunk("fdAT", .joined(.big(sequence), bytes))
    }

    private static func stream(_ width: Int, _ height: Int, coding: APNGBuilder.Coding) -> [UInt8] {
        ZlibStream.zeros((1 + (width * coding.channels * coding.depth + 7) / 8) * height)
    }

    /// Frames of zeros.
    ///
    /// - Parameters:
    ///   - others: The sides of all frames but the first; nil for those of the canvas.
    ///   - claimed: The number of frames in `acTL`; nil for the right one.
    ///   - isSound: Whether the checksums of all frames but the first are right.
    private static func blank(
        _ width: Int, _ height: Int, frames: Int, others: (width: Int, height: Int)? = nil,
        coding: APNGBuilder.Coding = .init(), claimed: Int? = nil, isSound: Bool = true
    ) -> [UInt8] {
        var builder = APNGBuilder(width: width, height: height, coding: coding)
        builder.add(stream(width, height, coding: coding), width: width, height: height)
        let (width, height) = others ?? (width, height)
        let pixels = stream(width, height, coding: coding)
        for _ in 1..<frames {
            builder.add(pixels, width: width, height: height)
            builder.chunks[builder.chunks.count - 1].isSound = isSound
        }
        return builder.finish(frames: claimed)
    }
}
