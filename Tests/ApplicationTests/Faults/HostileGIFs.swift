import TestSupport

/// GIFs with false sides, endless code streams and floods of blocks.
enum HostileGIFs {
    /// A valid GIF with two frames.
    static let plain = file {
        $0.addDelay(5)
        $0.addCoded(width: 4, height: 4, four)
        $0.addDelay(5)
        $0.addCoded(width: 4, height: 4, LZWEncoder.zeros(16))
    }

    static let all = headers + frames + codeStreams + floods

    private static let headers: [HostileFile] = [
        HostileFile("plain", .accepted, plain),
        HostileFile("empty", .refused, []),
        HostileFile("header_only", .refused, header()),
        HostileFile("header_cut", .refused, Array(header().prefix(9))),
        HostileFile("html", .refused, .text("<html><body>not found</body></html>")),
        HostileFile("canvas_huge", .refused, file(65_535, 65_535) { $0.addCoded(width: 1, height: 1, LZWEncoder.zeros(1)) }),
        HostileFile("nothing_to_show", .refused, file(0, 0) { $0.addCoded(width: 0, height: 0, four) }),
        HostileFile("no_palette", .either, file(palette: nil) { $0.addCoded(width: 4, height: 4, four) }),
    ]

    private static let frames: [HostileFile] = [
        HostileFile("frame_huge", .refused, file { $0.addCoded(width: 65_535, height: 65_535, LZWEncoder.zeros(1)) }),
        HostileFile("frame_flat", .refused, file { $0.addCoded(width: 0, height: 4, four) }),
        HostileFile(
            "frame_outside", .accepted,
            file {
                $0.addCoded(width: 4, height: 4, four)
                $0.addCoded(x: 60_000, y: 60_000, width: 4, height: 4, four)
            }),
        HostileFile(
            "delays_long", .either,
            file {
                for _ in 0..<3 {
                    $0.addDelay(65_535)
                    $0.addCoded(width: 4, height: 4, four)
                }
            }),
    ]

    private static let codeStreams: [HostileFile] = [
        HostileFile("code_size_0", .either, file { $0.addCoded(width: 4, height: 4, minimumCodeSize: 0, .zeros(8)) }),
        HostileFile("code_size_255", .either, file { $0.addCoded(width: 4, height: 4, minimumCodeSize: 255, .zeros(8)) }),
        // Codes of three bits, all of which empty the table.
        HostileFile(
            "clear_storm", .either,
            file(64, 64) { $0.addCoded(width: 64, height: 64, .repeated([0x24, 0x49, 0x92], 40_000)) }),
        HostileFile(
            "codes_random", .either,
            file(64, 64) {
                $0.addCoded(width: 64, height: 64, minimumCodeSize: 8, (0..<9000).map { UInt8($0 * 167 % 251) })
            }),
        HostileFile(
            "cut_in_data", .either,
            Array(file(64, 64) { $0.addCoded(width: 64, height: 64, LZWEncoder.zeros(4096)) }.prefix(48))),
    ]

    private static let floods: [HostileFile] = [
        HostileFile(
            "ratio_one", .either,
            file(2000, 2000) { $0.addCoded(width: 2000, height: 2000, LZWEncoder.zeros(4_000_000)) }),
        HostileFile(
            "ratio_many", .either,
            file(1000, 1000) {
                let codes = LZWEncoder.zeros(1_000_000)
                for _ in 0..<60 {
                    $0.addDelay(2)
                    $0.addCoded(width: 1000, height: 1000, codes)
                }
            }),
        HostileFile(
            "frames_many", .either,
            file(16, 16) {
                $0.addLoop(0)
                for _ in 0..<6000 {
                    $0.addDelay(2)
                    $0.addCoded(width: 1, height: 1, LZWEncoder.zeros(1))
                }
            }),
        HostileFile(
            "comments_many", .either,
            file {
                $0.addExtension(0xfe, Array(repeating: 0x41, count: 150_000))
                $0.addCoded(width: 4, height: 4, four)
            }),
        HostileFile(
            "loops_many", .accepted,
            file {
                for _ in 0..<2000 { $0.addLoop(0) }
                $0.addCoded(width: 4, height: 4, four)
            }),
    ]

    private static let blackAndWhite: [GIFBuilder.Color] = [(0, 0, 0), (255, 255, 255)]

    /// Sixteen pixels of two colours, each after a code that empties the table.
    private static let four: [UInt8] = {
        var writer = BitWriter()
        writer.write(4, 3)
        for index in 0..<16 {
            writer.write(index % 2, 3)
            writer.write(4, 3)
        }
        writer.write(5, 3)
        return writer.finish()
    }()

    private static func header() -> [UInt8] { GIFBuilder(width: 4, height: 4, palette: blackAndWhite).bytes }

    private static func file(
        _ width: Int = 4, _ height: Int = 4, palette: [GIFBuilder.Color]? = blackAndWhite, _ add: (inout GIFBuilder) -> Void
    ) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height, palette: palette)
        add(&builder)
        return builder.finish()
    }
}
