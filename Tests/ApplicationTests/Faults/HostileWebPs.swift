import TestSupport

/// WebPs with false sides, lengths and code streams.
enum HostileWebPs {
    static let all = files + canvases + frames + pictures + chunks

    private static let files: [HostileFile] = [
        HostileFile("webp_plain", .accepted, tiny),
        HostileFile("webp_still", .refused, WebPBuilder.file(picture)),
        HostileFile("webp_header_only", .refused, Array(tiny.prefix(12))),
        HostileFile("webp_cut", .refused, Array(tiny.prefix(40))),
        HostileFile("webp_cut_in_second", .accepted, Array(tiny.dropLast(5))),
        HostileFile(
            "webp_riff_length_wrong", .either,
            .joined(.text("RIFF"), [255, 255, 255, 255], .text("WEBP"), Array(tiny.dropFirst(12)))),
        HostileFile(
            "webp_riff_length_short", .refused,
            .joined(.text("RIFF"), [16, 0, 0, 0], .text("WEBP"), Array(tiny.dropFirst(12)))),
        HostileFile("webp_animation_flag_only", .refused, WebPBuilder.file(.joined(canvas(4, 4), picture))),
    ]

    private static let canvases: [HostileFile] = [
        HostileFile("webp_canvas_huge", .refused, file(1 << 24, 1 << 8, frame(4, 4, picture))),
        HostileFile("webp_canvas_wide", .refused, file(4000, 4000, frame(4, 4, picture))),
        HostileFile("webp_blank_one", .either, file(2000, 2000, frame(2000, 2000, plain(2000, 2000)))),
        HostileFile(
            "webp_blank_many", .refused,
            file(2800, 2800, (0..<200).flatMap { frame(2800, 2800, plain(2800, 2800, red: $0)) })),
    ]

    private static let frames: [HostileFile] = [
        HostileFile(
            "webp_frames_many", .refused, file(16, 16, (0..<6000).flatMap { frame(1, 1, plain(1, 1, red: $0 % 256)) })),
        HostileFile("webp_frames_none", .refused, file(4, 4, [])),
        HostileFile("webp_frame_outside", .refused, file(4, 4, frame(4, 4, picture, x: 2))),
        HostileFile("webp_frame_far", .refused, file(4, 4, frame(4, 4, picture, x: 0x1ff_fffe, y: 0x1ff_fffe))),
        HostileFile("webp_frame_other_size", .either, file(8, 8, frame(8, 8, picture))),
        HostileFile("webp_frame_without_picture", .refused, file(4, 4, frame(4, 4, []))),
        HostileFile("webp_frame_in_frame", .either, file(4, 4, frame(4, 4, frame(4, 4, picture)))),
        HostileFile(
            "webp_delays_long", .either,
            file(4, 4, (0..<8).flatMap { frame(4, 4, plain(4, 4, red: $0), delay: 0xff_ffff) })),
        HostileFile(
            "webp_delays_none", .accepted, file(4, 4, (0..<8).flatMap { frame(4, 4, plain(4, 4, red: $0), delay: 0) })),
    ]

    private static let pictures: [HostileFile] = [
        HostileFile("webp_picture_cut", .refused, file(4, 4, frame(4, 4, Array(picture.prefix(12))))),
        // A sound header of the code stream, and nothing sound after it.
        HostileFile(
            "webp_picture_random", .refused,
            file(64, 64, frame(64, 64, chunk("VP8L", .joined(Array(plain(64, 64)[8..<13]), ascending))))),
        HostileFile(
            "webp_lossy_random", .refused,
            file(
                64, 64,
                frame(64, 64, chunk("VP8 ", .joined([0x30, 1, 0, 0x9d, 1, 0x2a, 0x40, 0, 0x40, 0], ascending))))),
        HostileFile(
            "webp_alpha_random", .either,
            file(64, 64, frame(64, 64, .joined(chunk("ALPH", .joined([1], ascending)), plain(64, 64))))),
    ]

    private static let chunks: [HostileFile] = [
        HostileFile("webp_length_wrong", .either, file(4, 4, chunk("ANMF", .zeros(40), length: 0xffff_fff0))),
        HostileFile(
            "webp_profile_long", .either,
            WebPBuilder.file(
                .joined(canvas(4, 4, flags: 0x32), chunk("ICCP", .zeros(3_000_000)), loop, frame(4, 4, picture)))),
        HostileFile(
            "webp_chunks_many", .either,
            WebPBuilder.file(.joined(canvas(4, 4), loop, .repeated(chunk("XXXX", []), 300_000), frame(4, 4, picture)))),
    ]

    // MARK: Parts

    private static let tiny = file(
        4, 4, .joined(frame(4, 4, picture), frame(4, 4, WebPBuilder.plain(width: 4, height: 4, word: 0x8000_00ff))))
    private static let picture = plain(4, 4)
    private static let ascending: [UInt8] = Array(0..<255)
    private static let loop = chunk("ANIM", .zeros(6))

    /// A picture of an opaque colour: of green, or of this much red.
    private static func plain(_ width: Int, _ height: Int, red: Int? = nil) -> [UInt8] {
        WebPBuilder.plain(width: width, height: height, word: red.map { 0xff00_0000 | UInt32($0) } ?? 0xff00_ff00)
    }

    private static func chunk(_ type: String, _ data: [UInt8], length: Int? = nil) -> [UInt8] {
        WebPBuilder.chunk(type, data, length: length)
    }

    /// - Parameter flags: Of what the file has: an animation, alpha and a profile.
    private static func canvas(_ width: Int, _ height: Int, flags: UInt8 = 0x12) -> [UInt8] {
        chunk("VP8X", .joined([flags, 0, 0, 0], .little(width - 1, 3), .little(height - 1, 3)))
    }

    private static func frame(
        _ width: Int, _ height: Int, _ picture: [UInt8], x: Int = 0, y: Int = 0, delay: Int = 100
    ) -> [UInt8] {
        let place: [UInt8] = .joined(.little(x / 2, 3), .little(y / 2, 3), .little(width - 1, 3), .little(height - 1, 3))
        return chunk("ANMF", .joined(place, .little(delay, 3), [0], picture))
    }

    private static func file(_ width: Int, _ height: Int, _ frames: [UInt8]) -> [UInt8] {
        WebPBuilder.file(.joined(canvas(width, height), loop, frames))
    }
}
