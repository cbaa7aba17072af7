import TestSupport
import Testing

@testable import Media

@Suite("A padded picture has the size of its box") struct PaddingTests {
    private static let colors: [GIFBuilder.Color] = [(200, 30, 40), (30, 160, 60), (0, 0, 0)]
    private static let background = RGB(red: 20, green: 40, blue: 220)

    /// A GIF of two frames: one colour, then another in the right half, with a transparent column on the left if asked.
    private func gif(_ width: Int, _ height: Int, transparent: Bool = false) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height, palette: Self.colors)
        builder.add(
            GIFBuilder.Frame(
                width: width, height: height,
                pixels: (0..<width * height).map { transparent && $0 % width == 0 ? 2 : 0 })
        ) { if transparent { $0.transparent = 2 } }
        builder.add(GIFBuilder.Frame(width: width / 2, height: height, color: 1)) { $0.x = width - width / 2 }
        return builder.finish()
    }

    private static let cases: [(canvas: (Int, Int), box: (Int, Int))] = [
        ((24, 16), (40, 40)), ((23, 15), (41, 39)), ((24, 16), (24, 33)), ((120, 80), (41, 60)), ((96, 96), (64, 33)),
        ((95, 31), (47, 47)),
    ]

    /// Whether a pixel of a frame is near a colour.
    private func isNear(_ rgb: ArraySlice<UInt8>, _ color: RGB) -> Bool {
        zip(rgb, [color.red, color.green, color.blue]).allSatisfy { abs(Int($0) - Int($1)) <= 14 }
    }

    @Test(arguments: cases.indices) func anMP4HasTheBackgroundAroundThePicture(_ index: Int) throws {
        let (canvas, box) = Self.cases[index]
        let options = SizeOptions(width: box.0, height: box.1, fit: .pad)
        let video = try Converted(gif(canvas.0, canvas.1)) {
            $0.size = options
            $0.background = Self.background
            $0.quality = 100
        }
        let content = PictureGeometry(width: canvas.0, height: canvas.1, options: options).content
        #expect(video.boxes.width == (box.0 + 1) & ~1 && video.boxes.height == (box.1 + 1) & ~1)
        let frames = try video.frames()
        #expect(frames.count == 2)
        for (number, frame) in frames.enumerated() {
            for y in 0..<box.1 {
                for x in 0..<box.0 {
                    let offset = (y * video.boxes.width + x) * 3
                    let pixel = frame[offset..<offset + 3]
                    // Chroma is shared at the edges of the picture.
                    let isOutside = x < content.x - 2 || x > content.maxX + 1 || y < content.y - 2 || y > content.maxY + 1
                    let isLeft = x > content.x + 2 && x < content.x + content.width / 2 - 3
                    let isRight = x > content.x + content.width / 2 + 3 && x < content.maxX - 3
                    let isInside = y > content.y + 2 && y < content.maxY - 3
                    if isOutside {
                        #expect(isNear(pixel, Self.background), "\(number) \(x) \(y)")
                    } else if isInside && isLeft || isInside && isRight {
                        let color = Self.colors[number == 1 && isRight ? 1 : 0]
                        #expect(
                            isNear(pixel, RGB(red: color.red, green: color.green, blue: color.blue)), "\(number) \(x) \(y)")
                    }
                }
            }
        }
    }

    @Test(arguments: [OutputFormat.png, .jpg, .webp], cases.indices)
    func postersHaveAMargin(_ format: OutputFormat, _ index: Int) throws {
        let (canvas, box) = Self.cases[index]
        let options = SizeOptions(width: box.0, height: box.1, fit: .pad)
        let poster = try Converted(gif(canvas.0, canvas.1, transparent: true), as: format) {
            $0.size = options
            $0.background = Self.background
        }
        #expect(poster.result.width == box.0 && poster.result.height == box.1)
        #expect(poster.result.isTransparent == (format != .jpg))
        guard format == .png else { return }
        let content = PictureGeometry(width: canvas.0, height: canvas.1, options: options).content
        let words = try poster.picture()
        for y in 0..<box.1 {
            for x in 0..<box.0 {
                let isInside =
                    x > content.x && x < content.maxX && y >= content.y && y < content.maxY
                let word = words[y * box.0 + x]
                if isInside && x > content.x + 6 {
                    #expect(word == 0xff_281e_c8, "\(x) \(y)")
                } else if !isInside && x != content.x {
                    #expect(word >> 24 == 0, "\(x) \(y)")
                }
            }
        }
    }

    @Test(arguments: [OutputFormat.webm, .avif]) func whatHasAlphaIsTransparentAroundThePicture(_ format: OutputFormat) throws {
        let padded = try Converted(gif(24, 16), as: format) { $0.size = SizeOptions(width: 41, height: 40, fit: .pad) }
        #expect(padded.result.width == 41 && padded.result.height == 40 && padded.result.isTransparent)
        let reduced = try Converted(gif(120, 80), as: format) { $0.size = SizeOptions(width: 41, height: 40, fit: .pad) }
        #expect(reduced.result.isTransparent)
        let filled = try Converted(gif(24, 16), as: format) { $0.size = SizeOptions(width: 24, height: 16, fit: .pad) }
        #expect(!filled.result.isTransparent)
    }

    @Test func theLimitsHoldForThePaddedPicture() {
        var limits = MediaLimits()
        limits.totalPixels = 100 * 100 * 2 - 1
        let options = TranscodeOptions(size: SizeOptions(width: 100, height: 100, fit: .pad))
        for format in [OutputFormat.mp4, .webm, .avif] {
            #expect(throws: TranscodeError.tooLarge(.totalPixels, value: 20_000, maximum: 19_999)) {
                try Converted(gif(24, 16), Transcoder(output: format, options: options, limits: limits))
            }
        }
    }
}
