import Foundation
import TestSupport
import Testing

@testable import Media

@Suite("A WebM has the GIF's times, colours and transparency", .timeLimit(.minutes(10))) struct WebMTests {
    /// A square that moves over a transparent canvas.
    static func sprite(_ delays: [Int] = [10, 7, 40], width: Int = 64, height: Int = 48, loop: Int? = 0) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height)
        if let loop { builder.addLoop(loop) }
        for (index, delay) in delays.enumerated() {
            builder.add(GIFBuilder.Frame(width: 16, height: 16, color: 2)) {
                ($0.x, $0.y) = (min(8, width - 16) + index * 8 % max(1, width - 24), 9)
                $0.delay = delay
                $0.disposal = 2
                $0.transparent = 7
            }
        }
        return builder.finish()
    }

    private func frames(_ webm: Converted) throws -> [[UInt8]] {
        try FFmpeg.framesWithAlpha(of: webm.file, width: webm.result.width, height: webm.result.height)
    }

    private func pixel(_ frame: [UInt8], _ webm: Converted, x: Int, y: Int) -> [Int] {
        let offset = (y * webm.result.width + x) * 4
        return frame[offset..<offset + 4].map(Int.init)
    }

    @Test("Every time is exact, also at other speeds", arguments: [1000, 500, 1500, 2000, 3000, 333, 10_000, 100, 2560])
    func timesAreExact(_ speed: Int) throws {
        let delays = [7, 30, 2, 11, 50]
        let webm = try Converted(Self.sprite(delays), as: .webm) {
            $0.time.speed = speed
        }
        let times = try FFmpeg.packetTimes(of: webm.file)
        var expected = 0.0
        #expect(times.count == delays.count)
        for (time, delay) in zip(times, delays) {
            // ffprobe prints microseconds.
            #expect(abs(time - expected) < 0.000_001_1, "\(time) \(expected)")
            expected += Double(delay * 10) / Double(speed)
        }
        #expect(abs(try FFmpeg.duration(of: webm.file) - expected) < 0.000_001_1)
    }

    @Test("The durations of all pictures are stated", arguments: [[10, 7, 40, 3], [5, 5, 5, 5]])
    func durationsAreStated(_ delays: [Int]) throws {
        var builder = GIFBuilder(width: 32, height: 32)
        for (index, delay) in delays.enumerated() {
            builder.add(GIFBuilder.Frame(width: 32, height: 32, color: UInt8(1 + index))) { $0.delay = delay }
        }
        let webm = try Converted(builder.finish(), as: .webm) { _ in }
        #expect(!webm.result.isTransparent)
        #expect(try FFmpeg.packetDurations(of: webm.file) == delays.map { Double($0) / 100 })
        // The track states a duration that all pictures have.
        let head = webm.bytes.prefix(400)
        let defaultDuration: [UInt8] = [0x23, 0xe3, 0x83]
        #expect(head.indices.contains { head[$0...].starts(with: defaultDuration) } == (Set(delays).count == 1))
    }

    /// FFmpeg takes a video of one or two pictures without a stated rate for one of 1000 pictures per second.
    @Test(
        "Even delays are a rate, of one or two pictures too",
        arguments: [([50], 1, "2/1"), ([50], 3, "2/3"), ([1000, 1000], 1, "1/10"), ([7, 7, 7], 2, "100/7")]
            as [([Int], Int, String)])
    func evenDelaysAreARate(_ delays: [Int], _ loops: Int, _ rate: String) throws {
        var opaque = GIFBuilder(width: 32, height: 32)
        for (index, delay) in delays.enumerated() { opaque.add(color: UInt8(1 + index), delay: delay) }
        for gif in [opaque.finish(), Self.sprite(delays)] {
            let webm = try Converted(gif, as: .webm) { $0.time.loops = loops }
            #expect(try webm.stream()["avg_frame_rate"] == rate)
        }
    }

    @Test func aTickDividesAllTimesOrNearlyDoes() {
        let hundredths = WebMClock(timescale: 100, times: [0, 7, 12])
        #expect(hundredths.scale == 1_000_000 && hundredths.ticks(7) == 70)
        #expect(WebMClock(timescale: 1600, times: [0, 1, 2]).scale == 625_000)
        #expect(WebMClock(timescale: 1_000_000, times: [0, 40_000, 80_000]).scale == 1_000_000)
        // Nothing but the shortest tick, to which times are rounded.
        let fine = WebMClock(timescale: 90_000, times: [0, 3000, 6001])
        #expect(fine.scale == 100_000 && fine.ticks(6001) == 667)
        #expect(WebMClock(timescale: 100, times: [0, 1 << 40]).scale == 1_000_000)
    }

    /// Rates whose distances are no whole number of nanoseconds: each time is that of the source to less than a microsecond
    /// per minute, and equal distances stay equal.
    @Test(arguments: [(24, 1), (30, 1), (60, 1), (24_000, 1001), (30_000, 1001), (60_000, 1001), (35, 1), (7, 1)])
    func distancesOfUsualRatesAreEqual(_ rate: Int, _ base: Int) {
        // A minute.
        let times = (0...60 * rate / base).map { $0 * base }
        let clock = WebMClock(timescale: rate, times: times)
        let ticks = times.map(clock.ticks)
        #expect(Set(zip(ticks, ticks.dropFirst()).map { $1 - $0 }).count == 1 && (100_000...1_000_000).contains(clock.scale))
        for (time, tick) in zip(times, ticks) {
            #expect(abs(Double(tick * clock.scale) - Double(time) * 1e9 / Double(rate)) < 10_000)
        }
    }

    @Test(arguments: ["24", "30", "60"]) func aClipOfAUsualRateHasOneClusterPerKeyPicture(_ rate: String) throws {
        let clip = try FFmpeg.make(
            ["-f", "lavfi", "-i", "testsrc2=s=32x32:r=\(rate):d=2", "-c:v", "libx264", "-pix_fmt", "yuv420p"], "mp4")
        let webm = try Converted(clip, as: .webm) { _ in }
        let cluster: [UInt8] = [0x1f, 0x43, 0xb6, 0x75]
        #expect(webm.bytes.indices.filter { webm.bytes[$0...].starts(with: cluster) }.count == 1)
        let times = try FFmpeg.packetTimes(of: webm.file)
        // Pictures that look alike share a block.
        #expect(times.count > 12)
        for time in times.map({ $0 * (Double(rate) ?? 1) }) { #expect(abs(time - time.rounded()) < 0.000_1) }
    }

    /// Above 2.5 million pixels, alpha is encoded before the colours.
    @Test("Transparent pixels stay transparent and visible ones keep their colour", arguments: [(64, 48), (1600, 1600)])
    func transparencyAndColoursAreThoseOfTheGIF(_ width: Int, _ height: Int) throws {
        let webm = try Converted(Self.sprite(width: width, height: height), as: .webm) { _ in }
        #expect(webm.result.isTransparent && webm.bytes.count == webm.result.bytes)
        let frames = try frames(webm)
        #expect(frames.count == 3)
        for (index, frame) in frames.enumerated() {
            let left = 8 + index * 8
            #expect(pixel(frame, webm, x: 2, y: 2)[3] < 3)
            #expect(pixel(frame, webm, x: left - 3, y: 16)[3] < 6)
            for (x, y) in [(left + 1, 10), (left + 8, 16), (left + 14, 23)] {
                let color = pixel(frame, webm, x: x, y: y)
                #expect(color[3] > 249 && color[0] > 235 && color[1] < 20 && color[2] < 20, "\(color)")
            }
        }
    }

    @Test(arguments: [(33, 17), (1, 1), (255, 30)]) func oddSidesStayOdd(_ width: Int, _ height: Int) throws {
        for gif in [GIFBuilder.animation(frames: 2, width: width, height: height), Self.sprite(width: 33, height: 35)] {
            let webm = try Converted(gif, as: .webm) { _ in }
            let stream = try webm.stream()
            #expect(webm.result.width == webm.result.sourceWidth && webm.result.height == webm.result.sourceHeight)
            #expect(stream["width"] == "\(webm.result.sourceWidth)" && stream["height"] == "\(webm.result.sourceHeight)")
            #expect(try frames(webm).count == webm.result.samples)
        }
    }

    @Test func anOpaqueAnimationHasNoAlpha() throws {
        let webm = try Converted(GIFBuilder.animation(), as: .webm) { $0.chroma = .subsampled }
        #expect(!webm.result.isTransparent)
        let stream = try webm.stream()
        #expect(stream["codec_name"] == "vp9" && stream["TAG:alpha_mode"] == nil && stream["pix_fmt"] == "yuv420p")
        #expect(stream["color_transfer"] == "iec61966-2-1" && stream["chroma_location"] == "center")
        #expect(stream["color_space"] == "bt709" && stream["color_range"] == "tv" && stream["color_primaries"] == "bt709")
    }

    /// Edges become half transparent; their colour stays that of the visible side.
    @Test("A resized picture has no dark or bright seam", arguments: [OutputFormat.webm, .avif])
    func resizingLeavesNoSeam(_ format: OutputFormat) throws {
        let gif = Self.sprite([20, 20], width: 96, height: 64)
        let made = try Converted(gif, Transcoder(output: format, options: TranscodeOptions(size: SizeOptions(width: 36))))
        #expect(made.result.isTransparent && made.result.width == 36 && made.result.height == 24)
        guard format == .webm else { return }
        for frame in try frames(made) {
            var seen = 0
            for offset in stride(from: 0, to: frame.count, by: 4) where frame[offset + 3] > 16 {
                seen += 1
                #expect(frame[offset] > 225 && frame[offset + 1] < 30 && frame[offset + 2] < 30)
            }
            #expect(seen >= 36)
        }
    }

    @Test func canvasesThatHeadersOfFramesDoNotShowTransparentAre() throws {
        // Frames of the whole canvas, without a transparent index. The first restores what was before it, which is nothing.
        var restoring = GIFBuilder(width: 32, height: 32)
        restoring.add(GIFBuilder.Frame(width: 32, height: 32, color: 2)) { ($0.delay, $0.disposal) = (10, 3) }
        restoring.add(GIFBuilder.Frame(width: 8, height: 8, color: 3)) { $0.delay = 10 }
        // The data of the first ends early.
        var short = GIFBuilder(width: 32, height: 32)
        short.add(GIFBuilder.Frame(width: 32, height: 32, pixels: Array(repeating: 2, count: 500)))
        for gif in [restoring.finish(), short.finish()] {
            #expect(try Converted(gif, as: .webm) { _ in }.result.isTransparent)
            #expect(try Converted(gif, as: .avif) { _ in }.result.isTransparent)
            #expect(try Converted(gif, as: .facts) { _ in }.result.isTransparent)
        }
    }

    @Test func aPartWithoutTransparentPixelsIsOpaque() throws {
        var builder = GIFBuilder(width: 32, height: 32)
        builder.add(GIFBuilder.Frame(width: 16, height: 32, color: 2)) { $0.delay = 10 }
        builder.add(GIFBuilder.Frame(width: 32, height: 32, color: 3)) { $0.delay = 20 }
        builder.add(GIFBuilder.Frame(width: 32, height: 32, color: 4)) { $0.delay = 20 }
        let gif = builder.finish()
        #expect(try Converted(gif, as: .webm) { _ in }.result.isTransparent)
        #expect(try !Converted(gif, as: .webm) { $0.time.start = 10 }.result.isTransparent)
        #expect(try Converted(gif, as: .webm) { $0.time.end = 10 }.result.isTransparent)
    }

    /// Four frames, of which the second is half transparent.
    private func gif(colors: [UInt8], delays: [Int]) -> [UInt8] {
        var builder = GIFBuilder(width: 32, height: 32)
        for (index, delay) in delays.enumerated() {
            builder.add(GIFBuilder.Frame(width: index == 1 ? 16 : 32, height: 32, color: colors[index])) {
                ($0.delay, $0.disposal) = (delay, index == 0 ? 2 : 0)
            }
        }
        return builder.finish()
    }

    @Test(arguments: [OutputFormat.webm, .avif]) func transparentFramesThatTheFrameRateDropsNeedNoAlpha(
        _ format: OutputFormat
    ) throws {
        let gif = gif(colors: [2, 3, 4, 5], delays: [10, 3, 10, 10])
        #expect(try Converted(gif, as: format) { _ in }.result.isTransparent)
        #expect(try Converted(gif, as: format) { $0.time.ceiling = 10_000 }.result.isTransparent)
        let dropped = try Converted(gif, as: format) { $0.time.ceiling = 9_000 }
        #expect(!dropped.result.isTransparent && dropped.result.samples == 3)
    }

    @Test(arguments: [OutputFormat.webm, .avif]) func transparentFramesThatAFrameRateKeepsStayTransparent(
        _ format: OutputFormat
    ) throws {
        // On a background of its own colour, the second frame looks like the first.
        let white = try Converted(gif(colors: [1, 1, 1, 1], delays: [10, 3, 10, 10]), as: format) { $0.time.ceiling = 10_000 }
        #expect(white.result.isTransparent)
        // The second frame looks like the first, and the third, which comes too soon, starts later.
        var builder = GIFBuilder(width: 32, height: 32)
        builder.add(color: 2, delay: 10)
        builder.add(GIFBuilder.Frame(width: 32, height: 32, color: 2)) { ($0.delay, $0.disposal) = (5, 2) }
        builder.add(GIFBuilder.Frame(width: 16, height: 32, color: 3)) { $0.delay = 20 }
        let repeated = try Converted(builder.finish(), as: format) { $0.time.ceiling = 10_000 }
        #expect(repeated.result.isTransparent && repeated.result.samples == 2)
    }

    @Test(arguments: [2, 20]) func loopsRepeatThePictures(_ loops: Int) throws {
        let once = try Converted(Self.sprite(), as: .webm) { _ in }
        let many = try Converted(Self.sprite(), as: .webm) { $0.time.loops = loops }
        #expect(many.result.duration == loops * once.result.duration && many.result.samples == loops * 3)
        let times = try FFmpeg.packetTimes(of: many.file)
        #expect(times.count == loops * 3)
        for (index, time) in times.enumerated() {
            #expect(abs(time - (Double(index / 3) * 0.57 + [0, 0.1, 0.17][index % 3])) < 0.000_01)
        }
        let decoded = try frames(many)
        #expect(decoded.count == loops * 3)
        for index in decoded.indices { #expect(decoded[index] == decoded[index % 3], "frame \(index)") }
    }

    @Test func aLongAnimationHasSeveralClustersAndKeyPictures() throws {
        var builder = GIFBuilder(width: 16, height: 16)
        for index in 0..<600 { builder.add(color: UInt8(index % 7), delay: 20) }
        let webm = try Converted(builder.finish(), as: .webm) { _ in }
        #expect(try FFmpeg.packetTimes(of: webm.file).count == 600)
        let cluster: [UInt8] = [0x1f, 0x43, 0xb6, 0x75]
        let clusters = webm.bytes.indices.filter { webm.bytes[$0...].starts(with: cluster) }
        #expect(clusters.count >= 4)
    }

    @Test func theBytesAreTheSameEachTime() throws {
        for format in [OutputFormat.webm, .avif] {
            let first = try Converted(Self.sprite(), as: format) { _ in }
            let second = try Converted(Self.sprite(), Transcoder(output: format, threads: 2))
            #expect(first.bytes == second.bytes)
        }
    }

    /// libvpx has no room for a hidden picture of such noise: it fails, or loses the last pictures.
    @Test(arguments: [true, false], [TranscodeOptions.Chroma.automatic, .subsampled])
    func noiseIsEncodedAtTheFinestQuality(_ isOpaque: Bool, _ chroma: TranscodeOptions.Chroma) throws {
        let (side, count) = (64, 12)
        var numbers = SeededNumbers(seed: 1)
        let noise = (0..<side * side).map { _ in UInt8(numbers.next() >> 61) }
        var builder = GIFBuilder(width: side, height: side)
        for index in 0..<count {
            var pixels = index < 2 ? [UInt8](repeating: 1, count: side * side) : noise
            pixels[index * 5] ^= 1
            builder.add(GIFBuilder.Frame(width: side, height: side, pixels: pixels)) { frame in
                if !isOpaque { (frame.transparent, frame.disposal) = (7, 2) }
            }
        }
        let webm = try Converted(builder.finish(), as: .webm) { ($0.quality, $0.chroma) = (100, chroma) }
        #expect(webm.result.isTransparent == !isOpaque && webm.result.duration == count * 10)
        #expect(try frames(webm).count == count)
    }

    @Test(arguments: [OutputFormat.webm, .avif]) func qualityTradesBytes(_ format: OutputFormat) throws {
        let gif = GIFBuilder.noise(frames: 3, width: 64, height: 64)
        let sizes = try [1, 30, 60, 100].map { quality in try Converted(gif, as: format) { $0.quality = quality }.bytes.count }
        #expect(sizes == sizes.sorted() && Set(sizes).count == 4, "\(sizes)")
    }
}
