@testable import Media
import TestSupport
import Testing

@Suite("Frames are composed as browsers compose them")
struct CanvasTests {
    private let white = Composing.color(1)
    private let red = Composing.color(2)
    private let green = Composing.color(3)
    private let blue = Composing.color(4)

    /// A 3×1 canvas of white, a red pixel in the middle with the disposal, then a green pixel on the right.
    private func disposing(_ disposal: Int) throws -> [[UInt32]] {
        var builder = GIFBuilder(width: 3, height: 1)
        builder.add(color: 1)
        builder.add(GIFBuilder.Frame(width: 1, height: 1, color: 2)) { ($0.x, $0.disposal) = (1, disposal) }
        builder.add(GIFBuilder.Frame(width: 1, height: 1, color: 3)) { $0.x = 2 }
        return try Composing.frames(builder.finish())
    }

    @Test(arguments: [0, 1]) func unspecifiedAndKeepLeaveTheFrame(_ disposal: Int) throws {
        #expect(try disposing(disposal) == [[white, white, white], [white, red, white], [white, red, green]])
    }

    @Test func clearMakesTheRectangleTransparent() throws {
        #expect(try disposing(2)[2] == [white, Composing.clear, green])
    }

    /// Some encoders write 4 for 3.
    @Test(arguments: [3, 4]) func restoreBringsBackWhatWasThere(_ disposal: Int) throws {
        #expect(try disposing(disposal)[2] == [white, white, green])
    }

    @Test(arguments: [5, 6, 7]) func reservedDisposalsKeepTheFrame(_ disposal: Int) throws {
        #expect(try disposing(disposal)[2] == [white, red, green])
    }

    @Test func restoreAfterRestoreGoesBackToTheSameCanvas() throws {
        var builder = GIFBuilder(width: 2, height: 1)
        builder.add(color: 1)
        for color in [UInt8(2), 3] {
            builder.add(GIFBuilder.Frame(width: 1, height: 1, color: color)) { $0.disposal = 3 }
        }
        builder.add(GIFBuilder.Frame(width: 1, height: 1, color: 4)) { $0.x = 1 }
        #expect(try Composing.frames(builder.finish()).last == [white, blue])
    }

    @Test func transparentIndexLeavesWhatIsThere() throws {
        var builder = GIFBuilder(width: 2, height: 1)
        builder.add(color: 1)
        builder.add(GIFBuilder.Frame(width: 2, height: 1, pixels: [0, 2])) { $0.transparent = 0 }
        #expect(try Composing.frames(builder.finish())[1] == [white, red])
    }

    @Test func transparentIndexOutsideThePaletteStillIsTransparent() throws {
        var builder = GIFBuilder(width: 2, height: 1, palette: Array(GIFBuilder.palette.prefix(2)))
        builder.add(GIFBuilder.Frame(width: 2, height: 1, pixels: [7, 1])) { $0.transparent = 7 }
        #expect(try Composing.frames(builder.finish())[0] == [Composing.clear, white])
    }

    @Test func indexOutsideThePaletteIsBlack() throws {
        var builder = GIFBuilder(width: 2, height: 1, palette: Array(GIFBuilder.palette.prefix(2)))
        builder.add(GIFBuilder.Frame(width: 2, height: 1, pixels: [7, 1]))
        #expect(try Composing.frames(builder.finish())[0] == [Composing.black, white])
    }

    @Test func localPaletteHoldsForItsFrameOnly() throws {
        var builder = GIFBuilder(width: 1, height: 1)
        builder.add(color: 2)
        builder.add(GIFBuilder.Frame(width: 1, height: 1, color: 0), localPalette: [(1, 2, 3), (4, 5, 6)])
        builder.add(color: 2)
        #expect(try Composing.frames(builder.finish()) == [[red], [0xff03_0201], [red]])
    }

    @Test func interlacedRowsComeWhereTheyBelong() throws {
        var builder = GIFBuilder(width: 1, height: 11)
        let pixels = (0..<11).map { UInt8($0 % 8) }
        builder.add(GIFBuilder.Frame(width: 1, height: 11, pixels: pixels)) { $0.isInterlaced = true }
        #expect(try Composing.frames(builder.finish())[0] == pixels.map { Composing.color(Int($0)) })
    }

    @Test func laterFrameLargerThanTheCanvasIsClipped() throws {
        var builder = GIFBuilder(width: 2, height: 2)
        builder.add(color: 1)
        builder.add(GIFBuilder.Frame(width: 3, height: 3, pixels: [2, 3, 1, 4, 2, 1, 1, 1, 1]))
        #expect(try Composing.frames(builder.finish())[1] == [red, green, blue, red])
    }

    @Test func frameOutsideTheCanvasChangesNothingAndKeepsItsTime() throws {
        var builder = GIFBuilder(width: 2, height: 1)
        builder.add(color: 1)
        builder.add(GIFBuilder.Frame(width: 2, height: 2, color: 2)) { ($0.x, $0.y, $0.delay, $0.disposal) = (5, 7, 30, 3) }
        builder.add(GIFBuilder.Frame(width: 2, height: 1, color: 3)) { $0.x = 1 }
        #expect(try Composing.frames(builder.finish()) == [[white, white], [white, white], [white, green]])
        #expect(try Composing.summary(builder.finish()).delays == [10, 30, 10])
    }

    @Test(arguments: [(0, 1), (1, 0), (0, 0)]) func frameWithoutSizeDrawsNothing(_ width: Int, _ height: Int) throws {
        var builder = GIFBuilder(width: 1, height: 1)
        builder.add(color: 1)
        builder.add(GIFBuilder.Frame(width: width, height: height, pixels: []))
        builder.add(color: 2)
        #expect(try Composing.frames(builder.finish()) == [[white], [white], [red]])
    }

    @Test func drawTellsWhereTheCanvasChanged() throws {
        var builder = GIFBuilder(width: 8, height: 8)
        builder.add(color: 1)
        builder.add(GIFBuilder.Frame(width: 4, height: 4, color: 2)) { ($0.x, $0.y) = (2, 3) }
        builder.add(GIFBuilder.Frame(width: 4, height: 4, color: 2)) { ($0.x, $0.y) = (2, 3) }
        try builder.finish().withUnsafeBytes { bytes in
            var reader = try GIFReader(bytes, limits: MediaLimits())
            var canvas = try Canvas(width: 8, height: 8, format: .rgba)
            var areas: [Int] = []
            while try reader.next(), let indices = try reader.readPixels() {
                let changed = try canvas.draw(reader, indices)
                areas.append(changed.width * changed.height)
            }
            #expect(areas == [64, 16, 0])
        }
    }

    /// Rows are drawn eight pixels at a time; no width, place or mixture of transparent pixels may show it.
    @Test(arguments: 1...40) func rowsOfEveryWidthShowTheirPixelsAndNoOthers(_ width: Int) throws {
        var numbers = SeededNumbers(seed: UInt64(width))
        let (canvasWidth, height) = (width + 5, 4)
        var model = Array(repeating: Composing.clear, count: canvasWidth * height)
        var builder = GIFBuilder(width: canvasWidth, height: height)
        var pictures: [[UInt32]] = []
        for number in 0..<12 {
            // The first frame would enlarge the canvas.
            let x = number == 0 ? 0 : Int.random(in: 0...7, using: &numbers)
            // Few colours at first, so that whole groups are transparent, opaque or as before.
            let pixels = (0..<width * height).map { _ in UInt8.random(in: 0...UInt8(number % 6), using: &numbers) }
            let transparent: UInt8? = number % 3 == 0 ? nil : 1
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels)) {
                ($0.x, $0.transparent) = (x, transparent)
            }
            for (index, code) in pixels.enumerated() where code != transparent && x + index % width < canvasWidth {
                model[index / width * canvasWidth + x + index % width] = Composing.color(Int(code))
            }
            pictures.append(model)
        }
        let gif = builder.finish()
        #expect(try Composing.frames(gif) == pictures)

        try gif.withUnsafeBytes { bytes in
            var reader = try GIFReader(bytes, limits: MediaLimits())
            var canvas = try Canvas(width: canvasWidth, height: height, format: .rgba)
            var before = Array(repeating: Composing.clear, count: canvasWidth * height)
            for picture in pictures {
                _ = try reader.next()
                let changed = try canvas.draw(reader, try #require(try reader.readPixels()))
                for index in picture.indices where picture[index] != before[index] {
                    let (column, row) = (index % canvasWidth, index / canvasWidth)
                    #expect((changed.x..<changed.x + changed.width).contains(column))
                    #expect((changed.y..<changed.y + changed.height).contains(row))
                }
                #expect(changed.x >= 0 && changed.x + changed.width <= canvasWidth)
                before = picture
            }
        }
    }
}
