import TestSupport
import Testing

@testable import Media

@Suite("A zoom makes a square of every pixel") struct ZoomTests {
    private static let width = 7
    private static let height = 5

    /// A GIF of two frames whose pixels differ in colour from all their neighbours. The second changes one pixel.
    private func gif() -> [UInt8] {
        var builder = GIFBuilder(width: Self.width, height: Self.height, palette: Self.palette)
        builder.add(
            GIFBuilder.Frame(
                width: Self.width, height: Self.height,
                pixels: (0..<Self.width * Self.height).map { UInt8(Self.index($0 % Self.width, $0 / Self.width)) }))
        builder.add(GIFBuilder.Frame(width: 1, height: 1, color: 0)) { ($0.x, $0.y) = (3, 2) }
        return builder.finish()
    }

    private static let palette: [GIFBuilder.Color] = [(255, 0, 0), (0, 160, 64), (32, 64, 255), (224, 224, 32)]

    private static func components(_ index: Int) -> [Int] {
        [Int(palette[index].red), Int(palette[index].green), Int(palette[index].blue)]
    }

    private static func index(_ x: Int, _ y: Int) -> Int { (x + 2 * y) % 4 }

    /// The largest difference of a component from the colour that the pixel has in the GIF.
    private func worst(_ frame: [UInt8], width: Int, zoom: Int, changed: Bool) -> Int {
        var worst = 0
        for y in 0..<Self.height * zoom {
            for x in 0..<Self.width * zoom {
                let (column, row) = (x / zoom, y / zoom)
                let expected = Self.components(changed && (column, row) == (3, 2) ? 0 : Self.index(column, row))
                for component in 0..<3 {
                    worst = max(worst, abs(Int(frame[(y * width + x) * 3 + component]) - expected[component]))
                }
            }
        }
        return worst
    }

    @Test(arguments: [2, 4, 8]) func evenZoomsKeepTheColourOfEveryPixel(_ zoom: Int) throws {
        let video = try Converted(gif()) {
            $0.zoom = zoom
            $0.quality = 100
        }
        #expect(video.result.width == Self.width * zoom && video.result.height == Self.height * zoom)
        let frames = try video.frames()
        #expect(frames.count == 2)
        for (number, frame) in frames.enumerated() {
            #expect(worst(frame, width: video.boxes.width, zoom: zoom, changed: number == 1) <= 12)
        }
    }

    @Test func withoutZoomChromaIsShared() throws {
        let video = try Converted(gif()) { $0.quality = 100 }
        #expect(worst(try video.frames()[0], width: video.boxes.width, zoom: 1, changed: false) > 60)
    }

    @Test(arguments: [OutputFormat.png, .webp]) func postersAreEnlargedExactly(_ format: OutputFormat) throws {
        let poster = try Converted(gif(), as: format) { $0.zoom = 3 }
        #expect(poster.result.width == 21 && poster.result.height == 15)
        guard format == .png else { return }
        let words = try poster.picture()
        for y in 0..<15 {
            for x in 0..<21 {
                let word = words[y * 21 + x]
                #expect(
                    [word & 255, word >> 8 & 255, word >> 16 & 255].map(Int.init) == Self.components(Self.index(x / 3, y / 3)))
            }
        }
    }

    @Test(arguments: [3, 5]) func anOddZoomOfAnOddCanvasRepeatsItsEdges(_ zoom: Int) throws {
        let video = try Converted(gif()) { $0.zoom = zoom }
        #expect(video.boxes.width == (Self.width * zoom + 1) & ~1 && video.boxes.height == (Self.height * zoom + 1) & ~1)
        #expect(try video.frames().count == 2)
    }

    @Test func theLimitsHoldForTheEnlargedPicture() throws {
        let gif = gif()
        func refusal(_ change: (inout MediaLimits) -> Void) -> TranscodeError? {
            var limits = MediaLimits()
            change(&limits)
            let transcoder = Transcoder(options: TranscodeOptions(zoom: 8), limits: limits)
            do {
                _ = try Converted(gif, transcoder)
                return nil
            } catch {
                return error as? TranscodeError
            }
        }
        #expect(refusal { $0.side = 56 } == nil)
        #expect(refusal { $0.side = 55 } == .tooLarge(.side, value: 56, maximum: 55))
        #expect(refusal { $0.canvasPixels = 2239 } == .tooLarge(.canvasPixels, value: 2240, maximum: 2239))
        #expect(refusal { $0.totalPixels = 4479 } == .tooLarge(.totalPixels, value: 4480, maximum: 4479))
    }

    @Test func transparentPixelsStayTransparent() throws {
        var builder = GIFBuilder(width: 4, height: 4, palette: Self.palette)
        builder.add(GIFBuilder.Frame(width: 4, height: 4, pixels: (0..<16).map { UInt8($0 % 4) })) { $0.transparent = 3 }
        let poster = try Converted(builder.finish(), as: .png) { $0.zoom = 2 }
        let words = try poster.picture()
        for index in 0..<64 { #expect((words[index] >> 24 == 0) == (index % 8 / 2 == 3)) }
    }
}
