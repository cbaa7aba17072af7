@testable import Media
import TestSupport
import Testing

/// What is refused although it is a GIF.
@Suite("Limits refuse a GIF before work is done for it")
struct GIFLimitTests {
    /// Frames of one colour, which LZW makes very small: about 60 pixels per byte at this size.
    private func blank(frames: Int, side: Int = 64) -> [UInt8] {
        var builder = GIFBuilder(width: side, height: side)
        for index in 0..<frames { builder.add(color: UInt8(index % 8)) }
        return builder.finish()
    }

    @Test func manyPixelsOfFewBytesAreRefused() throws {
        var limits = MediaLimits(canvasPixels: 64 * 64)
        limits.pixelsPerByte = 20
        var failure: TranscodeError?
        do {
            _ = try Composing.summary(blank(frames: 10), limits: limits)
        } catch let error as TranscodeError {
            failure = error
        }
        guard case .tooLarge(.pixelsPerByte, let value, 20)? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(value > 20 && value < 200)
        #expect(failure?.description.contains("pixels per byte") == true)
        limits.pixelsPerByte = value
        #expect(try Composing.summary(blank(frames: 10), limits: limits).delays.count == 10)
    }

    @Test func aPosterOfManyPixelsOfFewBytesIsRefused() throws {
        var limits = MediaLimits(canvasPixels: 64 * 64)
        limits.pixelsPerByte = 20
        for output in [OutputFormat.png, .jpg, .facts, .mp4] {
            let transcoder = Transcoder(output: output, options: TranscodeOptions(frame: .number(5)), limits: limits)
            do {
                _ = try Converted(blank(frames: 10), transcoder)
                Issue.record("\(output) was made")
            } catch let error as TranscodeError {
                guard case .tooLarge(.pixelsPerByte, _, 20) = error else {
                    Issue.record("\(error)")
                    continue
                }
            }
        }
        // The first frame alone is no offence.
        #expect(try Converted(blank(frames: 10), Transcoder(output: .png, limits: limits)).result.frames == 1)
    }

    @Test func aPosterOfABlankFrameAmongOthersIsMade() throws {
        var builder = GIFBuilder(width: 64, height: 64)
        for _ in 0..<4 { builder.add(color: 1) }
        let detailed = (0..<64 * 64).map { UInt8($0 * $0 % 7) }
        for _ in 0..<4 { builder.add(GIFBuilder.Frame(width: 64, height: 64, pixels: detailed)) }
        let limits = MediaLimits(canvasPixels: 64 * 64, pixelsPerByte: 40)
        for frame in 0..<8 {
            let transcoder = Transcoder(output: .png, options: TranscodeOptions(frame: .number(frame)), limits: limits)
            #expect(try Converted(builder.finish(), transcoder).result.frames == frame + 1)
        }
    }

    @Test func oneBlankFrameIsNoOffence() throws {
        let limits = MediaLimits(canvasPixels: 64 * 64, pixelsPerByte: 1)
        #expect(try Composing.summary(blank(frames: 1), limits: limits).delays.count == 1)
    }

    @Test func blankFramesAmongOthersAreNoOffence() throws {
        var builder = GIFBuilder(width: 64, height: 64)
        for _ in 0..<4 { builder.add(color: 1) }
        let limits = MediaLimits(canvasPixels: 64 * 64, pixelsPerByte: 40)
        #expect(throws: TranscodeError.self) { try Composing.summary(builder.finish(), limits: limits) }
        let detailed = (0..<64 * 64).map { UInt8($0 * $0 % 7) }
        for _ in 0..<4 { builder.add(GIFBuilder.Frame(width: 64, height: 64, pixels: detailed)) }
        #expect(try Composing.summary(builder.finish(), limits: limits).delays.count == 8)
    }

    @Test func framesThatAreSmallOnALargeCanvasCountByTheirOwnSize() throws {
        var builder = GIFBuilder(width: 100, height: 100)
        for _ in 0..<50 { builder.add(GIFBuilder.Frame(width: 1, height: 1, color: 2)) }
        let limits = MediaLimits(canvasPixels: 100 * 100, pixelsPerByte: 1)
        #expect(try Composing.summary(builder.finish(), limits: limits).delays.count == 50)
    }

    @Test(arguments: [(0, 4), (4, 0), (0, 0)]) func aGIFWithoutAPixelIsCorrupt(_ width: Int, _ height: Int) {
        var builder = GIFBuilder(width: 4, height: 4)
        builder.add(GIFBuilder.Frame(width: width, height: height, pixels: []))
        let error = TranscodeError.corrupt(.gif, .emptyFrames)
        #expect(throws: error) { try Composing.summary(builder.finish()) }
        #expect(error.description == "The GIF is corrupt: none of its frames has a pixel.")
    }

    @Test func aFrameWithoutAPixelAmongOthersKeepsItsTime() throws {
        var builder = GIFBuilder(width: 2, height: 1)
        builder.add(GIFBuilder.Frame(width: 0, height: 1, pixels: [])) { $0.delay = 3 }
        builder.add(color: 2, delay: 4)
        builder.add(GIFBuilder.Frame(width: 0, height: 0, pixels: [])) { $0.delay = 5 }
        let gif = builder.finish()
        #expect(try Composing.summary(gif).delays == [3, 4, 5])
        let red = [Composing.color(2), Composing.color(2)]
        #expect(try Composing.frames(gif) == [[Composing.clear, Composing.clear], red, red])
    }

    @Test(arguments: OutputFormat.allCases) func aGIFWithoutAPixelHasNoOutput(_ output: OutputFormat) {
        var builder = GIFBuilder(width: 16, height: 16)
        for _ in 0..<2 { builder.add(GIFBuilder.Frame(width: 0, height: 0, pixels: [])) }
        for frame in [PosterFrame.number(0), .number(1), .auto] {
            #expect(throws: TranscodeError.corrupt(.gif, .emptyFrames)) {
                try Converted(builder.finish(), as: output) { $0.frame = frame }
            }
        }
    }

    @Test func aPosterOfAFrameWithoutAPixelAmongOthersIsTransparent() throws {
        var builder = GIFBuilder(width: 16, height: 16)
        builder.add(GIFBuilder.Frame(width: 0, height: 0, pixels: []))
        builder.add(color: 2)
        let first = try Converted(builder.finish(), as: .png) { _ in }
        #expect(first.result.frames == 1)
        #expect(try first.picture().allSatisfy { $0 >> 24 == 0 })
        #expect(try !Converted(builder.finish(), as: .png) { $0.frame = .number(1) }.result.isTransparent)
    }
}
