import TestSupport
import Testing

@testable import Media

/// What reaches the encoder, sample by sample.
@Suite("Canvas pixels are converted to 4:2:0 planes exactly")
struct PixelConverterTests {
    /// Planes of a size of their own, with a rim that must stay as it is.
    private final class Target {
        static let untouched: UInt8 = 0xee
        let width: Int
        let height: Int
        private var luma: UnsafeMutableBufferPointer<UInt8>
        private var chroma: UnsafeMutableBufferPointer<UInt8>
        /// Rows are longer than the picture is wide, as libav's are.
        private var stride: Int { width + 6 }

        init(width: Int, height: Int) {
            self.width = (width + 1) & ~1
            self.height = (height + 1) & ~1
            luma = .allocate(capacity: (self.width + 6) * (self.height + 2))
            chroma = .allocate(capacity: (self.width + 6) * (self.height + 2))
            luma.initialize(repeating: Self.untouched)
            chroma.initialize(repeating: Self.untouched)
        }

        deinit {
            luma.deallocate()
            chroma.deallocate()
        }

        func convert(_ canvas: borrowing Canvas, _ area: Rectangle) throws -> Bool {
            let luma = try #require(self.luma.baseAddress)
            let chroma = try #require(self.chroma.baseAddress)
            // Cb and Cr lie side by side in one buffer, each with half of its rows' bytes.
            return PixelConverter.convert(
                canvas, area,
                into: FramePlanes(
                    luma: luma, cb: chroma, cr: chroma + stride / 2, lumaStride: stride, cbStride: stride, crStride: stride))
        }

        func luma(_ x: Int, _ y: Int) -> UInt8 { luma[y * stride + x] }
        func cb(_ x: Int, _ y: Int) -> UInt8 { chroma[y * stride + x] }
        func cr(_ x: Int, _ y: Int) -> UInt8 { chroma[y * stride + stride / 2 + x] }

        /// Samples that were written, outside of the picture and inside.
        var written: (outside: Int, inside: Int) {
            var counts = (0, 0)
            for index in luma.indices where luma[index] != Self.untouched {
                let isInside = index % stride < width && index / stride < height
                if isInside { counts.1 += 1 } else { counts.0 += 1 }
            }
            return counts
        }
    }

    private let format = PixelFormat.yuv(background: .white)

    private func canvas(_ width: Int, _ height: Int, _ colors: [RGB]) throws -> Canvas {
        let canvas = try Canvas(width: width, height: height, format: format)
        for (index, color) in colors.enumerated() { canvas.pixels[index] = format.pack(color) }
        return canvas
    }

    private func whole(_ canvas: borrowing Canvas) -> Rectangle {
        Rectangle(x: 0, y: 0, width: canvas.width, height: canvas.height)
    }

    /// Up to 51 colours, no two alike.
    private func ramp(_ count: Int) -> [RGB] {
        (0..<count).map { (index: Int) -> RGB in
            let level = UInt8(index)
            return RGB(red: level * 3, green: 255 - level * 5, blue: level)
        }
    }

    private let red = RGB(red: 255, green: 0, blue: 0)
    private let black = RGB(red: 0, green: 0, blue: 0)

    @Test func chromaIsTheMeanOfItsFourPixels() throws {
        // BT.709 limited: red is Y 63, Cb 102.3, Cr 240; black 16, 128, 128; white 235, 128, 128.
        let canvas = try canvas(2, 2, [red, black, .white, red])
        let target = Target(width: 2, height: 2)
        #expect(try target.convert(canvas, whole(canvas)))
        let luma = [target.luma(0, 0), target.luma(1, 0), target.luma(0, 1), target.luma(1, 1)]
        #expect(luma == [63, 16, 235, 63])
        #expect(target.cb(0, 0) == 115 && target.cr(0, 0) == 184)
    }

    @Test(arguments: [(1, 1), (3, 2), (2, 3), (5, 7)]) func anOddSideIsACopyOfItsEdge(_ width: Int, _ height: Int) throws {
        let colors = ramp(width * height)
        let canvas = try canvas(width, height, colors)
        let target = Target(width: width, height: height)
        #expect(try target.convert(canvas, whole(canvas)))
        for y in 0..<target.height {
            for x in 0..<target.width {
                let source = colors[min(y, height - 1) * width + min(x, width - 1)]
                #expect(target.luma(x, y) == UInt8(truncatingIfNeeded: format.pack(source)), "\(x), \(y)")
            }
        }
        // The corner's chroma has nothing but the corner in it.
        if width % 2 == 1 && height % 2 == 1 {
            let corner = format.pack(colors[width * height - 1])
            let cb = ((corner >> 8 & 0xfff) + 8) >> 4
            let cr = ((corner >> 20) + 8) >> 4
            #expect(target.cb(width / 2, height / 2) == UInt8(cb))
            #expect(target.cr(width / 2, height / 2) == UInt8(cr))
        }
        #expect(target.written.outside == 0)
    }

    @Test func onlyTheBlocksOfTheRectangleAreWritten() throws {
        let canvas = try canvas(9, 9, Array(repeating: red, count: 81))
        let target = Target(width: 9, height: 9)
        #expect(try target.convert(canvas, Rectangle(x: 3, y: 3, width: 2, height: 1)))
        // Columns 2…5 and rows 2…3: whole 2×2 blocks.
        #expect(target.written.inside == 8 && target.written.outside == 0)
        #expect(target.luma(2, 2) == 63 && target.luma(5, 3) == 63 && target.luma(6, 2) == Target.untouched)
    }

    @Test func everyRectangleGivesWhatTheWholeWouldHave() throws {
        let before = ramp(49)
        let places: [[Int]] = [[0, 0, 1, 1], [6, 6, 1, 1], [5, 2, 2, 3], [1, 0, 3, 7], [0, 6, 7, 1], [6, 0, 1, 7]]
        for area in places.map({ Rectangle(x: $0[0], y: $0[1], width: $0[2], height: $0[3]) }) {
            var after = before
            for row in area.y..<area.maxY {
                for column in area.x..<area.maxX { after[row * 7 + column] = red }
            }
            let patched = Target(width: 7, height: 7)
            let first = try canvas(7, 7, before)
            let second = try canvas(7, 7, after)
            _ = try patched.convert(first, whole(first))
            #expect(try patched.convert(second, area))
            // Converting all of it again finds nothing to change.
            #expect(try !patched.convert(second, whole(second)), "\(area)")
        }
    }

    @Test func theSameContentsAreNoChange() throws {
        let canvas = try canvas(5, 3, Array(repeating: red, count: 15))
        let target = Target(width: 5, height: 3)
        #expect(try target.convert(canvas, whole(canvas)))
        #expect(try !target.convert(canvas, whole(canvas)))
        #expect(try !target.convert(canvas, Rectangle(x: 1, y: 1, width: 0, height: 4)))
    }

    /// Blocks are converted four at a time; no width and no column may show it.
    @Test(arguments: 1...20) func aChangedPixelIsSeenInEveryColumnOfEveryWidth(_ width: Int) throws {
        let before = ramp(width * 2)
        let target = Target(width: width, height: 2)
        let single = Target(width: width, height: 2)
        for column in 0..<width * 2 {
            var after = before
            after[column] = red
            let first = try canvas(width, 2, before)
            let second = try canvas(width, 2, after)
            _ = try target.convert(first, whole(first))
            #expect(try target.convert(second, whole(second)))
            for pair in 0..<(width + 1) / 2 {
                _ = try single.convert(second, Rectangle(x: pair * 2, y: 0, width: 1, height: 1))
                #expect(target.cb(pair, 0) == single.cb(pair, 0) && target.cr(pair, 0) == single.cr(pair, 0))
            }
            for x in 0..<target.width {
                #expect(target.luma(x, 0) == single.luma(x, 0) && target.luma(x, 1) == single.luma(x, 1))
            }
        }
        #expect(target.written.outside == 0)
    }

    @Test(arguments: 1...20) func aChangeOfChromaAloneIsSeenInEveryColumnOfEveryWidth(_ width: Int) throws {
        let (blue, brown) = (RGB(red: 0, green: 0, blue: 255), RGB(red: 87, green: 0, blue: 0))
        try #require(format.pack(blue) & 0xff == format.pack(brown) & 0xff)
        let target = Target(width: width, height: 2)
        for column in 0..<width * 2 {
            var colors = Array(repeating: blue, count: width * 2)
            let first = try canvas(width, 2, colors)
            _ = try target.convert(first, whole(first))
            colors[column] = brown
            let second = try canvas(width, 2, colors)
            #expect(try target.convert(second, whole(second)), "\(column)")
        }
    }
}
