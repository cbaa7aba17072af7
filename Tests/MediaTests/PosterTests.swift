import Foundation
import TestSupport
import Testing

@testable import Media

@Suite("A poster shows one frame", .timeLimit(.minutes(10)))
struct PosterTests {
    /// Frames of a moving square; red, green and blue corners; a transparent edge.
    private func gif(transparent: Bool = false) -> [UInt8] {
        var builder = GIFBuilder(width: 41, height: 27)
        for index in 0..<4 {
            let pixels = (0..<41 * 27).map { position -> UInt8 in
                let (x, y) = (position % 41, position / 41)
                if transparent && x >= 30 { return 7 }
                if (x / 4 + y / 4) % 3 == index % 3 { return UInt8(2 + index) }
                return UInt8((x / 5) % 2)
            }
            builder.add(GIFBuilder.Frame(width: 41, height: 27, pixels: pixels)) {
                $0.transparent = transparent ? 7 : nil
                $0.disposal = transparent ? 2 : 0
            }
        }
        return builder.finish()
    }

    private func distance(_ a: UInt32, _ b: UInt32) -> Int {
        stride(from: UInt32(0), to: 32, by: 8).map { abs(Int(a >> $0 & 255) - Int(b >> $0 & 255)) }.max() ?? 0
    }

    @Test(arguments: [0, 1, 3]) func aPNGIsTheFrameToTheBit(_ frame: Int) throws {
        for transparent in [false, true] {
            let gif = gif(transparent: transparent)
            let poster = try Converted(gif, as: .png) { $0.frame = .number(frame) }
            #expect(try poster.picture() == Composing.frames(gif)[frame])
            #expect(poster.result.width == 41 && poster.result.height == 27 && poster.result.isTransparent == transparent)
        }
    }

    @Test func framesPastTheEndAreTheLastOne() throws {
        let poster = try Converted(gif(), as: .png) { $0.frame = .number(1000) }
        #expect(try poster.picture() == Composing.frames(gif())[3])
    }

    @Test func onlyFramesUpToTheWantedOneAreRead() throws {
        let whole = gif()
        let first = try Converted(whole, as: .png) { _ in }
        #expect(first.result.frames == 1)
        // A file that breaks off after its first frame has the same poster.
        let second = try #require(whole.indices.dropFirst(60).first { whole[$0...].starts(with: [0x21, 0xf9, 4]) && $0 > 100 })
        let cut = try Converted(Array(whole[..<(second + 40)]), as: .png) { $0.frame = .number(3) }
        #expect(cut.bytes == first.bytes && cut.result.frames == 1)
        // One that breaks off within it shows its rows so far.
        let part = try Converted(Array(whole[..<(second - 40)]), as: .png) { _ in }
        let (shown, all) = try (part.picture(), first.picture())
        let rows = try #require(shown.firstIndex { $0 == 0 })
        #expect(part.result.isBrokenOff && rows > 0 && shown.prefix(rows) == all.prefix(rows))
    }

    @Test(arguments: [OutputFormat.jpg, .webp]) func aLossyPosterLooksLikeTheFrame(_ format: OutputFormat) throws {
        var builder = GIFBuilder(width: 64, height: 48)
        // Large areas, whose middles must have their colours.
        let pixels = (0..<64 * 48).map { position -> UInt8 in
            let (column, row) = (position % 64 / 16, position / 64 / 24)
            return UInt8(1 + column + row * 3)
        }
        builder.add(GIFBuilder.Frame(width: 64, height: 48, pixels: pixels))
        let gif = builder.finish()
        let poster = try Converted(gif, as: format) { _ in }
        let picture = try poster.picture()
        let frame = try Composing.frames(gif)[0]
        try #require(picture.count == frame.count)
        for (x, y) in [(8, 12), (24, 12), (40, 12), (56, 12), (8, 36), (24, 36), (40, 36), (56, 36)] {
            #expect(distance(picture[y * 64 + x], frame[y * 64 + x]) <= 10, "\(x), \(y)")
        }
    }

    @Test func aJPEGIsFullRangeWithAJFIFHeaderAndNothingBeside() throws {
        let poster = try Converted(gif(), as: .jpg) { _ in }
        let stream = try poster.stream()
        #expect(stream["codec_name"] == "mjpeg" && stream["color_range"] == "pc" && stream["pix_fmt"] == "yuvj420p")
        #expect(Array(poster.bytes[0..<11]) == [0xff, 0xd8, 0xff, 0xe0, 0, 16] + Array("JFIF\0".utf8))
        // No comment (COM): neither the encoder's name nor a word on colours.
        #expect(!zip(poster.bytes, poster.bytes.dropFirst()).contains { $0 == 0xff && $1 == 0xfe })
        #expect(try Converted(gif(), as: .jpg) { $0.quality = 95 }.stream()["pix_fmt"] == "yuvj444p")
    }

    @Test func blackAndWhiteStayWhatTheyAreInAJPEG() throws {
        for (index, level) in [(0, 0), (1, 255), (6, 128)] {
            var builder = GIFBuilder(width: 20, height: 20)
            builder.add(color: UInt8(index))
            let poster = try Converted(builder.finish(), as: .jpg) { _ in }
            for word in try poster.picture() {
                #expect(distance(word, 0xff00_0000 | UInt32(level) * 0x010101) <= 2)
            }
        }
    }

    @Test func transparencyIsKeptInWebPAndLaidOnTheBackgroundInJPEG() throws {
        let gif = gif(transparent: true)
        let webp = try Converted(gif, as: .webp) { _ in }.picture()
        #expect(webp[13 * 41 + 37] >> 24 == 0 && webp[13 * 41 + 10] >> 24 == 255)
        let blue = try Converted(gif, as: .jpg) { $0.background = RGB(red: 0, green: 0, blue: 255) }.picture()
        #expect(distance(blue[13 * 41 + 38], 0xffff_0000) <= 12)
    }

    @Test func aResizedEdgeToTransparencyKeepsItsColour() throws {
        var builder = GIFBuilder(width: 64, height: 64)
        builder.add(GIFBuilder.Frame(width: 64, height: 64, pixels: (0..<4096).map { $0 % 64 < 31 ? 2 : 7 })) {
            $0.transparent = 7
        }
        let poster = try Converted(builder.finish(), as: .png) { $0.size.width = 16 }
        let picture = try poster.picture()
        try #require(picture.count == 256)
        #expect(picture.contains { (1..<255).contains($0 >> 24) }, "an edge that is half transparent")
        for word in picture where word >> 24 > 16 {
            // Red, without black or white mixed in.
            #expect(word & 255 >= 250 && word >> 8 & 0xffff & 0xff <= 3 && word >> 16 & 255 <= 3, "\(String(word, radix: 16))")
        }
        #expect(picture[8 * 16 + 2] == 0xff00_00ff && picture[8 * 16 + 14] == 0)
    }

    @Test(arguments: [OutputFormat.jpg, .png, .webp]) func sizesAreAsAskedAndMayBeOdd(_ format: OutputFormat) throws {
        let poster = try Converted(gif(), as: format) { $0.size.width = 21 }
        #expect(poster.result.width == 21 && poster.result.height == 14)
        let stream = try poster.stream()
        #expect(stream["width"] == "21" && stream["height"] == "14")
        #expect(poster.result.bytes == poster.bytes.count)
        let tiny = try Converted(gif(), as: format) { $0.size = SizeOptions(width: 2, height: 2, fit: .fill) }
        #expect(try tiny.stream()["width"] == "2")
    }

    @Test(arguments: [OutputFormat.jpg, .webp]) func qualityTradesBytes(_ format: OutputFormat) throws {
        let gif = GIFBuilder.noise(frames: 1, width: 60, height: 60)
        let sizes = try [1, 20, 60, 100].map { quality in try Converted(gif, as: format) { $0.quality = quality }.bytes.count }
        #expect(sizes == sizes.sorted() && Set(sizes).count == 4)
    }

    @Test func picturesOfManyColoursArePNGsToo() throws {
        var builder = GIFBuilder(width: 32, height: 32)
        for part in 0..<2 {
            let palette: [GIFBuilder.Color] = (0..<256).map { (UInt8($0), UInt8(255 - $0), UInt8(part * 90)) }
            let pixels = (0..<32 * 16).map { UInt8($0 % 256) }
            builder.add(GIFBuilder.Frame(width: 32, height: 16, pixels: pixels), localPalette: palette) {
                ($0.y, $0.minimumCodeSize) = (part * 16, 8)
            }
        }
        let gif = builder.finish()
        let poster = try Converted(gif, as: .png) { $0.frame = .number(1) }
        #expect(try poster.picture() == Composing.frames(gif)[1])
        #expect(try poster.stream()["pix_fmt"] == "rgb24")
        // 256 colours, and what no image covers: one more than a palette has.
        #expect(try Converted(gif, as: .png) { _ in }.stream()["pix_fmt"] == "rgba")
    }

    @Test func limitsHoldForPosters() {
        let limits = MediaLimits(frames: 2)
        #expect(throws: TranscodeError.tooLarge(.frames, value: 3, maximum: 2)) {
            try Converted(gif(), Transcoder(output: .png, options: TranscodeOptions(frame: .number(3)), limits: limits))
        }
        #expect(throws: TranscodeError.tooLarge(.side, value: 41, maximum: 40)) {
            try Converted(gif(), Transcoder(output: .png, limits: MediaLimits(side: 40)))
        }
        #expect(throws: TranscodeError.notAnAnimation) { try Converted(Array("no".utf8), as: .jpg) { _ in } }
    }
}
