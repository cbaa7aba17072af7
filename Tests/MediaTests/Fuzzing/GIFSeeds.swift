#if canImport(TestSupport)
    import TestSupport
#endif

/// What the fuzzer begins with: small GIFs that have between them every feature of the format, made by the builder.
enum GIFSeeds {
    static var all: [[UInt8]] {
        [
            GIFBuilder.animation(frames: 3, width: 12, height: 9), GIFBuilder.noise(frames: 1, width: 24, height: 24),
            disposals, transparent, interlaced, palettes, extensions, outside, oldVersion, withoutScreen, broken, codeSizes,
            full,
        ]
    }

    /// Every way of disposing, the reserved ones too, of frames that overlap.
    private static var disposals: [UInt8] {
        var builder = GIFBuilder(width: 9, height: 7)
        for disposal in 0..<8 {
            let frame = GIFBuilder.Frame(width: 4, height: 3, color: UInt8(disposal))
            builder.add(frame) { ($0.x, $0.y, $0.disposal, $0.delay) = (disposal % 5, disposal % 4, disposal, disposal) }
        }
        return builder.finish()
    }

    private static var transparent: [UInt8] {
        var builder = GIFBuilder(width: 6, height: 6)
        builder.add(color: 3)
        let checked = (0..<36).map { UInt8($0 % 2 + 1) }
        for disposal in [1, 2, 3] {
            builder.add(GIFBuilder.Frame(width: 6, height: 6, pixels: checked)) {
                ($0.transparent, $0.disposal) = (1, disposal)
            }
        }
        builder.add(GIFBuilder.Frame(width: 6, height: 6, pixels: checked)) { $0.transparent = 255 }
        return builder.finish()
    }

    private static var interlaced: [UInt8] {
        var builder = GIFBuilder(width: 5, height: 19)
        for height in [19, 1, 3, 7] {
            let pixels = (0..<5 * height).map { UInt8($0 / 5 % 8) }
            builder.add(GIFBuilder.Frame(width: 5, height: height, pixels: pixels)) { $0.isInterlaced = true }
        }
        return builder.finish()
    }

    private static var palettes: [UInt8] {
        var builder = GIFBuilder(width: 4, height: 4, palette: nil)
        builder.add(color: 1)
        builder.add(GIFBuilder.Frame(width: 4, height: 4, color: 2), localPalette: GIFBuilder.palette)
        builder.add(GIFBuilder.Frame(width: 4, height: 4, color: 7), localPalette: Array(GIFBuilder.palette.prefix(2)))
        return builder.finish()
    }

    private static var extensions: [UInt8] {
        var builder = GIFBuilder(width: 2, height: 2)
        builder.addLoop(0)
        builder.addLoop(7, application: "ANIMEXTS1.0")
        builder.addExtension(0xfe, Array("a comment".utf8))
        builder.addRaw([0x21, 0xf9, 4, 0, 50, 0, 0, 0])
        builder.addExtension(0x01, [UInt8](repeating: 0, count: 12))
        builder.addRaw([0x21, 0xff, 11] + Array("XMP DataXMP".utf8) + [3, 1, 2, 0, 0, 0x21, 0x77, 1, 1, 0])
        builder.addRaw([0x21, 0xff, 11] + Array("NETSCAPE2.0".utf8) + [5, 2, 0, 0, 1, 0, 0])
        builder.add(color: 2)
        return builder.finish() + [1, 2, 3]
    }

    private static var outside: [UInt8] {
        var builder = GIFBuilder(width: 8, height: 8)
        for (x, y) in [(5, 5), (8, 8), (65_000, 65_000), (0, 7), (7, 0)] {
            builder.add(GIFBuilder.Frame(width: 4, height: 5, color: 3)) { ($0.x, $0.y, $0.disposal) = (x, y, 3) }
        }
        builder.add(GIFBuilder.Frame(width: 20, height: 20, color: 4)) { $0.disposal = 2 }
        builder.add(GIFBuilder.Frame(width: 0, height: 3, pixels: []))
        return builder.finish()
    }

    private static var oldVersion: [UInt8] {
        var builder = GIFBuilder(width: 3, height: 3, version: "87a")
        builder.add(color: 1, delay: nil)
        builder.add(color: 2, delay: nil)
        return builder.bytes
    }

    private static var withoutScreen: [UInt8] {
        var builder = GIFBuilder(width: 0, height: 0, background: 255)
        builder.add(GIFBuilder.Frame(width: 3, height: 2, color: 2)) { ($0.x, $0.y) = (1, 1) }
        return builder.finish()
    }

    /// Too few pixels, too many, no end code, no terminator.
    private static var broken: [UInt8] {
        var builder = GIFBuilder(width: 6, height: 6)
        builder.add(GIFBuilder.Frame(width: 6, height: 6, pixels: [1, 2, 3, 4]))
        builder.add(GIFBuilder.Frame(width: 6, height: 6, pixels: Array(repeating: 5, count: 90)))
        builder.add(GIFBuilder.Frame(width: 6, height: 6, color: 6)) { ($0.usesEndCode, $0.isTerminated) = (false, false) }
        return builder.bytes
    }

    private static var codeSizes: [UInt8] {
        var builder = GIFBuilder(width: 7, height: 3)
        for size in 2...8 {
            let pixels = (0..<21).map { UInt8($0 * size % 4) }
            builder.add(GIFBuilder.Frame(width: 7, height: 3, pixels: pixels)) { $0.minimumCodeSize = size }
        }
        return builder.finish()
    }

    /// So many strings that the table of codes is full more than once.
    private static var full: [UInt8] {
        var builder = GIFBuilder(width: 98, height: 98)
        var state: UInt32 = 1
        let pixels = (0..<98 * 98).map { _ -> UInt8 in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(state >> 24) & 7
        }
        builder.add(GIFBuilder.Frame(width: 98, height: 98, pixels: pixels))
        return builder.finish()
    }
}
