import Foundation
import Glibc
import TestSupport
import Testing

@testable import Media

@Suite("An MP4 has the frames and times of its GIF")
struct TranscoderTests {
    private func colors(_ colors: [UInt8], delays: [Int], width: Int = 16, height: Int = 16) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height)
        for (color, delay) in zip(colors, delays) { builder.add(color: color, delay: delay) }
        return builder.finish()
    }

    private func isClose(_ color: [Int], _ expected: GIFBuilder.Color, within: Int = 6) -> Bool {
        zip(color, [expected.red, expected.green, expected.blue]).allSatisfy { abs($0 - Int($1)) <= within }
    }

    @Test(arguments: [
        [7], [7, 250, 3, 40], [2, 3, 4, 5, 6, 7, 8, 9], [1000, 2, 2, 2, 900], [65535, 5], [5, 65535],
        [5, 5, 5, 5, 5, 5, 5, 5, 5, 300],
    ])
    func everyFrameLastsExactlyItsDelay(_ delays: [Int]) throws {
        let colors = delays.indices.map { UInt8(1 + $0 % 5) }
        let mp4 = try Converted(self.colors(colors, delays: delays))
        #expect(mp4.boxes.timescale == 100)
        #expect(mp4.boxes.durations == delays)
        #expect(mp4.boxes.duration == delays.reduce(0, +))
        let shown = try FFmpeg.stream(of: mp4.file)["duration"].flatMap(Double.init) ?? 0
        #expect(abs(shown - Double(delays.reduce(0, +)) / 100) < 0.0005)
    }

    @Test func movingPicturesKeepTheirTimesWhateverTheOrderOfDecoding() throws {
        for frames in [2, 3, 9, 40] {
            let mp4 = try Converted(GIFBuilder.animation(frames: frames, width: 64, height: 48, delay: 4))
            #expect(mp4.boxes.durations == Array(repeating: 4, count: frames))
            #expect(mp4.boxes.samples.first?.time == 0)
        }
    }

    @Test func delaysTooShortToBeMeantLastATenthOfASecond() throws {
        let mp4 = try Converted(colors([1, 2, 3, 4], delays: [0, 1, 2, 0]))
        #expect(mp4.boxes.durations == [10, 10, 2, 10])
    }

    @Test func framesThatLookTheSameBecomeOneSample() throws {
        let mp4 = try Converted(colors([1, 1, 2, 2, 2, 1], delays: [5, 6, 7, 8, 9, 10]))
        #expect(mp4.boxes.durations == [11, 24, 10])
        #expect(mp4.result.frames == 6 && mp4.result.samples == 3)
    }

    @Test func framesThatNeverChangeAreOneSampleOfTheWholeTime() throws {
        #expect(try Converted(colors([3, 3, 3], delays: [5, 6, 7])).boxes.durations == [18])
    }

    @Test func oneFrameMakesOneSample() throws {
        let mp4 = try Converted(colors([2], delays: [0]))
        #expect(mp4.boxes.durations == [10])
        #expect(try isClose(mp4.color(0, x: 3, y: 3), GIFBuilder.palette[2]))
    }

    @Test func theIndexComesFirstAndThereIsOneTrackWithoutEditList() throws {
        let mp4 = try Converted(GIFBuilder.animation())
        let boxes = mp4.boxes
        let moov = try #require(boxes.top.firstIndex(of: "moov"))
        let mdat = try #require(boxes.top.firstIndex(of: "mdat"))
        #expect(boxes.top.first == "ftyp" && moov < mdat)
        #expect(boxes.trackCount == 1 && !boxes.hasEditList)
        let first = try #require(boxes.samples.first)
        #expect(first.time == 0 && first.duration == 10 && first.isSync)
    }

    @Test func streamAndContainerAreTaggedAlike() throws {
        let mp4 = try Converted(GIFBuilder.animation())
        #expect(mp4.boxes.color == [1, 13, 1, 0])
        #expect(mp4.boxes.profile == 100)
        let stream = try FFmpeg.stream(of: mp4.file)
        let expected = [
            "codec_name": "h264", "profile": "High", "pix_fmt": "yuv420p", "color_range": "tv", "color_space": "bt709",
            "color_primaries": "bt709", "color_transfer": "iec61966-2-1", "chroma_location": "center",
        ]
        for (name, value) in expected { #expect(stream[name] == value) }
        // The encoder's own description is left out.
        #expect(!mp4.bytes.indices.contains { mp4.bytes[$0...].starts(with: "x264 - core".utf8) })
    }

    @Test func theLevelFollowsFromTheTrueFrameTimes() throws {
        #expect(try Converted(colors([1, 2], delays: [10, 10], width: 320, height: 240)).boxes.level <= 13)
    }

    @Test(arguments: [(15, 9), (16, 9), (15, 10), (1, 1), (3, 2)])
    func oddSidesRepeatTheirEdge(_ width: Int, _ height: Int) throws {
        let mp4 = try Converted(colors([1, 4], delays: [5, 5], width: width, height: height))
        let (evenWidth, evenHeight) = ((width + 1) / 2 * 2, (height + 1) / 2 * 2)
        #expect(mp4.boxes.width == evenWidth && mp4.boxes.height == evenHeight)
        #expect(try isClose(mp4.color(1, x: evenWidth - 1, y: evenHeight - 1), GIFBuilder.palette[4]))
    }

    @Test func transparencyLiesOnWhiteOrOnTheBackgroundAskedFor() throws {
        var builder = GIFBuilder(width: 32, height: 16)
        builder.add(GIFBuilder.Frame(width: 32, height: 16, pixels: (0..<512).map { $0 % 32 < 16 ? 2 : 0 })) {
            $0.transparent = 0
        }
        let white = try Converted(builder.finish())
        #expect(try isClose(white.color(0, x: 24, y: 8), (255, 255, 255)))
        #expect(try isClose(white.color(0, x: 6, y: 8), (255, 0, 0)))
        let green = RGB(red: 0, green: 128, blue: 0)
        let other = try Converted(builder.finish(), Transcoder(options: TranscodeOptions(background: green)))
        #expect(try isClose(other.color(0, x: 24, y: 8), (0, 128, 0)))
    }

    @Test func everyPaletteColourComesOutAsItWentIn() throws {
        for (index, color) in GIFBuilder.palette.enumerated() {
            let mp4 = try Converted(colors([UInt8(index)], delays: [10]))
            #expect(try isClose(mp4.color(0, x: 8, y: 8), color, within: 4), "\(color)")
        }
    }

    /// The bytes of the first attempt.
    private func firstAttempt(_ gif: [UInt8], _ transcoder: Transcoder) throws -> Int {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")
        let descriptor = open(file.path, O_RDWR | O_CREAT | O_EXCL, 0o600)
        defer {
            close(descriptor)
            unlink(file.path)
        }
        return try gif.withUnsafeBytes { gif in
            let source = try ScannedSource<GIFReader>(transcoder, gif)
            let settings = H264Settings(transcoder.options, try ContentProbe.content(of: source))
            return try MP4Output.encode(source, settings, to: descriptor, FrameMeter(nil)).bytes
        }
    }

    @Test func anMP4ThatIsALittleLargerThanItsGIFIsEncodedOnceMore() throws {
        let gif = GIFBuilder.noise(frames: 6, width: 96, height: 96)
        try #require(gif.count > SizeRule.smallSource)
        var attempts: [Int: Int] = [:]
        for quality in stride(from: 20, through: 100, by: 8) {
            let transcoder = Transcoder(options: TranscodeOptions(chosenQuality: quality))
            let first = try firstAttempt(gif, transcoder)
            let mp4 = try Converted(gif, transcoder)
            #expect(mp4.result.bytes == mp4.bytes.count && mp4.boxes.durations.count == 6)
            let isRepeated = H264Settings.coarserSteps(excess: Double(first) / Double(gif.count)) != nil
            #expect(isRepeated ? mp4.bytes.count < first : mp4.bytes.count == first, "quality \(quality)")
            attempts[isRepeated ? 2 : first > gif.count ? 1 : 0, default: 0] += 1
        }
        #expect(attempts.count == 3, "some are small, some are encoded once more, some stay large: \(attempts)")
    }

    @Test(arguments: [
        (0.5, nil), (1, nil), (1.01, 1.086), (1.2, 2.578), (1.4, 3.913), (1.5, 4), (1.58, 4), (1.6, nil), (30, nil),
    ])
    func noMoreThanFourStepsAreTaken(_ excess: Double, _ expected: Double?) {
        let steps = H264Settings.coarserSteps(excess: excess)
        #expect((steps == nil) == (expected == nil))
        if let steps, let expected { #expect(abs(steps - expected) < 0.001) }
    }

    @Test func qualityTradesBytes() throws {
        let gif = GIFBuilder.noise(frames: 3, width: 40, height: 40)
        let sizes = try [20, 60, 90].map {
            try Converted(gif, Transcoder(options: TranscodeOptions(chosenQuality: $0))).bytes.count
        }
        #expect(sizes[0] < sizes[1] && sizes[1] < sizes[2])
    }

    @Test(
        "The bytes do not depend on the threads that are free",
        arguments: [
            GIFBuilder.animation(frames: 20, width: 64, height: 64, delay: 3),
            GIFBuilder.noise(frames: 9, width: 320, height: 240),
        ])
    func threadsChangeNothing(_ gif: [UInt8]) throws {
        let alone = try Converted(gif, Transcoder(threads: 1)).bytes
        for threads in [2, 4] {
            #expect(try Converted(gif, Transcoder(threads: threads)).bytes == alone, "\(threads) threads")
        }
    }

    @Test func aGIFThatBreaksOffKeepsItsWholeFramesAndTheirTime() throws {
        var builder = GIFBuilder(width: 16, height: 16)
        builder.add(color: 1, delay: 20)
        builder.add(color: 2, delay: 30)
        let whole = builder.bytes.count
        builder.add(GIFBuilder.Frame(width: 16, height: 16, pixels: (0..<256).map { UInt8($0 % 7) }))
        let mp4 = try Converted(Array(builder.bytes[..<(whole + 30)]))
        #expect(mp4.boxes.durations == [20, 30])
    }

    @Test func anOutputThatTakesNothingIsAnErrorOfWriting() {
        let descriptor = open("/dev/full", O_RDWR)
        defer { close(descriptor) }
        #expect(throws: TranscodeError.self) {
            try GIFBuilder.animation().withUnsafeBytes { try Transcoder().convert($0, to: descriptor) }
        }
    }
}
