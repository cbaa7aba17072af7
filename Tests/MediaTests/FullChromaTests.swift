import Foundation
import SystemIO
import TestSupport
import Testing

@testable import Media

@Suite("Colours have the resolution of pixels where 4:2:0 shows") struct FullChromaTests {
    /// Red and blue lines of one pixel on white; the palette is the builder's.
    private static func lines(
        width: Int = 63, height: Int = 63, colors: [UInt8] = [2, 4], every distance: Int = 6, transparent: Bool = false,
        frames: Int = 4
    ) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height)
        for frame in 0..<frames {
            let pixels = (0..<width * height).map { index -> UInt8 in
                let (x, y) = (index % width, index / width)
                if y > 8 + frame && x % distance == 1 { return colors[x / distance % colors.count] }
                return transparent && y < 8 ? 7 : 1
            }
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels)) { frame in
                if transparent { (frame.transparent, frame.disposal) = (7, 2) }
            }
        }
        return builder.finish()
    }

    private static let outputs: [(output: OutputFormat, codec: VideoCodec)] = [
        (.mp4, .av1), (.webm, .h264), (.avif, .h264),
    ].filter { LinkedLibraries.offered.contains($0.0) && LinkedLibraries.has($0.1) }

    private func made(
        _ gif: [UInt8], _ output: OutputFormat, _ codec: VideoCodec, _ change: (inout TranscodeOptions) -> Void = { _ in }
    ) throws -> (made: Converted, format: String?, codecs: String?) {
        var options = TranscodeOptions()
        options.codec = codec
        change(&options)
        let transcoder = Transcoder(output: output, options: options)
        let made = try Converted(gif, transcoder)
        var file = try MemoryFile(name: "test")
        try made.bytes.withUnsafeBytes { try file.append($0) }
        let codecs = try OutputInspection.inspect(try file.seal(), as: OutputClaim(transcoder, made.result), limit: 1 << 30)
        return (made, try made.stream()["pix_fmt"], codecs)
    }

    @Test(arguments: outputs) func linesInColourKeepTheirColours(_ output: OutputFormat, _ codec: VideoCodec) throws {
        let (made, format, codecs) = try made(Self.lines(), output, codec) { $0.quality = 95 }
        #expect(format == "yuv444p")
        switch output {
        case .mp4: #expect(codecs == "av01.1.00M.08.0.000.01.13.01.0")
        case .webm: #expect(codecs == "vp09.01.10.08.03.01.13.01.00")
        default: #expect(codecs == nil)
        }
        guard output == .mp4 else { return }
        // Half of the columns of a line would be another colour.
        for (x, expected) in [(1, [255, 0, 0]), (7, [0, 0, 255]), (3, [255, 255, 255])] {
            let color = try made.color(0, x: x, y: 30)
            #expect(zip(color, expected).allSatisfy { abs($0 - $1) < 40 }, "\(x): \(color)")
        }
    }

    /// An end marker is the last byte.
    @Test(arguments: outputs, [1, 2, 4]) func filesWithoutEndMarkerHaveThem(
        _ output: (output: OutputFormat, codec: VideoCodec), _ frames: Int
    ) throws {
        let gif = Self.lines(frames: frames)
        let unmarked = try made(Array(gif.dropLast()), output.output, output.codec)
        let whole = try made(gif, output.output, output.codec)
        #expect(unmarked.format == "yuv444p" && unmarked.made.bytes == whole.made.bytes)
    }

    /// The lines have the luma of their ground, so that luma alone would show no loss.
    @Test(.enabled(if: LinkedLibraries.has(.av1))) func theSearchForTheQuantizerSeesLostColours() throws {
        var builder = GIFBuilder(width: 64, height: 48, palette: [(200, 80, 80), (70, 116, 116)])
        for frame in 0..<4 {
            let pixels = (0..<64 * 48).map { index -> UInt8 in index / 64 > 8 + frame && index % 64 % 6 == 1 ? 1 : 0 }
            builder.add(GIFBuilder.Frame(width: 64, height: 48, pixels: pixels))
        }
        let content = PictureContent(isDrawing: true, chroma: .full)
        let tools = AV1Tools(content, AV1Tools.Work(frames: 4, pixels: 64 * 48 * 4, changedPixels: 1000)).forTrial
        try builder.finish().withUnsafeBytes { gif in
            let trial = try QualityTrial(ScannedSource<GIFReader>(Transcoder(), gif), content)
            let (fine, coarse) = try (
                trial.quality(AV1Settings(tools, quantizer: 15)), trial.quality(AV1Settings(tools, quantizer: 63))
            )
            #expect(fine - coarse > 2, "\(fine) \(coarse)")
        }
    }

    @Test(arguments: outputs) func aRequestMayExcludeThem(_ output: OutputFormat, _ codec: VideoCodec) throws {
        let (_, format, codecs) = try made(Self.lines(), output, codec) { $0.chroma = .subsampled }
        #expect(format == "yuv420p")
        switch output {
        case .mp4: #expect(codecs == "av01.0.00M.08")
        case .webm: #expect(codecs == "vp09.00.10.08")
        default: #expect(codecs == nil)
        }
    }

    @Test(arguments: outputs) func greyLinesNeedNone(_ output: OutputFormat, _ codec: VideoCodec) throws {
        #expect(try made(Self.lines(colors: [0, 6]), output, codec).format == "yuv420p")
    }

    /// What is no drawing has them where most pixels have few colours, unless its colours are as uneven as noise, which would cost a multiple.
    @Test(arguments: [(160, "yuv444p"), (6, "yuv420p")])
    func aLargePictureThatIsNoDrawingHasThemIfTheyAreCheap(_ distance: Int, _ expected: String) throws {
        for (output, codec) in Self.outputs {
            let lines = Self.lines(width: 160, height: 120, colors: [2], every: distance)
            #expect(try made(lines, output, codec) { $0.tune = .film }.format == expected, "\(output)")
        }
    }

    /// Pixel art that was enlarged before: every 2 × 2 square has one colour, but players interpolate between squares.
    @Test(arguments: outputs) func enlargedPixelArtHasThem(_ output: OutputFormat, _ codec: VideoCodec) throws {
        var builder = GIFBuilder(width: 64, height: 64)
        for frame in 0..<4 {
            let pixels = (0..<64 * 64).map { index -> UInt8 in
                let (x, y) = (index % 64 / 2, index / 64 / 2)
                return y > 4 + frame && x % 3 == 1 ? (x / 3 % 2 == 0 ? 2 : 4) : 1
            }
            builder.add(GIFBuilder.Frame(width: 64, height: 64, pixels: pixels))
        }
        #expect(try made(builder.finish(), output, codec).format == "yuv444p")
    }

    @Test(arguments: outputs) func pixelsEnlargedByTheRequestHaveThemToo(_ output: OutputFormat, _ codec: VideoCodec) throws {
        let (made, format, _) = try made(Self.lines(), output, codec) { ($0.zoom, $0.quality) = (2, 95) }
        #expect(format == "yuv444p" && made.result.width == 126)
        guard output == .mp4 else { return }
        let color = try made.color(0, x: 3, y: 60)
        #expect(zip(color, [255, 0, 0]).allSatisfy { abs($0 - $1) < 40 }, "\(color)")
    }

    /// With full chroma, encoders would need more memory than a job has.
    @Test func theLargestPicturesHaveNoFullChroma() throws {
        let lines = Self.lines(width: 400, height: 300)
        var options = TranscodeOptions(tune: .screen)
        for (zoom, chroma) in [(4, ChromaFormat.full), (5, .half)] {
            options.zoom = zoom
            #expect(try PictureContent(of: lines, options).chroma == chroma, "\(zoom)")
        }
    }

    @Test func h264HasNone() throws {
        #expect(try made(Self.lines(), .mp4, .h264).format == "yuv420p")
    }

    @Test(.enabled(if: LinkedLibraries.offered.contains(.webm))) func aWebMWithAlphaHasNone() throws {
        let (made, format, codecs) = try made(Self.lines(transparent: true), .webm, .h264)
        #expect(made.result.isTransparent && format == "yuv420p" && codecs == "vp09.00.10.08")
    }

    /// A checkerboard has as many coefficients as pixels, for which libvpx alone has no room where its transforms cross an edge.
    @Test(
        .enabled(if: LinkedLibraries.offered.contains(.webm)),
        arguments: [(62, 65, false), (64, 16, false), (16, 64, false), (40, 40, false), (16, 33, false), (49, 64, true)])
    func aWebMHasRoomForAllCoefficients(_ width: Int, _ height: Int, _ fitsAlways: Bool) throws {
        for distance in [0, 1] {
            var builder = GIFBuilder(width: width, height: height)
            for frame in 0..<3 {
                let pixels = (0..<width * height).map { UInt8(($0 % width + $0 / width * distance + frame) % 2 == 0 ? 2 : 4) }
                builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels))
            }
            let format = try made(builder.finish(), .webm, .h264) { $0.quality = 100 }.format
            #expect(format == (VP9Memory.isAmple || fitsAlways ? "yuv444p" : "yuv420p"))
        }
    }

    /// The static libvpx of `scripts/libav` gets its memory here.
    @Test(.enabled(if: FileManager.default.fileExists(atPath: Document.root.appendingPathComponent(".libav/made").path)))
    func theLinkerReplacesTheMemoryOfLibvpx() {
        #expect(VP9Memory.isAmple)
    }

    @Test(.enabled(if: LinkedLibraries.offered.contains(.avif))) func anAVIFHasThemBesideAlpha() throws {
        let made = try made(Self.lines(transparent: true), .avif, .h264).made
        #expect(made.result.isTransparent)
        // The profile of the colours, whose configuration comes first.
        let start = try #require(made.bytes.indices.first { made.bytes[$0...].starts(with: "av1C".utf8) })
        #expect(made.bytes[start + 5] >> 5 == 1)
    }

    @Test(arguments: outputs, [31, 50]) func scaledPicturesHaveThemToo(
        _ made: (output: OutputFormat, codec: VideoCodec), _ width: Int
    ) throws {
        let (video, format, _) = try self.made(Self.lines(), made.output, made.codec) { $0.size.width = width }
        #expect(format == "yuv444p" && video.result.width == width)
    }

    @Test(arguments: outputs) func aThreadOfItsOwnMakesTheSameBytes(_ output: OutputFormat, _ codec: VideoCodec) throws {
        var options = TranscodeOptions()
        options.codec = codec
        let (one, two) = try (
            Converted(Self.lines(), Transcoder(output: output, options: options)),
            Converted(Self.lines(), Transcoder(output: output, options: options, threads: 2))
        )
        let isSame = one.bytes == two.bytes
        #expect(isSame)
    }
}
