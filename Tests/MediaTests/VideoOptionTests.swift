import Foundation
import TestSupport
import Testing

@testable import Media

/// Every option of a video, by what comes out of the MP4.
@Suite("Options change the video as documented", .timeLimit(.minutes(10)))
struct VideoOptionTests {
    private func colors(_ delays: [Int], width: Int = 16, height: Int = 16) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height)
        for (index, delay) in delays.enumerated() { builder.add(color: UInt8(1 + index % 5), delay: delay) }
        return builder.finish()
    }

    /// Left half red, right half blue, upper quarter white.
    private func halves(width: Int, height: Int) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height)
        let pixels = (0..<width * height).map { index -> UInt8 in
            index / width < height / 4 ? 1 : index % width < width / 2 ? 2 : 4
        }
        builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels))
        return builder.finish()
    }

    private func isColor(_ color: [Int], _ index: Int, within: Int = 8) -> Bool {
        let expected = GIFBuilder.palette[index]
        return zip(color, [expected.red, expected.green, expected.blue]).allSatisfy { abs($0 - Int($1)) <= within }
    }

    // MARK: Size

    @Test(arguments: [(320, 240, 160, 120), (321, 200, 99, 62), (101, 77, 51, 39), (64, 4, 9, 2)])
    func aWidthResizesAndAnOddSideRepeatsItsEdge(_ width: Int, _ height: Int, _ wanted: Int, _ tall: Int) throws {
        let mp4 = try Converted(halves(width: width, height: height)) { $0.size.width = wanted }
        let even = ((wanted + 1) / 2 * 2, (tall + 1) / 2 * 2)
        #expect(mp4.boxes.width == even.0 && mp4.boxes.height == even.1)
        #expect(mp4.result.width == even.0 && mp4.result.sourceWidth == width)
        guard tall > 20 else { return }
        #expect(try isColor(mp4.color(0, x: 2, y: tall - 3), 2))
        #expect(try isColor(mp4.color(0, x: even.0 - 1, y: even.1 - 1), 4))
        #expect(try isColor(mp4.color(0, x: 3, y: 3), 1))
        #expect(try isColor(mp4.color(0, x: even.0 - 1, y: 0), 1))
    }

    @Test func coverCutsAndFillDistorts() throws {
        let gif = halves(width: 160, height: 40)
        let cover = try Converted(gif) { $0.size = SizeOptions(width: 20, height: 20, fit: .cover) }
        #expect(cover.boxes.width == 20 && cover.boxes.height == 20)
        #expect(try isColor(cover.color(0, x: 3, y: 15), 2) && isColor(cover.color(0, x: 16, y: 15), 4))
        let fill = try Converted(gif) { $0.size = SizeOptions(width: 20, height: 20, fit: .fill) }
        #expect(fill.boxes.width == 20 && fill.boxes.height == 20)
        #expect(try isColor(fill.color(0, x: 2, y: 2), 1, within: 20) && isColor(fill.color(0, x: 16, y: 16), 4, within: 20))
    }

    @Test func aSmallChangeReachesTheResizedPicture() throws {
        var builder = GIFBuilder(width: 64, height: 64)
        builder.add(color: 1)
        builder.add(GIFBuilder.Frame(width: 16, height: 16, color: 0)) { ($0.x, $0.y) = (40, 24) }
        // Outside of what is shown: no new sample.
        builder.add(GIFBuilder.Frame(width: 64, height: 4, color: 2))
        let mp4 = try Converted(builder.finish()) { $0.size = SizeOptions(width: 32, height: 16, fit: .cover) }
        #expect(mp4.boxes.durations == [10, 20])
        #expect(try isColor(mp4.color(0, x: 24, y: 8), 1) && isColor(mp4.color(1, x: 24, y: 8), 0, within: 12))
        #expect(try isColor(mp4.color(1, x: 4, y: 8), 1))
    }

    @Test func transparentPixelsAreLaidOnTheBackgroundBeforeResizing() throws {
        var builder = GIFBuilder(width: 64, height: 32)
        builder.add(GIFBuilder.Frame(width: 64, height: 32, pixels: (0..<2048).map { $0 % 2 == 0 ? 2 : 0 })) {
            $0.transparent = 0
        }
        let mp4 = try Converted(builder.finish()) {
            $0.size.width = 32
            $0.background = RGB(red: 0, green: 0, blue: 255)
        }
        // Every other column red, every other the background: half of each, and nothing of black.
        let color = try mp4.color(0, x: 16, y: 8)
        #expect(abs(color[0] - 128) < 14 && color[1] < 14 && abs(color[2] - 128) < 14, "\(color)")
    }

    // MARK: Time

    @Test(arguments: [500, 1000, 1500, 2000, 333, 10_000, 100])
    func speedScalesEveryFrameExactly(_ speed: Int) throws {
        let delays = [7, 30, 2, 11, 50]
        let mp4 = try Converted(colors(delays)) { $0.time.speed = speed }
        for (sample, delay) in zip(mp4.boxes.durations, delays) {
            // delay / 100 s ÷ (speed / 1000), compared as whole numbers.
            #expect(sample * 100 * speed == delay * 1000 * mp4.boxes.timescale)
        }
        #expect(mp4.boxes.durations.count == delays.count)
        #expect(mp4.boxes.duration == mp4.result.duration && mp4.boxes.timescale == mp4.result.timescale)
        let shown = try mp4.stream()["duration"].flatMap(Double.init) ?? 0
        #expect(abs(shown - 1000 / Double(speed)) < 0.001)
    }

    @Test func aCeilingDropsFramesAndKeepsTheTimesOfTheOthers() throws {
        let mp4 = try Converted(colors(Array(repeating: 3, count: 20))) { $0.time.ceiling = 10_000 }
        #expect(mp4.boxes.samples.map(\.time) == [0, 12, 21, 30, 42, 51])
        #expect(mp4.boxes.duration == 60)
        // The frames that are left are those that the GIF shows then.
        for (sample, frame) in [0, 4, 7, 10, 14, 17].enumerated() {
            #expect(try isColor(mp4.color(sample, x: 8, y: 8), 1 + frame % 5))
        }
    }

    @Test func whatDroppedFramesChangedIsInTheNextOne() throws {
        var builder = GIFBuilder(width: 48, height: 16)
        builder.add(color: 1, delay: 2)
        builder.add(GIFBuilder.Frame(width: 16, height: 16, color: 2)) { $0.delay = 2 }
        builder.add(GIFBuilder.Frame(width: 16, height: 16, color: 4)) { ($0.x, $0.delay) = (32, 20) }
        let mp4 = try Converted(builder.finish()) { $0.time.ceiling = 25_000 }
        #expect(mp4.boxes.durations == [4, 20])
        #expect(try isColor(mp4.color(1, x: 8, y: 8), 2) && isColor(mp4.color(1, x: 40, y: 8), 4))
    }

    @Test func aPartShowsWhatTheGIFShowsThen() throws {
        let gif = colors([10, 20, 30, 40])
        let mp4 = try Converted(gif) {
            $0.time.start = 15
            $0.time.end = 65
        }
        #expect(mp4.boxes.durations == [15, 30, 5])
        #expect(try isColor(mp4.color(0, x: 8, y: 8), 2) && isColor(mp4.color(2, x: 8, y: 8), 4))
        #expect(try Converted(gif) { $0.time.end = 100_000 }.boxes.durations == [10, 20, 30, 40])
        #expect(throws: TranscodeError.startPastEnd(start: 100, duration: 100)) { try Converted(gif) { $0.time.start = 100 } }
    }

    @Test(arguments: [2, 3, 20]) func loopsRepeatTheSamplesExactly(_ loops: Int) throws {
        let gif = GIFBuilder.animation(frames: 12, width: 64, height: 48, delay: 7)
        let once = try Converted(gif) { _ in }
        let many = try Converted(gif) { $0.time.loops = loops }
        #expect(many.boxes.duration == loops * once.boxes.duration && many.result.duration == many.boxes.duration)
        #expect(many.boxes.samples.map(\.time) == (0..<loops * 12).map { $0 * 7 })
        #expect(many.boxes.durations.allSatisfy { $0 == 7 })
        #expect((0..<loops).allSatisfy { many.boxes.samples[$0 * 12].isSync })
        let decoded = try many.frames()
        #expect(decoded.count == loops * 12)
        for index in decoded.indices { #expect(decoded[index] == decoded[index % 12], "frame \(index)") }
    }

    @Test func theSeamKeepsTheLastFramesTime() throws {
        let mp4 = try Converted(colors([7, 250, 3, 40])) {
            $0.time.loops = 3
            $0.time.speed = 1500
        }
        #expect(mp4.boxes.durations == [[14, 500, 6, 80], [14, 500, 6, 80], [14, 500, 6, 80]].flatMap { $0 })
        #expect(mp4.boxes.timescale == 300)
    }

    @Test func aStillPictureIsOneSampleHoweverOftenItIsShown() throws {
        let mp4 = try Converted(colors([50])) { $0.time.loops = 20 }
        #expect(mp4.boxes.durations == [1000] && mp4.result.samples == 1)
    }

    /// Whether an MP4 is too large for its GIF is decided by one round of several. At 70, the excess of one round is just what cannot be
    /// made up for, and the headers, which several rounds share, decide.
    @Test(arguments: [20, 40, 80, 100]) func loopsTakeAsManyTimesTheBytesOfOne(_ quality: Int) throws {
        let gif = GIFBuilder.noise(frames: 6, width: 128, height: 128)
        let one = try Converted(gif) { $0.quality = quality }
        let three = try Converted(gif) {
            $0.quality = quality
            $0.time.loops = 3
        }
        let ratio = Double(three.bytes.count) / Double(one.bytes.count)
        #expect(ratio > 2.7 && ratio < 3.1, "\(ratio)")
    }

    /// The part's own share of the GIF decides whether its MP4 is too large.
    @Test func aPartTakesTheBytesOfAFileOfItsFrames() throws {
        let all = GIFBuilder.noise(frames: 24, width: 96, height: 96)
        let alone = try Converted(GIFBuilder.noise(frames: 6, width: 96, height: 96)) { $0.quality = 100 }
        let part = try Converted(all) {
            $0.quality = 100
            $0.time.end = 60
        }
        #expect(part.result.samples == 6 && alone.result.samples == 6)
        #expect(abs(Double(part.bytes.count) / Double(alone.bytes.count) - 1) < 0.03)
    }

    /// A comment makes a GIF larger, so that its MP4 is not encoded once more.
    @Test func enlargedPixelsAreNotEncodedMoreCoarsely() throws {
        let noise = GIFBuilder.noise(frames: 6, width: 96, height: 96)
        var commented = Array(noise.dropLast()) + [0x21, 0xfe]
        for _ in 0..<4000 { commented += [255] + [UInt8](repeating: 65, count: 255) }
        commented += [0, 0x3b]
        func bytes(_ gif: [UInt8], zoom: Int) throws -> [UInt8] {
            try Converted(gif) { ($0.quality, $0.zoom) = (55, zoom) }.bytes
        }
        #expect(try bytes(noise, zoom: 1) != bytes(commented, zoom: 1))
        #expect(try bytes(noise, zoom: 2) == bytes(commented, zoom: 2))
    }

    @Test func everythingAtOnce() throws {
        let gif = GIFBuilder.animation(frames: 50, width: 90, height: 62, delay: 4)
        let mp4 = try Converted(gif) {
            $0.size.width = 45
            $0.time = TimeOptions(speed: 2000, ceiling: 25_000, start: 50, end: 150, loops: 4)
        }
        // 1 s of the GIF at twice the speed, four times: 2 s, at most every 4 hundredths a frame.
        #expect(Double(mp4.boxes.duration) / Double(mp4.boxes.timescale) == 2)
        #expect(mp4.boxes.durations.prefix(12).allSatisfy { $0 * 100 >= 4 * mp4.boxes.timescale })
        #expect(mp4.boxes.width == 46 && mp4.boxes.height == 32)
    }

    @Test func theContentOfAnH264VideoIsLookedAtUnlessTuneStatesIt() throws {
        let gif = GIFBuilder.animation(frames: 6)
        let automatic = try Converted(gif).bytes
        let drawing = try Converted(gif) { $0.tune = .screen }.bytes
        let film = try Converted(gif) { $0.tune = .film }.bytes
        #expect(drawing != film)
        let pixels = try Converted(gif) { $0.tune = .pixel }.bytes
        #expect([drawing, film, pixels].contains(automatic))
    }
}
