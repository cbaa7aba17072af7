#if canImport(TestSupport)
    import TestSupport
#endif

/// What the fuzzer begins with: small animations that have between them every feature of their format, made by the builders.
enum SourceSeeds {
    private static let colors: [UInt32] = [0xff00_00ff, 0x80ff_0000, 0, 0xff00_ff00]

    static var apng: [[UInt8]] {
        var seeds: [[UInt8]] = []
        for disposal in 0..<3 {
            for blend in 0..<2 {
                var png = APNGBuilder(width: 9, height: 7, plays: disposal)
                if blend == 1 { png.addPicture(.init(width: 9, height: 7, word: 0xff00_00ff)) }
                png.add(.init(width: 9, height: 7, word: 0xff12_3456))
                for (index, color) in colors.enumerated() {
                    png.add(.init(width: 4, height: 3, word: color)) {
                        ($0.x, $0.y, $0.disposal, $0.blend, $0.parts) = (index, index % 3, disposal, blend, index + 1)
                        $0.delay = (index, 3 + index * 7)
                    }
                }
                seeds.append(png.finish())
            }
        }
        let palette = APNGBuilder.Chunk("PLTE", Array(0..<12))
        for (index, chunk) in colorChunks.enumerated() {
            let coding = APNGBuilder.Coding(type: [2, 3, 0, 6][index % 4])
            var png = APNGBuilder(width: 5, height: 3, coding: coding, head: chunk + (coding.type == 3 ? [palette] : []))
            for _ in 0..<2 {
                png.add(.init(width: 5, height: 3, samples: (0..<15 * coding.channels).map { $0 % 4 }))
            }
            seeds.append(png.finish())
        }
        let codings = [(0, 1), (0, 16), (2, 8), (3, 2), (4, 8), (6, 16)]
        for (index, (type, depth)) in codings.enumerated() {
            let coding = APNGBuilder.Coding(type: type, depth: depth, isInterlaced: index % 2 == 1)
            let transparency = APNGBuilder.Chunk("tRNS", type == 3 ? [1, 2] : [UInt8](repeating: 0, count: type == 0 ? 2 : 6))
            let head = type == 3 ? [palette, transparency] : type < 3 ? [transparency] : []
            var png = APNGBuilder(width: 11, height: 5, coding: coding, head: head)
            let samples = (0..<55 * coding.channels).map { $0 % (1 << min(8, depth)) }
            for _ in 0..<2 { png.add(.init(width: 11, height: 5, samples: samples)) }
            seeds.append(png.finish())
        }
        return seeds
    }

    /// Chunks on colours, each combination once, and all kinds of profiles.
    private static var colorChunks: [[APNGBuilder.Chunk]] {
        typealias Chunk = APNGBuilder.Chunk
        let gamma = Chunk("gAMA", APNGBuilder.number(50_000))
        let points = [31_270, 32_900, 68_000, 32_000, 26_500, 69_000, 15_000, 6_000]
        let chromaticities = Chunk("cHRM", points.flatMap(APNGBuilder.number))
        var chunks: [[Chunk]] = [[Chunk("cICP", [12, 13, 0, 1])], [Chunk("cICP", [9, 14, 0, 1]), gamma], [gamma]]
        chunks += [[gamma, chromaticities], [Chunk("sRGB", [0]), gamma]]
        for profile in profiles {
            let chunk = Chunk("iCCP", [65, 0, 0] + APNGBuilder.stored(profile))
            chunks += Array(repeating: [chunk], count: 4)
        }
        return chunks
    }

    private static var profiles: [[UInt8]] {
        let corners: [[UInt8]] = (0..<8).map { [UInt8($0 * 30), 128, UInt8(255 - $0 * 20)] }
        var table = ICCProfile(tags: [("A2B0", ICCProfile.table(corners))])
        table.tags.append(("A2B1", table.tags[0].data))
        let gamma = ICCProfile.matrix((0.4, 0.2, 0), (0.4, 0.7, 0.1), (0.1, 0.1, 0.7), ICCProfile.curve(0, [1.8]))
        return [
            ICCProfile.displayP3.bytes(), gamma.bytes(), ICCProfile.linearGrey.bytes(), table.bytes(space: "Lab "),
        ]
    }

    static var webp: [[UInt8]] {
        var seeds = [WebPBuilder.still(.init(width: 5, height: 4, word: 0x80ff_0000))]
        for number in 0..<4 {
            var webp = WebPBuilder(width: 10, height: 8, loops: number, background: 0xffff_ffff)
            for (index, color) in colors.enumerated() {
                webp.add(.init(width: 6, height: 4, words: (0..<24).map { color &+ UInt32($0 * number) })) {
                    ($0.x, $0.y, $0.delay) = (index, index, 7 * index)
                    ($0.disposesToBackground, $0.blends) = (number % 2 == 1, number < 2)
                    $0.quality = index % 2 == 0 ? nil : Float(index * 30)
                }
            }
            if number == 3 { webp.append("EXIF", [1, 2, 3]) }
            seeds.append(webp.finish())
        }
        for profile in profiles {
            var webp = WebPBuilder(width: 3, height: 2, profile: profile)
            for color in colors { webp.add(.init(width: 3, height: 2, word: color)) }
            seeds.append(webp.finish())
        }
        return seeds
    }
}
