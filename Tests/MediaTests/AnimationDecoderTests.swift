import TestSupport
import Testing

@testable import Media

/// The pipeline takes any decoder: one whose frames are colours with alpha goes through all of it.
@Suite("Any decoder drives the pipeline")
struct AnimationDecoderTests {
    /// Two pixels wide and high: opaque red, then half-transparent blue over one column, then a hole in it.
    private struct ColorDecoder: AnimationDecoder, ~Copyable {
        static let format = SourceFormat.gif
        let canvasSize = (width: 2, height: 2)
        let loopCount: Int? = 3
        let timescale = 100
        var ending: AnimationEnding?
        var dataBytes = 0
        var frame = AnimationFrame(rectangle: .empty, delay: 0, disposal: .keep)
        private var index = 0
        private let pixels: HeapBuffer<UInt32>

        static let red: UInt32 = 0xff00_00ff
        static let half: UInt32 = 0x80ff_0000

        init(_ bytes: UnsafeRawBufferPointer, limits: MediaLimits) throws(TranscodeError) {
            pixels = try HeapBuffer(count: 4)
        }

        mutating func next() throws(TranscodeError) -> Bool {
            guard index < 3 else {
                ending = .complete
                return false
            }
            let rectangle = Rectangle(x: 0, y: 0, width: index == 0 ? 2 : 1, height: 2)
            frame = AnimationFrame(
                rectangle: rectangle, delay: 7, disposal: .keep, blend: index == 2 ? .replace : .over)
            index += 1
            return true
        }

        mutating func skipPixels() -> Bool { true }

        mutating func readPixels() throws(TranscodeError) -> FramePixels? {
            let count = frame.rectangle.width * frame.rectangle.height
            pixels.base.initialize(repeating: [Self.red, Self.half, 0][index - 1], count: count)
            dataBytes += count
            return .colors(UnsafeBufferPointer(start: pixels.base, count: count))
        }
    }

    private let none = UnsafeRawBufferPointer(start: nil, count: 0)

    @Test func colorsAreComposedByTheirAlpha() throws {
        var walk = try FrameWalk<ColorDecoder>(none, limits: MediaLimits())
        var frames: [[UInt32]] = []
        while try walk.next() { frames.append(walk.canvas.withBytes { Array($0.bindMemory(to: UInt32.self)) }) }
        let mixed: UInt32 = 0xff80_007f
        #expect(
            frames == [
                [ColorDecoder.red, ColorDecoder.red, ColorDecoder.red, ColorDecoder.red],
                [mixed, ColorDecoder.red, mixed, ColorDecoder.red], [0, ColorDecoder.red, 0, ColorDecoder.red],
            ])
        #expect(walk.frames == 3 && walk.loopCount == 3)
    }

    @Test func aVideoIsMadeOfColors() throws {
        let scanned = try ScannedSource<ColorDecoder>(Transcoder(), none)
        #expect(scanned.summary.delays == [7, 7, 7] && scanned.summary.width == 2)
        let source = try SampleSource(scanned)
        let luma = try SamplePlane(width: 2, height: 2)
        let cb = try SamplePlane(width: 1, height: 1)
        let cr = try SamplePlane(width: 1, height: 1)
        let planes = FramePlanes(
            luma: luma.samples, cb: cb.samples, cr: cr.samples, lumaStride: luma.stride, cbStride: cb.stride,
            crStride: cr.stride)
        var seen: [[UInt8]] = []
        while try source.next(into: { () throws(TranscodeError) in planes }) != nil {
            seen.append([luma.row(0)[0], luma.row(0)[1]])
        }
        // BT.709, limited range: red is 63, the mean of red and blue about 47, white 235.
        #expect(seen.count == 3 && seen[0] == [63, 63] && seen[1][1] == 63 && seen[2] == [235, 63])
        #expect((46...49).contains(seen[1][0]))
    }

    @Test func aTranslucentPixelOnATransparentCanvasKeepsItsColour() {
        #expect(PixelFormat.rgba.draw(ColorDecoder.half, .over, over: 0) == ColorDecoder.half)
        #expect(PixelFormat.rgba.draw(ColorDecoder.half, .replace, over: ColorDecoder.red) == ColorDecoder.half)
        #expect(PixelFormat.rgba.draw(0, .over, over: ColorDecoder.red) == ColorDecoder.red)
        #expect(PixelFormat.rgba.draw(0x0012_3456, .replace, over: ColorDecoder.red) == 0)
    }

    @Test func bytesTellTheFormat() {
        func format(_ text: String) -> SourceFormat? { Array(text.utf8).withUnsafeBytes { SourceFormat(of: $0) } }
        #expect(format("GIF87a") == .gif && format("GIF89a...") == .gif)
        #expect(format("RIFF....WEBP") == .webp)
        #expect(APNGBuilder.signature.withUnsafeBytes { SourceFormat(of: $0) } == .apng)
        for text in ["", "GIF", "GIF88a", "RIFF....WEB", "RIFF....WAVE", "\u{89}PNG"] { #expect(format(text) == nil) }
    }

    @Test func everyOutputHasARow() {
        let names = OutputFormat.allCases.map(\.traits.name)
        #expect(Set(names).count == names.count)
        for format in OutputFormat.allCases {
            #expect(!format.traits.version.isEmpty && format.traits.mediaType.contains("/"))
            #expect(format.traits.name.allSatisfy { $0.isLowercase || $0.isNumber })
        }
    }
}
