import Foundation
import TestSupport
import Testing

@testable import Media

@Suite("An MP4 of AV1 has the times and the structure of that of H.264") struct AV1Tests {
    fileprivate static let available = LinkedLibraries.has(.av1)

    private func made(_ gif: [UInt8], _ change: (inout TranscodeOptions) -> Void = { _ in }) throws -> Converted {
        try Converted(gif) {
            $0.codec = .av1
            change(&$0)
        }
    }

    @Test(.enabled(if: AV1Tests.available)) func everyDelayIsExactAndTheLastFrameKeepsItsOwn() throws {
        var builder = GIFBuilder(width: 32, height: 32)
        let delays = [7, 2, 100, 3, 65_535, 13]
        for (index, delay) in delays.enumerated() { builder.add(color: UInt8(1 + index % 3), delay: delay) }
        let gif = builder.finish()
        let (av1, h264) = (try made(gif), try Converted(gif))
        #expect(av1.boxes.durations == delays && av1.boxes.samples == h264.boxes.samples)
        #expect(av1.boxes.duration == delays.reduce(0, +) && av1.boxes.timescale == 100)
        #expect(!av1.boxes.hasEditList && !av1.boxes.hasOffsets)
        #expect(av1.boxes.top == h264.boxes.top)
    }

    @Test(.enabled(if: AV1Tests.available), arguments: [100, 101, 1500, 65_535])
    func framesMayLastLongerThanASecond(_ delay: Int) throws {
        let video = try made(GIFBuilder.animation(frames: 3, delay: delay))
        #expect(video.boxes.durations == [delay, delay, delay])
    }

    @Test(.enabled(if: AV1Tests.available)) func aSmallLongDrawingHasOneSyncSampleInBothCodecs() throws {
        let gif = GIFBuilder.animation(frames: 260, width: 16, height: 16, delay: 2)
        let sync = try made(gif).boxes.samples.map(\.isSync)
        #expect(sync.count == 260 && sync.indices.filter { sync[$0] } == [0])
        #expect(try Converted(gif).boxes.samples.map(\.isSync) == sync)
    }

    @Test(.enabled(if: AV1Tests.available)) func theStreamIsMainProfileTaggedAsBT709() throws {
        let video = try made(GIFBuilder.animation(frames: 4)) { $0.chroma = .subsampled }
        #expect(video.boxes.codec == "av01" && video.boxes.color == [1, 13, 1, 0])
        // Version 1; profile 0, level 2.0; Main tier, 8 bits, 4:2:0.
        #expect(video.boxes.av1Configuration.prefix(2) == [0x81, 0])
        #expect(video.boxes.av1Configuration[2] >> 2 == 0b11)
        let stream = try video.stream()
        #expect(stream["codec_name"] == "av1" && stream["profile"] == "Main" && stream["pix_fmt"] == "yuv420p")
        #expect(stream["color_transfer"] == "iec61966-2-1" && stream["color_space"] == "bt709" && stream["color_range"] == "tv")
    }

    @Test(.enabled(if: AV1Tests.available), arguments: [(2, 1088, 612, 8), (4, 1088, 612, 4), (20, 320, 180, 0)])
    func theLevelFollowsFromTheSizeAndTheShortestFrame(_ delay: Int, _ width: Int, _ height: Int, _ level: UInt8) throws {
        let video = try made(GIFBuilder.animation(frames: 2, width: width, height: height, delay: delay))
        #expect(video.boxes.av1Configuration[1] & 31 == level)
    }

    /// libaom takes 500 frames per second for 30. 180, which it takes, need level 4.1.
    @Test(.enabled(if: AV1Tests.available)) func aRateAboveThatOfTheEncoderCountsAsItsHighest() throws {
        let video = try made(GIFBuilder.animation(frames: 2, width: 1088, height: 612, delay: 2)) { $0.time.speed = 10_000 }
        #expect(video.boxes.av1Configuration[1] & 31 == 9)
    }

    @Test(.enabled(if: AV1Tests.available)) func aStillPictureIsOneSample() throws {
        let video = try made(GIFBuilder.animation(frames: 1, delay: 30))
        #expect(video.boxes.durations == [30] && video.boxes.samples[0].isSync)
        #expect(try video.frames().count == 1)
    }

    @Test(.enabled(if: AV1Tests.available)) func anOddSideStaysOdd() throws {
        for (width, height) in [(33, 17), (1, 1), (64, 3)] {
            let video = try made(GIFBuilder.animation(frames: 3, width: width, height: height))
            #expect(video.boxes.width == width && video.boxes.height == height)
            #expect(video.result.width == width && video.result.height == height)
            let stream = try FFmpeg.stream(of: video.file)
            #expect(stream["width"] == "\(width)" && stream["height"] == "\(height)")
            #expect(try FFmpeg.frames(of: video.file, width: width, height: height).count == 3)
        }
    }

    @Test(.enabled(if: AV1Tests.available)) func roundsAreCopies() throws {
        let gif = GIFBuilder.animation(frames: 5, delay: 7)
        let video = try made(gif) { $0.time.loops = 3 }
        #expect(video.boxes.durations == Array(repeating: 7, count: 15))
        let frames = try video.frames()
        #expect(
            frames.count == 15 && Array(frames[..<5]) == Array(frames[5..<10]) && Array(frames[..<5]) == Array(frames[10...]))
        #expect(video.boxes.samples.filter(\.isSync).map(\.time) == [0, 35, 70])
    }

    @Test(.enabled(if: AV1Tests.available)) func colorsComeBack() throws {
        var builder = GIFBuilder(width: 64, height: 64)
        for index in 0..<4 { builder.add(color: UInt8(1 + index % 3), delay: 10) }
        let gif = builder.finish()
        let (av1, h264) = (try made(gif), try Converted(gif))
        for sample in 0..<4 {
            let (one, other) = (try av1.color(sample, x: 30, y: 30), try h264.color(sample, x: 30, y: 30))
            #expect(zip(one, other).allSatisfy { abs($0 - $1) <= 4 }, "\(one) \(other)")
        }
    }

    @Test(.enabled(if: AV1Tests.available), arguments: [true, false])
    func theBytesDependOnNeitherTheThreadsNorTheProcess(_ isNoise: Bool) throws {
        let gif =
            isNoise
            ? GIFBuilder.noise(frames: 6, width: 130, height: 90) : GIFBuilder.animation(frames: 30, width: 200, height: 140)
        var options = TranscodeOptions()
        options.codec = .av1
        let first = try Converted(gif, Transcoder(options: options, threads: 1)).bytes
        for threads in [1, 2, 8] {
            #expect(try Converted(gif, Transcoder(options: options, threads: threads)).bytes == first, "\(threads) threads")
        }
    }

    @Test(.enabled(if: AV1Tests.available)) func qualityTradesBytes() throws {
        let gif = GIFBuilder.noise(frames: 3, width: 64, height: 64)
        let sizes = try [1, 30, 60, 80, 100].map { quality in try made(gif) { $0.quality = quality }.bytes.count }
        #expect(sizes == sizes.sorted() && Set(sizes).count == 5, "\(sizes)")
    }
}
