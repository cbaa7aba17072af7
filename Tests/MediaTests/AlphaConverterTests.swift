import TestSupport
import Testing

@testable import Media

@Suite("Planes with alpha are those of the visible pixels") struct AlphaConverterTests {
    /// Planes of even size in which every sample begins as 77.
    private final class Target {
        let width: Int
        let height: Int
        private let luma: SamplePlane
        private let cb: SamplePlane
        private let cr: SamplePlane
        private let alpha: SamplePlane

        init(width: Int, height: Int) throws {
            self.width = (width + 1) & ~1
            self.height = (height + 1) & ~1
            luma = try SamplePlane(width: self.width, height: self.height)
            cb = try SamplePlane(width: self.width / 2, height: self.height / 2)
            cr = try SamplePlane(width: self.width / 2, height: self.height / 2)
            alpha = try SamplePlane(width: self.width, height: self.height)
        }

        var planes: FramePlanes {
            FramePlanes(
                luma: luma.samples, cb: cb.samples, cr: cr.samples, lumaStride: luma.stride, cbStride: cb.stride,
                crStride: cr.stride, alpha: FramePlanes.Alpha(samples: alpha.samples, stride: alpha.stride))
        }

        /// Y, Cb, Cr and alpha of a pixel.
        func pixel(_ x: Int, _ y: Int) -> [Int] {
            [luma.row(y)[x], cb.row(y / 2)[x / 2], cr.row(y / 2)[x / 2], alpha.row(y)[x]].map(Int.init)
        }

        var all: [[Int]] { (0..<width * height).map { pixel($0 % width, $0 / width) } }
    }

    private func canvas(width: Int, height: Int, _ pixels: [UInt32]) throws -> Canvas {
        let canvas = try Canvas(width: width, height: height, format: .rgba)
        for (index, pixel) in pixels.enumerated() { canvas.pixels[index] = pixel }
        return canvas
    }

    private func converter(width: Int, height: Int, _ options: SizeOptions = SizeOptions()) throws -> AlphaConverter {
        try AlphaConverter(PictureGeometry(width: width, height: height, options: options))
    }

    private static let red: UInt32 = 0xff00_00ff
    private static let green: UInt32 = 0xff00_ff00
    private static let redSamples = [63, 102, 240]

    private func whole(_ width: Int, _ height: Int) -> Rectangle { Rectangle(x: 0, y: 0, width: width, height: height) }

    @Test func opaquePicturesHaveTheSamplesOfOtherVideos() throws {
        var numbers = SeededNumbers(seed: 3)
        for (width, height) in [(33, 17), (16, 16), (1, 1), (50, 3)] {
            let pixels = (0..<width * height).map { _ in UInt32.random(in: 0...0xff_ffff, using: &numbers) | 0xff00_0000 }
            let target = try Target(width: width, height: height)
            let canvas = try canvas(width: width, height: height, pixels)
            #expect(try converter(width: width, height: height).convert(canvas, whole(width, height), into: target.planes))
            let plain = try Target(width: width, height: height)
            let yuv = try Canvas(width: width, height: height, format: .yuv(background: .white))
            for (index, pixel) in pixels.enumerated() { yuv.pixels[index] = PixelFormat.yuv(pixel) }
            _ = PixelConverter.convert(yuv, whole(width, height), into: plain.planes)
            #expect(target.all.map { $0.dropLast() } == plain.all.map { $0.dropLast() })
            #expect(target.all.allSatisfy { $0[3] == 255 })
        }
    }

    @Test func colourUnderTransparentPixelsIsThatOfTheVisibleOnesBesideThem() throws {
        // One red pixel in each block of 4 × 4; everything else is transparent.
        let pixels = (0..<32 * 32).map { $0 % 4 == 1 && $0 / 32 % 4 == 3 ? Self.red : 0 }
        let target = try Target(width: 32, height: 32)
        _ = try converter(width: 32, height: 32).convert(
            try canvas(width: 32, height: 32, pixels), whole(32, 32), into: target.planes)
        #expect(target.all.allSatisfy { Array($0.prefix(3)) == Self.redSamples })
        #expect(target.all.map { $0[3] == 255 } == pixels.map { $0 != 0 })
    }

    @Test func blocksWithoutAVisiblePixelTakeTheColourOfTheirNeighboursAndOthersAreGrey() throws {
        var pixels = [UInt32](repeating: 0, count: 24 * 4)
        pixels[3] = Self.red
        let target = try Target(width: 24, height: 4)
        let converter = try converter(width: 24, height: 4)
        _ = try converter.convert(try canvas(width: 24, height: 4, pixels), whole(24, 4), into: target.planes)
        #expect(Array(target.pixel(7, 2).prefix(3)) == Self.redSamples)
        #expect(target.pixel(8, 2) == [126, 128, 128, 0] && target.pixel(23, 3) == [126, 128, 128, 0])
        // Red disappears, and green appears at the other end.
        pixels[3] = 0
        pixels[23] = Self.green
        let moved = try canvas(width: 24, height: 4, pixels)
        #expect(try converter.convert(moved, Rectangle(x: 3, y: 0, width: 21, height: 1), into: target.planes))
        #expect(target.pixel(3, 0) == [126, 128, 128, 0] && target.pixel(7, 2) == [126, 128, 128, 0])
        #expect(target.pixel(17, 2)[0] > 150 && target.pixel(20, 2)[0] > 150 && target.pixel(23, 0)[3] == 255)
    }

    @Test func theChangedPartGivesWhatTheWholeGives() throws {
        var numbers = SeededNumbers(seed: 8)
        let (width, height) = (75, 53)
        var pixels = [UInt32](repeating: Self.red, count: width * height)
        let parts = try converter(width: width, height: height)
        let target = try Target(width: width, height: height)
        for step in 0..<20 {
            let area = Rectangle(
                x: .random(in: 0..<60, using: &numbers), y: .random(in: 0..<40, using: &numbers),
                width: .random(in: 1...15, using: &numbers), height: .random(in: 1...13, using: &numbers))
            let words: [UInt32] = [0, Self.green, Self.red, 0x8000_ff00]
            let word = words.randomElement(using: &numbers) ?? 0
            for y in area.y..<area.maxY { for x in area.x..<area.maxX { pixels[y * width + x] = word } }
            let canvas = try canvas(width: width, height: height, pixels)
            _ = try parts.convert(canvas, step == 0 ? whole(width, height) : area, into: target.planes)
            let fresh = try Target(width: width, height: height)
            _ = try converter(width: width, height: height).convert(canvas, whole(width, height), into: fresh.planes)
            #expect(target.all == fresh.all)
        }
    }

    @Test func anUnchangedPictureIsNoChange() throws {
        let pixels = (0..<40 * 40).map { $0 % 3 == 0 ? Self.red : 0 }
        let canvas = try canvas(width: 40, height: 40, pixels)
        let target = try Target(width: 40, height: 40)
        let converter = try converter(width: 40, height: 40)
        #expect(try converter.convert(canvas, whole(40, 40), into: target.planes))
        #expect(try !converter.convert(canvas, whole(40, 40), into: target.planes))
        #expect(try !converter.convert(canvas, .empty, into: target.planes))
    }

    @Test func scalingMixesNoColourOfTransparentPixels() throws {
        let pixels = (0..<64 * 64).map { $0 % 64 < 30 && $0 / 64 > 20 ? Self.red : 0 }
        let target = try Target(width: 21, height: 21)
        _ = try converter(width: 64, height: 64, SizeOptions(width: 21)).convert(
            try canvas(width: 64, height: 64, pixels), whole(64, 64), into: target.planes)
        var halves = 0
        for y in 0..<21 {
            for x in 0..<21 {
                let pixel = target.pixel(x, y)
                if pixel[3] > 8 { #expect(zip(pixel, Self.redSamples).allSatisfy { abs($0 - $1) <= 4 }, "\(pixel)") }
                if (30..<230).contains(pixel[3]) { halves += 1 }
            }
        }
        #expect(halves >= 14)
    }
}
