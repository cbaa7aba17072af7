import TestSupport
import Testing

@testable import Media

@Suite("Undithering with neighbours in time") struct VideoUnditherTests {
    private static let width = DitheredFilm.width
    private static let height = DitheredFilm.height
    private static let greys = DitheredFilm.greys
    private static let frames = 5

    /// Rows of the film with a texture.
    private static let textured = 40

    /// The lightness of a film whose view moves by a number of pixels a frame: a gradient, above with a fine texture, which a filter of a
    /// single picture cannot tell from dither.
    private static func film(_ frame: Int, speed: Int) -> [Double] {
        (0..<width * height).map { index in
            let (x, y) = (index % width + frame * speed, index / width)
            // Any numbers that differ from pixel to pixel.
            let grain = Double(UInt32(truncatingIfNeeded: (x * 73_856_093) ^ (y * 19_349_663)) % 1009) / 1009
            return 70 + Double(x) * 0.4 + Double(y) * 0.5 + (y < textured ? 50 * grain : 0)
        }
    }

    /// A picture of the film with diffused errors.
    private static func picture(_ frame: Int, speed: Int) -> [UInt8] {
        DitheredFilm.reduced(film(frame, speed: speed), .diffused)
    }

    private static func gif(_ pictures: [[UInt8]]) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height, palette: greys)
        for pixels in pictures {
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels)) { $0.minimumCodeSize = 5 }
        }
        return builder.finish()
    }

    /// The luma of the pictures: as in the GIF, without dither in each, and with the neighbours in time.
    private func undithered(
        _ gif: [UInt8], wholeAreas: Bool = false
    ) throws -> (original: [[Double]], single: [[Double]], video: [[Double]], gains: [Double]) {
        try gif.withUnsafeBytes { bytes in
            var decoder = try GIFReader(bytes, limits: MediaLimits())
            let format = PixelFormat.yuv(background: .white)
            var canvas = try Canvas(width: Self.width, height: Self.height, format: format)
            let single = try Undither(width: Self.width, height: Self.height, format: format)
            let video = try VideoUndither(width: Self.width, height: Self.height, format: format)
            let whole = Rectangle(x: 0, y: 0, width: Self.width, height: Self.height)
            func luma(_ canvas: borrowing Canvas) -> [Double] {
                (0..<Self.width * Self.height).map { Double(canvas.pixels[$0] & 255) }
            }
            var originals: [[Double]] = []
            var singles: [[Double]] = []
            var videos: [[Double]] = []
            var gains: [Double] = []
            func complete(hasNext: Bool) throws {
                _ = video.complete(hasNext: hasNext)
                try video.withOutput { output throws(TranscodeError) in videos.append(luma(output)) }
                gains.append(video.gain)
            }
            while try decoder.next(), let pixels = try decoder.readPixels() {
                let drawn = try canvas.draw(decoder, pixels)
                single.enter(decoder)
                video.enter(decoder)
                _ = single.update(canvas, whole)
                try video.add(canvas, wholeAreas || originals.isEmpty ? whole : drawn)
                if !originals.isEmpty { try complete(hasNext: true) }
                originals.append(luma(canvas))
                singles.append(luma(single.output))
            }
            try complete(hasNext: false)
            return (originals, singles, videos, gains)
        }
    }

    /// The mean squared error in the rows with a texture.
    private func error(_ luma: [Double], against film: [Double]) -> Double {
        let count = Self.textured * Self.width
        return (0..<count).reduce(0) { $0 + (luma[$1] - film[$1]) * (luma[$1] - film[$1]) } / Double(count)
    }

    @Test(arguments: [1, 3]) func aMovingFilmComesCloserThanOnePictureAlone(_ speed: Int) throws {
        let result = try undithered(Self.gif((0..<Self.frames).map { Self.picture($0, speed: speed) }))
        #expect(result.video.count == Self.frames)
        for frame in 1..<Self.frames - 1 {
            // Limited range, as of the canvas.
            let film = Self.film(frame, speed: speed).map { 16 + $0 * 219 / 255 }
            let before = error(result.original[frame], against: film)
            let single = error(result.single[frame], against: film)
            let video = error(result.video[frame], against: film)
            #expect(video < 0.85 * single, "frame \(frame): \(before), \(single), \(video)")
            #expect(result.gains[frame] > 0.3)
        }
    }

    @Test func aPatternThatStandsStillIsTakenOutOfEachPictureAlone() throws {
        let picture = Self.picture(0, speed: 0)
        // One pixel changes, so that the frames are no repetition.
        let pictures = (0..<Self.frames).map { frame in
            var pixels = picture
            pixels[0] = UInt8(frame)
            return pixels
        }
        let result = try undithered(Self.gif(pictures))
        for frame in 0..<Self.frames {
            let outside = (0..<Self.width * Self.height).filter { $0 % Self.width >= 16 || $0 / Self.width >= 16 }
            #expect(outside.allSatisfy { result.video[frame][$0] == result.single[frame][$0] })
            #expect(result.gains[frame] < 0.05)
        }
    }

    /// A mean of pictures that differ by more than their dither blurs what moves.
    @Test func aPictureBetweenSimilarOnesThatAreLighterStaysAlone() throws {
        let pictures = (0..<4).map { frame in
            let lightness = frame % 2 == 0 ? 101.0 : 113.0
            let film = (0..<Self.width * Self.height).map { index -> Double in
                lightness + Double(index % Self.width + index / Self.width) / 50
            }
            return DitheredFilm.reduced(film, .diffused)
        }
        let result = try undithered(Self.gif(pictures))
        for frame in 0..<4 {
            #expect(result.video[frame] == result.single[frame] && result.gains[frame] == 0)
            #expect(result.single[frame] != result.original[frame])
        }
    }

    @Test func aPictureBetweenOthersThatHaveNothingInCommonStaysAlone() throws {
        let dark = Self.picture(0, speed: 0).map { $0 / 3 }
        let light = dark.map { 21 - $0 }
        let result = try undithered(Self.gif([dark, light, dark, light]))
        for frame in 0..<4 {
            let same = zip(result.video[frame], result.single[frame]).allSatisfy { $0 == $1 }
            #expect(same && result.gains[frame] == 0)
        }
    }

    @Test func noPixelMovesFurtherThanThePaletteExplains() throws {
        let result = try undithered(Self.gif((0..<Self.frames).map { Self.picture($0, speed: 2) }))
        // The mean distance to the three nearest greys: 12, 12 and 24 levels, of which the limited range has 219 / 255.
        for (video, original) in zip(result.video, result.original) {
            #expect(zip(video, original).allSatisfy { abs($0 - $1) <= 16 })
        }
    }

    @Test func changesOfAPartGiveTheSamePictureAsTheWhole() throws {
        let (left, top, side) = (35, 21, 20)
        let moving = (0..<Self.frames).map { Self.picture($0, speed: 2) }
        let pictures = moving.map { pixels in
            var merged = moving[0]
            for y in top..<top + side {
                for x in left..<left + side { merged[y * Self.width + x] = pixels[y * Self.width + x] }
            }
            return merged
        }
        let gif = Self.gif(pictures)
        let (part, whole) = try (undithered(gif), undithered(gif, wholeAreas: true))
        let same = part.video == whole.video
        #expect(same)
        #expect(part.gains.contains { $0 > 0 })
    }

    @Test func aSinglePictureIsComplete() throws {
        let result = try undithered(Self.gif([Self.picture(0, speed: 1)]))
        let same = result.video == result.single
        #expect(same)
    }

    @Test func samplesKeepTheirTimes() throws {
        let gif = Self.gif((0..<Self.frames).flatMap { [Self.picture($0, speed: 2), Self.picture($0, speed: 2)] })
        func result(_ undithers: Bool, _ change: (inout TranscodeOptions) -> Void) throws -> TranscodeResult {
            var result = try Converted(gif) {
                $0.undither = undithers ? .always : .never
                change(&$0)
            }.result
            #expect(result.isUndithered == undithers)
            (result.bytes, result.isUndithered) = (0, false)
            return result
        }
        let changes: [(inout TranscodeOptions) -> Void] = [
            { _ in }, { $0.time.start = 25 }, { $0.time.end = 45 }, { $0.time.ceiling = 4000 }, { $0.time.speed = 2500 },
            { $0.time.loops = 3 }, { $0.codec = .av1 },
        ]
        for change in changes { #expect(try result(true, change) == result(false, change)) }
    }

    /// Pictures of more than about a million pixels, or of very long rows, are complete at once.
    @Test func largePicturesAreUnditheredAlone() throws {
        for (width, height, needsNext) in [(1000, 1000, true), (1000, 1100, false), (65_535, 1, false), (4000, 200, true)] {
            let undither = try VideoUndither(width: width, height: height, format: .yuv(background: .white))
            #expect(undither.needsNext == needsNext)
        }
        #expect(try !VideoUndither(width: 16, height: 16, format: .rgba).needsNext)
        var builder = GIFBuilder(width: 1008, height: 1100, palette: Self.greys)
        // A checkerboard of two colours, which become lighter from left to right.
        let pixels = (0..<1008 * 1100).map { index -> UInt8 in
            let (x, y) = (index % 1008, index / 1008)
            return UInt8(4 + x / 90 + (x + y) % 2)
        }
        builder.add(GIFBuilder.Frame(width: 1008, height: 1100, pixels: pixels)) { $0.minimumCodeSize = 5 }
        let part = GIFBuilder.Frame(width: 64, height: 64, pixels: [UInt8](repeating: 7, count: 64 * 64))
        for frame in 0..<3 { builder.add(part) { ($0.x, $0.y, $0.minimumCodeSize) = (100 * frame, 50, 5) } }
        let gif = builder.finish()
        // At the default quality, little of such a fine pattern is left in either.
        func video(undither: Bool) throws -> Converted {
            try Converted(gif) { ($0.quality, $0.undither) = (95, undither ? .always : .never) }
        }
        let (plain, undithered) = try (video(undither: false), video(undither: true))
        #expect(undithered.result.samples == plain.result.samples)
        #expect(undithered.bytes.count < plain.bytes.count)
    }

    @Test func aFilmWithoutDitherIsTheSameVideo() throws {
        var builder = GIFBuilder(width: Self.width, height: Self.height, palette: Self.greys)
        for frame in 0..<Self.frames {
            let pixels = (0..<Self.width * Self.height).map { UInt8(($0 % Self.width + frame) / 8 + $0 / Self.width / 16) }
            builder.add(GIFBuilder.Frame(width: Self.width, height: Self.height, pixels: pixels)) { $0.minimumCodeSize = 5 }
        }
        let gif = builder.finish()
        let same = try Converted(gif).bytes == Converted(gif) { $0.undither = .always }.bytes
        #expect(same)
    }
}
